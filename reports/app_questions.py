"""Questions of the app that take more than one solve: asked in the background, told as they go, ended by a button."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.app_tables import change_words, model_title, reference, titles_of
from reports.wording import count, plain, stage_title

if TYPE_CHECKING:
    from reports.app_controls import Control
    from reports.app_model import Case, Preview

__all__ = ["Job", "Measure", "get_words", "measures", "need_words"]

Step = Callable[[int, int], None]


class CancelledError(Exception):
    """The reader does not want the answer any more."""


class Job:
    """One long question at a time; the next one, or `cancel`, ends it at its next solve."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    def cancel(self) -> None:
        """End what is being worked on."""
        self._stop.set()

    def ask(self, mo: Any, title: str, work: Callable[[Step], Any]) -> None:
        """Work in a thread of the calling cell; its output shows the progress, then the answer."""
        self.cancel()
        stop = self._stop = threading.Event()
        mo.output.replace(mo.Html(_progress(title, 0, 0)))
        mo.Thread(target=_work, args=(mo, title, work, stop), daemon=True).start()


def _work(mo: Any, title: str, work: Callable[[Step], Any], stop: threading.Event) -> None:
    def step(done: int, total: int) -> None:
        if stop.is_set() or mo.current_thread().should_exit:
            raise CancelledError
        mo.output.replace(mo.Html(_progress(title, done, total)))

    try:
        answer = work(step)
    except CancelledError:
        answer = mo.Html(_said("Cancelled; nothing was changed.", "w2t-note"))
    except Exception as problem:  # whatever it is: a thread that ends without a word leaves the reader waiting
        name = "" if isinstance(problem, ValueError) else f"{type(problem).__name__}: "
        answer = mo.Html(_said(escape(f"There is no answer.\n{name}{problem}"), "w2t-fail"))
    mo.output.replace(answer)


def _progress(title: str, done: int, total: int) -> str:
    share = f"{done} of {total}" if total else f"step {done}" if done else "starting"
    bar = f'<progress max="{total}" value="{done}" aria-label="{escape(title)}"></progress>' if total else ""
    return _said(f"{escape(title)}: {share} {bar}", "w2t-note")


def _said(text: str, kind: str) -> str:
    return f'<div class="w2t" role="status" aria-live="polite"><p class="{kind}">{text}</p></div>'


class Measure:
    """A figure that a question can aim at: its name, its value in a case, and how it is written."""

    def __init__(self, name: str, value: Callable[[Case], float], write: Callable[[float], str]) -> None:
        self.name = name
        self.value = value
        self.write = write


def measures(preview: Preview, model: str = "", task: str = "") -> dict[str, Measure]:
    """The figures of a scenario in its focus year; costs are those of its commonest accelerator."""
    year, kind = preview.year, preview.kind
    found = [Measure(f"accelerators {kind} in {year}", lambda c: c.total(year), lambda v: count(v, 4))]
    if kind == "energised":
        found.append(Measure(f"H100-equivalents in {year}", lambda c: c.h100e_total(year), lambda v: count(v, 4)))
    sku = reference(preview)
    if sku:
        name = titles_of(preview).get(sku, sku)
        said = {
            "hour": f"USD per sold hour, {name}",
            "mtoken": f"USD per million output tokens of {model_title(model)}, {name}",
            "usd_per_task": f"USD per verified task ({task}), {name}",
        }
        for part, title in said.items():
            measure = Measure(title, _cost(sku, model, task, part), lambda v: f"{plain(v)} USD")
            if np.isfinite(measure.value(preview.base)):
                found.append(measure)
    return {m.name: m for m in found}


def _cost(sku: str, model: str, task: str, part: str) -> Callable[[Case], float]:
    def value(case: Case) -> float:
        row = case.cost(sku, model, task)
        amount = None if row is None else getattr(row, part)
        return np.nan if amount is None else float(amount)

    return value


def get_words(preview: Preview, control: Control, amount: float, settings: Mapping[str, float], start: str) -> str:
    """What one gets for an amount of an input, the other sliders as they stand."""
    setting = amount * control.base / control.natural if control.natural else amount
    if not np.isfinite(setting) or setting <= 0:
        return _said("Give an amount above zero.", "w2t-warn")
    case = preview.solve({**settings, control.id: setting}, start)
    said = f"{control.title} of {_amount(control, setting, preview.year)}"
    if case.failed:
        return _said(escape(f"Not possible: with {said} no plan exists.\n{case.failed}"), "w2t-fail")
    year, before = preview.year, preview.base.total(preview.year)
    stage = stage_title(case.stage(year))
    binds = f" {stage[:1].upper()}{stage[1:]} binds most." if stage else " No limit binds."
    text = (
        f"<b>{count(case.total(year), 4)}</b> accelerators {preview.kind} in {year} for {escape(said)}: "
        f"{change_words(case.total(year), before)[0]} against the base.{escape(binds)}"
    )
    return _said(text + _others(preview, control, settings), "w2t-answer") + _warned(control, setting)


def need_words(
    preview: Preview,
    control: Control,
    measure: Measure,
    target: float,
    settings: Mapping[str, float],
    start: str,
    step: Step | None = None,
) -> str:
    """How much of an input a target takes, the other sliders as they stand; `Not reachable` with what can be had."""
    found = preview.reach(control.id, target, settings, start, measure=measure.value, progress=step)
    others = _others(preview, control, settings)
    if found.setting is None:
        if not np.isfinite(found.least):
            return _said(f"Not reachable: no plan exists for any {escape(control.title)} on the slider.", "w2t-warn")
        ends = f"{_amount(control, control.start, preview.year)} to {_amount(control, control.stop, preview.year)}"
        text = (
            f"<b>Not reachable.</b> {escape(control.title)} from {escape(ends)} gives {measure.write(found.least)} to "
            f"{measure.write(found.most)}: {escape(measure.name)}."
        )
        return _said(text + others, "w2t-answer")
    text = (
        f"<b>{escape(_amount(control, found.setting, preview.year))}</b> of {escape(control.title)} gives "
        f"{measure.write(target)}: {escape(measure.name)}."
    )
    return _said(text + others, "w2t-answer") + _warned(control, found.setting)


def _amount(control: Control, setting: float, year: str) -> str:
    if control.kind == "value":
        return f"{setting:.4g}"
    unit = f" {control.natural_unit}" if control.natural_unit else ""
    return f"{plain(control.amount(setting))}{unit} in {year} ({setting:.1f} % of base)"


def _others(preview: Preview, control: Control, settings: Mapping[str, float]) -> str:
    moved = [
        f"{c.title} {settings[k]:g}"
        for k, c in preview.controls.items()
        if k != control.id and abs(settings.get(k, c.base) - c.base) > 1e-9
    ]
    return f" With {escape(', '.join(moved))}." if moved else " All other inputs at the base."


def _warned(control: Control, setting: float) -> str:
    if not control.outside(setting):
        return ""
    return f'<div class="w2t"><p class="w2t-warn">{escape(control.title)} is then outside its sources.</p></div>'
