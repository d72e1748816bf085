"""What the app is opened with and what its address bar keeps: the case on screen, the pinned one and the choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.locate import names

if TYPE_CHECKING:
    from reports.app_model import Case, Preview

__all__ = ["SERVED", "Given", "case_text", "restore", "share"]

Settings = dict[str, float]
#: What the server was started with (`scenario` or `run`); empty in a notebook that is run by hand.
SERVED: dict[str, str] = {}
#: Keys of the address bar that are no slider.
_OWN = ("scenario", "year", "from", "inputs", "pin", "model", "task")


@dataclass(frozen=True)
class Given:
    """What the command line and the address bar ask for.

    `choices`: label -> scenario; only library scenarios and what the command line named, never a path of the address
    bar. The rest comes from the address bar, as a link shared by a colleague holds it: the moved sliders, the period
    from which they hold, the year, model and task shown, the inputs under sliders, a pinned case as text.
    """

    choices: dict[str, str]
    choice: str
    settings: Settings
    year: str
    start: str = ""
    inputs: tuple[str, ...] = ()
    pin: str = ""
    model: str = ""
    task: str = ""

    @classmethod
    def of(cls, arguments: Mapping[str, Any], query: Mapping[str, Any]) -> Given:
        """From `--scenario` (a name or file) or `--run` (a folder), and `?scenario=small&power=110`.

        >>> given = Given.of({"scenario": "small"}, {"power": "110", "scenario": "../../etc/passwd"})
        >>> given.choice, given.settings
        ('small', {'power': 110.0})
        """
        choices = {n: n for n in names()}
        choice = "base"
        if run := arguments.get("run"):
            choice = f"run {Path(str(run)).name}"
            choices = {choice: str(run)} | choices
        elif (scenario := str(arguments.get("scenario") or "")) and scenario not in choices:
            choice = Path(scenario).name
            choices = {choice: scenario} | choices
        elif scenario:
            choice = scenario
        text = {k: str(query.get(k, "")) for k in _OWN}
        numbers = {str(k): n for k, v in query.items() if k not in _OWN and (n := _number(v)) is not None}
        return cls(
            choices,
            text["scenario"] if text["scenario"] in choices else choice,
            numbers,
            text["year"],
            text["from"],
            tuple(x for x in text["inputs"].split(",") if x),
            text["pin"],
            text["model"],
            text["task"],
        )

    def year_of(self, preview: Preview) -> str:
        """The year asked for where it is reported, else the focus year of the scenario."""
        return self.year if self.year in preview.years else preview.year


def _number(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < 1e12 else None  # neither infinite nor NaN


def case_text(preview: Preview, case: Case) -> str:
    """A case in one word of an address: `power:110,memory:90@2025-Q1`; `base` where nothing is moved."""
    moved = ",".join(f"{k}:{v:.6g}" for k, v in _moved(preview, case).items()) or "base"
    return f"{moved}@{case.start}" if case.start else moved


def _moved(preview: Preview, case: Case) -> Settings:
    controls = preview.controls
    return {k: v for k, v in case.settings.items() if k in controls and abs(v - controls[k].base) > 1e-9}


def restore(preview: Preview, given: Given) -> Case | None:
    """Put the inputs that a link names under the sliders, and solve its pinned case; what is unknown is left out."""
    from scenarios.errors import ScenarioError

    if given.inputs:
        kept = [c.address for c in preview.controls.values()]
        preview.controls = {}
        for address in given.inputs[:8]:
            try:
                preview.add(address)
            except ScenarioError:
                continue
        if not preview.controls:
            preview.choose(kept)
    if not given.pin:
        return None
    moved, _, start = given.pin.partition("@")
    pairs = (pair.partition(":") for pair in moved.split(","))
    wanted = {k: n for k, _, v in pairs if k in preview.controls and (n := _number(v)) is not None}
    return preview.solve(wanted, start if start in preview.periods else "", name="pinned")


def share(
    mo: Any, preview: Preview, case: Case, pinned: Case | None = None, shown: Mapping[str, str] | None = None
) -> None:
    """Keep what is on screen in the address bar, so that a link or a reload shows the same.

    `shown`: the chosen `model` and `task` where they are not the first ones.
    """
    query = mo.query_params()
    inputs = [c.address for c in preview.controls.values()]
    wanted = {
        "scenario": preview.origin if preview.origin in names() else "",
        "year": preview.year,
        "from": case.start,
        "inputs": ",".join(inputs) if inputs != preview.usual else "",
        "pin": case_text(preview, pinned) if pinned is not None else "",
        **(shown or {}),
    }
    wanted |= {k: f"{v:.6g}" for k, v in _moved(preview, case).items()}
    wanted = {k: v for k, v in wanted.items() if v}
    held = query.to_dict()
    for key in [k for k in held if k not in wanted]:
        query.remove(key)
    for key, value in wanted.items():
        if held.get(key) != value:
            query.set(key, value)
