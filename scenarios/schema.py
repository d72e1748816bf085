"""The scenario file as pydantic models; each number carries a `Spec` with its unit, default and bounds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from scenarios.horizon import PERIOD
from scenarios.values import EDIT_KEYS, FORM_KEYS, TAG, Period, Scalar, Value

__all__ = ["SECTIONS", "ScenarioFile", "Spec", "json_schema", "specs"]


@dataclass(frozen=True, slots=True)
class Spec:
    """What a number of the language is.

    `measure`: fraction, ratio, periods (a duration), quantity (of the material or resource that the path names),
    money (USD,
    per anything), money_per_period, capex (USD per unit of capacity), price (USD per unit of the material), power
    (kW), usd_per_hour,
    rate (per year), survival (share kept a quarter), years, flow and capacity (per period; MW where it is power), own
    (any unit). `default` is the value where the file gives none; None means that the field stays absent.
    """

    measure: str
    default: float | None = None
    lower: float = -math.inf
    upper: float = math.inf


def _id(raw: Any) -> str:
    if isinstance(raw, str) and re.fullmatch(r"[a-z0-9_]+", raw):
        return raw
    raise ValueError(f"{raw!r} is not an id: use lower-case letters, digits and _")


Id = Annotated[str, BeforeValidator(_id), WithJsonSchema({"type": "string", "pattern": "^[a-z0-9_]+$"})]
Fraction = Annotated[Value, Spec("fraction", None, 0.0, 1.0)]
Quantity = Annotated[Value, Spec("quantity", None, 0.0)]
Money = Annotated[Value, Spec("money", None)]


def _yield_form(raw: Any) -> str:
    named = isinstance(raw, dict) and not any(k in raw for k in (*FORM_KEYS, *EDIT_KEYS))
    return f"{TAG}each" if named and not any(PERIOD.fullmatch(str(k)) for k in raw) else f"{TAG}all"


Yield = Annotated[
    Annotated[Value, Tag(f"{TAG}all")] | Annotated[dict[Id, Fraction], Tag(f"{TAG}each")],
    Discriminator(_yield_form),
    Spec("fraction", 1.0, 0.0, 1.0),
]


class Part(BaseModel):
    """Base of the sections: unknown keys are errors; keys are spelt as in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)


class HorizonSpec(Part):
    """`horizon`: start period, reported periods, step, tail."""

    start: Period
    periods: int = Field(ge=1, le=1200)
    step: Literal["month", "quarter"] = "quarter"
    tail: int | None = Field(None, ge=0, le=1200)


class Objective(Part):
    """`objective`: what is maximised, and whose costs are charged."""

    kind: Literal["value", "compute", "units"] = "value"
    costs: Literal["manufacturing", "purchase"] = "manufacturing"


class Regime(Part):
    """`regime`: full foresight, or a rolling look-ahead."""

    kind: Literal["foresight", "rolling"] = "foresight"
    look_ahead: Scalar | None = None


def _spread_word(raw: Any) -> Any:
    return {"kind": raw} if isinstance(raw, str) else raw


class Region(Part):
    """`regions.ID`: siting shares of energised accelerators."""

    title: str = ""
    least_share: Fraction | None = None
    greatest_share: Fraction | None = None


class Material(Part):
    """`materials.ID`: what flows; `unit` is any word and becomes a counting unit."""

    unit: str
    stage: str = ""
    title: str = ""
    holding_cost: Annotated[Value, Spec("money_per_period", 0.0, 0.0)] | None = None


class Window(Part):
    """A first and last period, and the first period in which the window is known."""

    start: Period | None = Field(None, alias="from")
    end: Period | None = Field(None, alias="to")


class Process(Window):
    """`processes.ID`: turns materials into materials; quantities are per unit started."""

    stage: str = ""
    title: str = ""
    supplier: str = ""
    owner: str = ""
    region: str = ""
    known_from: Period | None = None
    input: dict[Id, Quantity] = Field(default_factory=dict)
    output: dict[Id, Quantity] = Field(default_factory=dict)
    uses: dict[Id, Quantity] = Field(default_factory=dict)
    yield_: Yield | None = Field(None, alias="yield")
    lead_time: Annotated[Value, Spec("periods", 0.0, 0.0)] | None = None
    cost: Annotated[Value, Spec("money", 0.0)] | None = None
    ramp: Annotated[Value, Spec("ratio", None, 1.0)] | None = None
    floor: Annotated[Value, Spec("quantity", None, 0.0)] | None = None
    run_down: Fraction | None = None


class Resource(Part):
    """`resources.ID`: a capacity per period that processes share, or MW of a region."""

    stage: str = ""
    title: str = ""
    supplier: str = ""
    owner: str = ""
    region: str = ""
    capacity: Annotated[Value, Spec("capacity", None, 0.0)]


class Taste(Part):
    """One step of `tastes` or `steps`: a share of a volume that values the unit at a discount."""

    share: Fraction
    discount: Annotated[Value, Spec("fraction", 0.0, -1.0, 1.0)]


class Sku(Window):
    """`fleet.SKU`: an accelerator that is energised, runs and draws power."""

    title: str = ""
    designer: str = ""
    material: str = ""
    regions: tuple[str, ...] = ()
    kw_planning: Annotated[Value, Spec("power", None, 0.0)] | None = None
    purchase_cost: Annotated[Value, Spec("money", None, 0.0)] | None = None
    survival: Annotated[Value, Spec("survival", 1.0, 0.0, 1.0)] | None = None
    life: Annotated[Value, Spec("periods", None, 0.0)] | None = None
    wear_out: Annotated[Value, Spec("ratio", None, 0.0)] | None = None
    opening_age: Annotated[Value, Spec("periods", None, 0.0)] | None = None
    value: Annotated[Value, Spec("usd_per_hour", None)] | None = None
    h100e: Annotated[Value, Spec("ratio", None, 0.0)] | None = None
    opening: dict[Id, Quantity] = Field(default_factory=dict)
    early_retirement: bool = False
    energising_cost: Annotated[Value, Spec("money", 0.0, 0.0)] | None = None
    tastes: tuple[Taste, ...] = ()


class Demand(Part):
    """`demand.MATERIAL`: a final sale; `demand.DESIGNER`: a price-responsive segment of a designer's fleet."""

    price: Annotated[Value, Spec("price", None)] | None = None
    quantity: Annotated[Value, Spec("flow", None, 0.0)] | None = None
    unmet: Literal["lost", "backlog", "never"] = "lost"
    cancel: Fraction | None = None
    reference: Annotated[Value, Spec("quantity", None, 0.0)] | None = None
    steps: tuple[Taste, ...] = ()


class Contract(Window):
    """`contracts.ID`: shares or amounts of a resource for named processes."""

    title: str = ""
    note: str = ""
    resource: str
    processes: tuple[str, ...]
    greatest_share: Fraction | None = None
    least_share: Fraction | None = None
    take_or_pay: Annotated[Value, Spec("money", None, 0.0)] | None = None
    greatest: Annotated[Value, Spec("flow", None, 0.0)] | None = None
    least: Annotated[Value, Spec("flow", None, 0.0)] | None = None


class Expansion(Part):
    """`expansions.ID`: capacity that can be bought; it is usable after its lead time."""

    title: str = ""
    note: str = ""
    resource: str
    owner: str = ""
    kind: Literal["greenfield", "debottleneck"] = "debottleneck"
    lead_time: Annotated[Value, Spec("periods", 0.0, 0.0)] | None = None
    capex: Annotated[Value, Spec("capex", 0.0, 0.0)] | None = None
    lump: Annotated[Value, Spec("flow", None, 0.0)] | None = None
    greatest: Annotated[Value, Spec("flow", None, 0.0)] | None = None
    start: Period | None = Field(None, alias="from")
    life: Annotated[Value, Spec("years", None, 0.0)] | None = None


class Disruption(Window):
    """`disruptions.ID`: a resource or process that loses capacity for a while."""

    title: str = ""
    note: str = ""
    resource: str = ""
    process: str = ""
    remaining: Annotated[Value, Spec("fraction", 0.0, 0.0, 1.0)] | None = None
    ramp_back: Annotated[Value, Spec("periods", 0.0, 0.0)] | None = None
    known_from: Period | None = None


class Opening(Part):
    """`opening`: stocks and starts before the horizon, or the closing state of another run."""

    stock: dict[Id, Quantity] = Field(default_factory=dict)
    pipeline: dict[Id, Quantity] = Field(default_factory=dict)
    at_capacity: bool = False
    from_run: str = ""
    note: str = ""


class Correlation(Part):
    """Rank correlation of input paths."""

    inputs: tuple[str, ...] = Field(min_length=2)
    rank: float = Field(ge=-1.0, le=1.0)
    note: str = ""


class ScenarioFile(Part):
    """One scenario file, `extends` already applied."""

    title: str = ""
    note: str = ""
    extends: str = ""
    horizon: HorizonSpec
    objective: Annotated[Objective, BeforeValidator(_spread_word)] = Objective()
    regime: Annotated[Regime, BeforeValidator(_spread_word)] = Regime()
    discount_rate: Annotated[Value, Spec("rate", None, -0.99)] | None = None
    regions: dict[Id, Region] = Field(default_factory=dict)
    materials: dict[Id, Material]
    processes: dict[Id, Process]
    resources: dict[Id, Resource] = Field(default_factory=dict)
    fleet: dict[Id, Sku] = Field(default_factory=dict)
    demand: dict[Id, Demand] = Field(default_factory=dict)
    contracts: dict[Id, Contract] = Field(default_factory=dict)
    expansions: dict[Id, Expansion] = Field(default_factory=dict)
    disruptions: dict[Id, Disruption] = Field(default_factory=dict)
    opening: Opening = Opening()
    costs: dict[str, Any] = Field(default_factory=dict)
    workloads: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    groups: dict[Id, tuple[str, ...]] = Field(default_factory=dict)
    correlations: tuple[Correlation, ...] = ()
    outputs: tuple[str, ...] = ()


#: Sections whose entries are named by id, and the model of an entry.
SECTIONS: dict[str, type[Part]] = {
    "regions": Region,
    "materials": Material,
    "processes": Process,
    "resources": Resource,
    "fleet": Sku,
    "demand": Demand,
    "contracts": Contract,
    "expansions": Expansion,
    "disruptions": Disruption,
}


def specs(model: type[BaseModel]) -> dict[str, tuple[Spec, bool]]:
    """The numbers of a section: key in the file -> (spec, whether it is a mapping from id to number).

    >>> specs(Resource)["capacity"][0].measure
    'capacity'
    >>> specs(Process)["input"][1]
    True
    """
    out: dict[str, tuple[Spec, bool]] = {}
    for name, info in model.model_fields.items():
        key = info.alias or name
        spec, mapping = _find_spec(info.annotation), False
        direct = next((m for m in info.metadata if isinstance(m, Spec)), None)
        text = str(info.annotation)
        if direct is None and text.startswith("dict["):
            mapping = True
        found = direct or spec
        if found is not None:
            out[key] = (found, mapping)
    return out


def _find_spec(annotation: Any) -> Spec | None:
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, Spec):
            return meta
    for inner in getattr(annotation, "__args__", ()):
        if getattr(annotation, "__origin__", None) is tuple:
            continue
        found = _find_spec(inner)
        if found is not None:
            return found
    return None


def json_schema() -> dict[str, Any]:
    """JSON schema of a scenario file, for editors; `set` and `extends` are added to the merged form."""
    schema = ScenarioFile.model_json_schema(by_alias=True)
    schema["title"] = "wafer2token scenario"
    schema["properties"]["set"] = {
        "type": "object",
        "description": "dotted path -> edit (" + ", ".join(EDIT_KEYS) + ") or value",
    }
    schema.pop("required", None)
    return schema
