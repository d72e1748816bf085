"""What one window of the app holds: what it was opened with, the sliders, the last cases and the buttons on them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.locate import names

if TYPE_CHECKING:
    from reports.app_controls import Control
    from reports.app_model import Case, Preview

__all__ = [
    "Given",
    "Held",
    "buttons",
    "choice",
    "opened",
    "presets",
    "report_page",
    "resets",
    "share",
    "sliders",
    "spoken",
]

Settings = dict[str, float]
#: What the server was started with (`scenario` or `run`); empty in a notebook that is run by hand.
SERVED: dict[str, str] = {}
Setter = Callable[[Any], None]


@dataclass(frozen=True)
class Given:
    """What the command line and the address bar ask for.

    `choices`: label -> scenario; only library scenarios and what the command line named, never a path of the address
    bar. `settings` and `year` come from the address bar, as a link shared by a colleague holds them.
    """

    choices: dict[str, str]
    choice: str
    settings: Settings
    year: str

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
        asked = str(query.get("scenario", ""))
        numbers = {str(k): n for k, v in query.items() if (n := _number(v)) is not None and k != "year"}
        return cls(choices, asked if asked in choices else choice, numbers, str(query.get("year", "")))

    def year_of(self, preview: Preview) -> str:
        """The year asked for where it is reported, else the focus year of the scenario."""
        return self.year if self.year in preview.years else preview.year


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


@dataclass
class Held:
    """The preview and case on screen and the settings before it, for the buttons: not reactive on purpose."""

    preview: Preview | None = None
    case: Case | None = None
    past: list[Settings] = field(default_factory=list)
    asked: Settings | None = None

    def forget(self) -> None:
        """Another scenario was chosen."""
        self.preview, self.case, self.past = None, None, []

    def take(self, preview: Preview, case: Case) -> None:
        """A case is on screen."""
        if self.case is not None and self.case.settings != case.settings:
            self.past = [*self.past[-49:], self.case.settings]
        self.preview, self.case = preview, case

    def values(self, asked: Settings) -> Settings:
        """Where new sliders stand: at what a button, preset or link has just asked for, else where they stood.

        Sliders are made anew when another year or other inputs are chosen; that must not put them back.
        """
        if asked is self.asked:
            return self.now()
        self.asked = asked
        return dict(asked)

    def undo(self) -> Settings:
        """Settings before the last change; those of now where there are none."""
        if self.past:
            return self.past.pop()
        return self.now()

    def now(self) -> Settings:
        """Settings on screen."""
        return dict(self.case.settings) if self.case is not None else {}

    def name(self) -> str:
        """File name of the case, without suffix."""
        return f"{self.preview.resolved.scenario.name}_case" if self.preview else "case"

    def text(self) -> str:
        """Scenario file of the case on screen."""
        assert self.preview is not None and self.case is not None, "a case is on screen before a file is asked for"
        return self.preview.scenario_text(self.case.settings, self.case.start)


def opened(scenario: str) -> Preview | str:
    """A preview, or in words why there is none: a page has no exit code."""
    from reports.app_model import open_preview

    try:
        return open_preview(scenario)
    except ValueError as problem:
        return f"{scenario} cannot be shown.\n{problem}"


def report_page(held: Held, progress: Callable[[str], None]) -> bytes | str:
    """The report of the case on screen as an HTML page, or in words why there is none."""
    from reports.app_files import report_of

    assert held.preview is not None and held.case is not None, "a case is on screen before a report is asked for"
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = report_of(held.preview, held.case.settings, held.case.start, Path(folder), progress=progress)
            return path.read_bytes()
    except ValueError as problem:
        return f"There is no report of this case.\n{problem}"


def sliders(mo: Any, controls: Mapping[str, Control], started: Mapping[str, float], *, patient: bool) -> dict[str, Any]:
    """A slider with a typed number for each control, at what was asked for where it is within its ends.

    `patient`: a large scenario is solved when a drag ends, not at every step of it.
    """
    out = {}
    for key, control in controls.items():
        value = min(max(float(started.get(key, control.base)), control.start), control.stop)
        out[key] = mo.ui.slider(
            control.start,
            control.stop,
            control.step,
            value=value,
            label=control.label,
            include_input=True,
            full_width=True,
            debounce=patient,
        )
    return out


def spoken(elements: Mapping[str, Any], controls: Mapping[str, Control]) -> None:
    """Plain text as the name of each slider: its typed number is spoken with the label, mark-up and all, otherwise."""
    for key, control in controls.items():
        name = escape(json.dumps(escape(control.label, quote=False)), quote=True)
        before, _, rest = elements[key].text.partition("data-label='")
        elements[key]._text = f"{before}data-label='{name}'{rest.partition(chr(39))[2]}"


def share(mo: Any, preview: Preview, case: Case) -> None:
    """Keep the scenario, year and moved sliders in the address bar, so that a link shows the same case."""
    query = mo.query_params()
    wanted = {"scenario": preview.origin if preview.origin in names() else "", "year": preview.year}
    moved = {k: f"{v:g}" for k, v in case.settings.items() if abs(v - preview.controls[k].base) > 1e-9}
    wanted = {k: v for k, v in (wanted | moved).items() if v}
    held = query.to_dict()
    for key in [k for k in held if k not in wanted]:
        query.remove(key)
    for key, value in wanted.items():
        if held.get(key) != value:
            query.set(key, value)


def resets(mo: Any, controls: Mapping[str, Control], held: Held, set_started: Setter) -> dict[str, Any]:
    """A button for each control that puts it back to the base and leaves the others."""

    def back(key: str, base: float) -> Callable[[Any], None]:
        return lambda _: set_started({**held.now(), key: base})

    return {
        key: mo.ui.button(label="↺", on_change=back(key, c.base), tooltip=f"{c.title}: back to {c.base:g}")
        for key, c in controls.items()
    }


def presets(mo: Any, controls: Mapping[str, Control], set_started: Setter) -> Any:
    """Settings that are asked for often: the ends of the sources, a fifth more or less of one limit."""
    choices: dict[str, Settings] = {"Base": {}}
    ends = {k: c for k, c in controls.items() if c.low is not None and c.high is not None}
    limits = {k: c for k, c in ends.items() if all(p.endswith(".capacity") for p in c.paths)}
    for k, c in limits.items():
        choices[f"{c.title} at the low end of its sources"] = {k: round(c.low or c.base)}
        choices[f"{c.title} at the high end of its sources"] = {k: round(c.high or c.base)}
    if len(limits) > 1:
        choices["All capacities at the low end"] = {k: round(c.low or c.base) for k, c in limits.items()}
        choices["All capacities at the high end"] = {k: round(c.high or c.base) for k, c in limits.items()}
    for k, c in controls.items():
        if c.kind == "scale" and k not in limits and "yield" in k:
            choices[f"{c.title} a tenth worse"] = {k: 90.0}

    def choose(value: Settings | None) -> None:
        if value is not None:
            set_started(dict(value))

    return mo.ui.dropdown(choices, value=None, label="Preset", on_change=choose)


def choice(mo: Any, values: list[str], label: str, title: Callable[[str], str]) -> Any:
    """A dropdown of what is there, or one that says that there is nothing."""
    options = {title(v): v for v in values} or {"none": ""}
    return mo.ui.dropdown(options, value=next(iter(options)), label=label)


def buttons(mo: Any, held: Held, set_pinned: Setter, set_started: Setter) -> list[Any]:
    """Undo, reset, pin and the scenario file."""
    return [
        mo.ui.button(label="Undo", on_change=lambda _: set_started(held.undo())),
        mo.ui.button(label="Reset all", on_change=lambda _: set_started({})),
        mo.ui.button(label="Pin this case", on_change=lambda _: set_pinned(held.case)),
        mo.ui.button(label="Unpin", on_change=lambda _: set_pinned(None)),
        mo.download(
            data=lambda: held.text().encode(),
            filename=lambda: f"{held.name()}.yaml",
            mimetype="application/yaml",
            label="Download the scenario",
        ),
    ]
