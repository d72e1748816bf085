"""The forms that a number may take in a scenario file, as pydantic models.

Union tags start with `TAG`, so that the place of a validation error can drop them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from scenarios.horizon import PERIOD

__all__ = [
    "EDIT_KEYS",
    "FORM_KEYS",
    "TAG",
    "ByPeriod",
    "Distribution",
    "Edit",
    "FactForm",
    "ManufacturingForm",
    "Number",
    "Period",
    "SeriesForm",
    "Span",
    "StatedForm",
    "Value",
    "form_named",
    "form_of",
    "keys_of",
    "parse_value",
]

TAG = "form:"
EDIT_KEYS = ("scale", "add", "replace", "delay", "scale_growth")
#: A number, and a unit that does not begin like one (so that a day such as 2026-01-01 is no number).
_NUMBER = re.compile(r"\s*([+-]?(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*((?![-+.:_0-9]).*?|)\s*")
_LONGEST = 200


def _finite(raw: Any) -> float:
    try:
        number = float(raw)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{_short(raw)} is not finite")
    return number


def _short(raw: Any) -> str:
    text = repr(raw) if not isinstance(raw, int) or abs(raw) < 10**40 else f"a whole number of {raw.bit_length()} bits"
    return text if len(text) <= 80 else f"{text[:60]} ... ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class Number:
    """A plain number, with the unit it was written in (empty: the unit of the field).

    >>> Number.parse("15000 die/quarter")
    Number(magnitude=15000.0, unit='die/quarter')
    """

    magnitude: float
    unit: str = ""

    @classmethod
    def parse(cls, raw: Any) -> Number:
        """Read `0.65`, or text such as `15000 die/quarter`.

        Raises:
            ValueError: when it is neither.
        """
        if isinstance(raw, Number):
            return raw
        if isinstance(raw, (int, float)) and not isinstance(raw, bool):
            return cls(_finite(raw))
        if isinstance(raw, str) and len(raw) <= _LONGEST and (match := _NUMBER.fullmatch(raw)):
            return cls(_finite(match[1].replace("_", "")), match[2])
        raise ValueError(
            f"{_short(raw)} is not a value: write a number (0.65), a number with a unit (15000 die/quarter), "
            "{fact: ID}, {series: ID}, values by period or a distribution"
        )


def _period(raw: Any) -> str:
    if not isinstance(raw, str) or not PERIOD.fullmatch(raw):
        raise ValueError(f"{raw!r} is not a period such as 2026-Q1 or 2026-03")
    return raw


_NUMBER_SCHEMA = {
    "anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\s*[+-]?[0-9.]"}],
    "description": "a number in the unit of the field, or a number with a unit",
}
Scalar = Annotated[Number, BeforeValidator(Number.parse), WithJsonSchema(_NUMBER_SCHEMA)]
Period = Annotated[str, BeforeValidator(_period), WithJsonSchema({"type": "string", "pattern": f"^{PERIOD.pattern}$"})]
Span = Scalar


class Form(BaseModel):
    """Base of the forms: unknown keys are errors, `from` is spelt as in the file."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=False, arbitrary_types_allowed=True, allow_inf_nan=False
    )


class FactForm(Form):
    """`{fact: ID}`: a fact, converted from its own unit; `scale` multiplies it."""

    fact: str
    scale: float = 1.0
    note: str = ""


class SeriesForm(Form):
    """`{series: ID}`: a quarterly series of the facts; `column` takes its value, low or high."""

    series: str
    scale: float = 1.0
    column: Literal["value", "low", "high"] = "value"
    note: str = ""


class ManufacturingForm(Form):
    """`{manufacturing: SKU.FIELD}`: a figure derived by `supply.manufacturing` from sourced dimensions."""

    manufacturing: str
    scale: float = 1.0
    note: str = ""


class ProductForm(Form):
    """`{product: [V, V, ..]}`: period by period."""

    product: tuple[Value, ...] = Field(min_length=1)
    note: str = ""


class SumForm(Form):
    """`{sum: [V, V, ..]}`: period by period; all terms in the unit of the field."""

    sum: tuple[Value, ...] = Field(min_length=1)
    note: str = ""


class RatioForm(Form):
    """`{ratio: [V, V]}`: the first over the second, period by period."""

    ratio: tuple[Value, Value]
    note: str = ""


class PathForm(Form):
    """`{path: costs.rental}`: the value at another path; a draw or edit of it moves every value that names it."""

    path: str
    note: str = ""


_PARAMETERS: dict[str, tuple[str, ...]] = {
    "normal": ("mean", "sd"),
    "lognormal": ("median", "sigma"),
    "triangular": ("low", "mode", "high"),
    "uniform": ("low", "high"),
    "beta": ("a", "b", "low", "high"),
    "discrete": ("values", "weights"),
}


class Distribution(Form):
    """An uncertain number; a deterministic run uses its median. `min` and `max` cut it off."""

    distribution: Literal["normal", "lognormal", "triangular", "uniform", "beta", "discrete"]
    mean: Scalar | None = None
    sd: Scalar | None = None
    median: Scalar | None = None
    sigma: float | None = None
    low: Scalar | None = None
    mode: Scalar | None = None
    high: Scalar | None = None
    a: float | None = None
    b: float | None = None
    values: tuple[Scalar, ...] | None = None
    weights: tuple[float, ...] | None = None
    min: Scalar | None = None
    max: Scalar | None = None
    kind: Literal["illustrative"] | None = None
    note: str = ""

    @model_validator(mode="after")
    def _complete(self) -> Distribution:
        need = _PARAMETERS[self.distribution]
        given = {name for name in {n for p in _PARAMETERS.values() for n in p} if getattr(self, name) is not None}
        optional = {"low", "high"} if self.distribution == "beta" else set()
        missing, extra = [n for n in need if n not in given | optional], sorted(given - set(need))
        if missing or extra:
            said = [f"lacks {', '.join(missing)}"] if missing else []
            said += [f"does not take {', '.join(extra)}"] if extra else []
            raise ValueError(f"distribution {self.distribution} {' and '.join(said)}; it takes {', '.join(need)}")
        return self


class StatedForm(Form):
    """`{value: V, range: [LOW, HIGH], kind: illustrative, note: why}`: an assumption, or any value with a range."""

    value: Value
    range: tuple[Scalar, Scalar] | None = None
    kind: Literal["illustrative"] | None = None
    note: str = ""

    @model_validator(mode="after")
    def _explained(self) -> StatedForm:
        if self.kind == "illustrative" and not self.note:
            raise ValueError("an illustrative value needs a `note` that gives its reason")
        if self.range is not None and self.range[0].magnitude > self.range[1].magnitude:
            raise ValueError(f"range [{self.range[0].magnitude}, {self.range[1].magnitude}] is upside down")
        return self


class ByPeriod(BaseModel):
    """`{2026-Q1: V, 2027-Q1: V, fill: step}`: values that start at a period; `linear` interpolates between them."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Value]
    fill: Literal["step", "linear"] = "step"

    @model_validator(mode="after")
    def _periods(self) -> ByPeriod:
        wrong = [key for key in self.entries if not PERIOD.fullmatch(key)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is neither a period such as 2026-Q1 nor `fill`")
        return self

    @property
    def entries(self) -> dict[str, Value]:
        """Period -> value, in file order."""
        return dict(self.__pydantic_extra__ or {})


class Edit(Form):
    """`{scale: X}`, `{add: X}`, `{replace: V}`, `{delay: 2 quarter}` or `{scale_growth: X}`, within `from` and `to`."""

    scale: Value | None = None
    scale_growth: Value | None = None
    add: Value | None = None
    replace: Value | None = None
    delay: Scalar | None = None
    start: Period | None = Field(None, alias="from")
    end: Period | None = Field(None, alias="to")
    note: str = ""

    @model_validator(mode="after")
    def _one(self) -> Edit:
        given = [k for k in EDIT_KEYS if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"an edit has exactly one of {', '.join(EDIT_KEYS)}; got {', '.join(given) or 'none'}")
        if self.start and self.end and self.start > self.end and len(self.start) == len(self.end):
            raise ValueError(f"from {self.start} is after to {self.end}")
        return self


FORM_KEYS = ("fact", "series", "manufacturing", "distribution", "value", "product", "sum", "ratio", "path")
_BY_KEY: dict[str, type[Form]] = {
    "fact": FactForm,
    "series": SeriesForm,
    "manufacturing": ManufacturingForm,
    "distribution": Distribution,
    "value": StatedForm,
    "product": ProductForm,
    "sum": SumForm,
    "ratio": RatioForm,
    "path": PathForm,
}


def keys_of(form: type[Form]) -> list[str]:
    """Keys of a form or an edit, as they are spelt in a file.

    >>> keys_of(PathForm)
    ['path', 'note']
    """
    return [info.alias or name for name, info in form.model_fields.items()]


def form_named(tag: str) -> type[Form] | None:
    """The form of a tag in the place of a validation error."""
    return _BY_KEY.get(tag.removeprefix(TAG))


def form_of(raw: Any) -> str:
    """Tag of the form that a raw value takes."""
    if isinstance(raw, ByPeriod):
        return f"{TAG}by_period"
    if isinstance(raw, Form):
        return next((f"{TAG}{key}" for key, model in _BY_KEY.items() if isinstance(raw, model)), f"{TAG}number")
    if isinstance(raw, dict):
        for key in FORM_KEYS:
            if key in raw:
                return f"{TAG}{key}"
        if any(isinstance(key, str) and PERIOD.fullmatch(key) for key in raw):
            return f"{TAG}by_period"
    return f"{TAG}number"


Value = Annotated[
    Annotated[Scalar, Tag(f"{TAG}number")]
    | Annotated[FactForm, Tag(f"{TAG}fact")]
    | Annotated[SeriesForm, Tag(f"{TAG}series")]
    | Annotated[ManufacturingForm, Tag(f"{TAG}manufacturing")]
    | Annotated[Distribution, Tag(f"{TAG}distribution")]
    | Annotated[StatedForm, Tag(f"{TAG}value")]
    | Annotated[ProductForm, Tag(f"{TAG}product")]
    | Annotated[SumForm, Tag(f"{TAG}sum")]
    | Annotated[RatioForm, Tag(f"{TAG}ratio")]
    | Annotated[PathForm, Tag(f"{TAG}path")]
    | Annotated[ByPeriod, Tag(f"{TAG}by_period")],
    Discriminator(form_of),
]
for _model in (StatedForm, ProductForm, SumForm, RatioForm, ByPeriod, Edit):
    _model.model_rebuild()

_VALUE: TypeAdapter[Any] = TypeAdapter(Value)
_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)


def parse_value(raw: Any) -> Any:
    """Validate a raw value (not an edit).

    Raises:
        pydantic.ValidationError: with the problems of the value.
    """
    return _VALUE.validate_python(raw)


def parse_edit(raw: Any) -> Edit:
    """Validate a raw entry of `set`: an edit, or a value, which is a replacement.

    Raises:
        pydantic.ValidationError: with the problems of the entry.
    """
    if isinstance(raw, dict) and any(key in raw for key in EDIT_KEYS) and not any(key in raw for key in FORM_KEYS):
        return _EDIT.validate_python(raw)
    return Edit.model_construct(
        replace=parse_value(raw), scale=None, scale_growth=None, add=None, delay=None, start=None, end=None, note=""
    )
