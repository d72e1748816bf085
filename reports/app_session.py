"""What one window of the app holds: the sliders, the last cases, the buttons on them and the questions asked."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.app_link import Given, restore
from reports.app_questions import Job, need_words

if TYPE_CHECKING:
    from reports.app_controls import Control
    from reports.app_model import Case, Preview
    from reports.app_questions import Measure

__all__ = [
    "Held",
    "ask_band",
    "ask_need",
    "ask_ranking",
    "ask_report",
    "buttons",
    "choice",
    "literal",
    "opened",
    "other_than_first",
    "presets",
    "question_boxes",
    "report_page",
    "resets",
    "sliders",
    "spoken",
]

Settings = dict[str, float]
Setter = Callable[[Any], None]


@dataclass
class Held:
    """The preview and case on screen and the settings before it, for the buttons: not reactive on purpose."""

    preview: Preview | None = None
    case: Case | None = None
    past: list[Settings] = field(default_factory=list)
    asked: Settings | None = None
    job: Job = field(default_factory=Job)
    opened: int = 0

    def begin(self, preview: Preview, given: Given) -> Case | None:
        """A scenario comes on screen; the first one with what the link holds. Returns the pinned case, if any."""
        self.forget()
        self.opened += 1
        return restore(preview, given) if self.opened == 1 else None

    def forget(self) -> None:
        """Another scenario was chosen."""
        self.job.cancel()
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


def literal(text: str) -> str:
    """Words as a label shows them as they are: labels are Markdown, so each sign in them becomes an entity.

    >>> literal("2 **x**"), literal("<b>")
    ('2 &#42;&#42;x&#42;&#42;', '&#60;b&#62;')
    """
    return "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in text)


def spoken(elements: Mapping[str, Any], controls: Mapping[str, Control]) -> None:
    """Plain text as the name of each slider: its typed number is spoken with the label, mark-up and all, otherwise."""
    for key, control in controls.items():
        _named(elements[key], control.label)


def _named(element: Any, label: str) -> Any:
    name = escape(json.dumps(escape(label, quote=False)), quote=True)
    before, _, rest = element.text.partition("data-label='")
    element._text = f"{before}data-label='{name}'{rest.partition(chr(39))[2]}"
    return element


def resets(mo: Any, controls: Mapping[str, Control], held: Held, set_started: Setter) -> dict[str, Any]:
    """A button for each control that puts it back to the base and leaves the others."""

    def back(key: str, base: float) -> Callable[[Any], None]:
        return lambda _: set_started({**held.now(), key: base})

    # the name is read aloud, the sign alone is seen; a style of the page does not reach into a button
    hidden = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap"
    sign = f'<span style="{hidden}">Reset {{title}}</span><span aria-hidden="true">↺</span>'
    return {
        key: mo.ui.button(label=sign.format(title=literal(c.title)), on_change=back(key, c.base))
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


def choice(mo: Any, values: list[str], label: str, title: Callable[[str], str], first: str = "") -> Any:
    """A dropdown of what is there, at `first` where it is among it, or one that says that there is nothing."""
    options = {title(v): v for v in values} or {"none": ""}
    at = title(first) if first in values else next(iter(options))
    return mo.ui.dropdown(options, value=at, label=label)


def other_than_first(preview: Preview, model: str, task: str) -> dict[str, str]:
    """The chosen model and task for a link; empty words where they are what is shown without a choice."""
    models, tasks = preview.costing.models(), preview.costing.tasks()
    return {"model": model if model in models[1:] else "", "task": task if task in tasks[1:] else ""}


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


def question_boxes(mo: Any, preview: Preview, control: Control, measure: Measure) -> tuple[Any, Any]:
    """Boxes for an amount of an input and for a target, both at the base until something is typed."""
    unit = (
        f", {control.natural_unit}" if control.natural_unit else f", {control.unit}" if control.kind == "value" else ""
    )
    known = float(f"{measure.value(preview.base):.6g}")
    name = f"{control.title}{unit}"
    return (
        _named(mo.ui.number(start=0, value=float(f"{control.natural:.6g}"), label=name), name),
        _named(mo.ui.number(start=0, value=known, label="Target"), "Target"),
    )


def ask_need(mo: Any, held: Held, preview: Preview, control: Control, measure: Measure, target: float) -> None:
    """In the background: how much of an input a target takes at the settings on screen."""
    settings, start = _asked(held)

    def work(step: Callable[[int, int], None]) -> Any:
        return mo.Html(need_words(preview.twin(), control, measure, target, settings, start, step))

    held.job.ask(mo, f"{control.title} for a target", work)


def ask_band(mo: Any, held: Held, preview: Preview, draws: int = 40) -> None:
    """In the background: the band of the headline at the settings on screen."""
    from reports.app_view import band_words

    settings, start = _asked(held)

    def work(step: Callable[[int, int], None]) -> Any:
        twin = preview.twin()
        return mo.Html(band_words(twin.bands(settings, start, draws, step), twin))

    held.job.ask(mo, "Drawing all uncertain inputs", work)


def ask_ranking(mo: Any, held: Held, preview: Preview) -> None:
    """In the background: how far each input moves the headline from the base."""
    from reports.app_tables import ranking

    def work(step: Callable[[int, int], None]) -> Any:
        twin = preview.twin()
        return mo.Html(ranking(twin, twin.swings(step)))

    held.job.ask(mo, "Moving each input to both ends of its sources", work)


def ask_report(mo: Any, held: Held) -> None:
    """In the background: the report of the case on screen, then a button that downloads it."""
    shown = Held(held.preview, held.case)

    def work(step: Callable[[int, int], None]) -> Any:
        said: list[str] = []

        def progress(text: str) -> None:
            said.append(text)
            step(len(said), 0)

        page = report_page(shown, progress)
        if isinstance(page, str):
            return mo.callout(mo.plain_text(page), kind="danger")
        label = "Download the report (HTML)"
        return mo.download(page, filename=f"{shown.name()}_report.html", mimetype="text/html", label=label)

    held.job.ask(mo, "Solving, pricing and writing the report", work)


def _asked(held: Held) -> tuple[Settings, str]:
    return held.now(), held.case.start if held.case is not None else ""
