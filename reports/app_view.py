"""The words and tables of the app as HTML text: one case, its change against the base, and two cases side by side."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from reports.app_chart import binding_grid, volume_chart
from reports.app_tables import change_words, percent_text, titles_of, volume_table
from reports.figures.style import STAGE_COLOURS, STAGE_ORDER
from reports.wording import count, plain, stage_head, stage_title

if TYPE_CHECKING:
    from reports.app_controls import Control
    from reports.app_model import Band, Case, Preview

__all__ = ["STYLE", "band_words", "chain", "footing", "headline", "moved", "pictures", "title", "track"]

DIGITS = 4

STYLE = f"<style>{(Path(__file__).parent / 'templates' / 'app.css').read_text(encoding='utf-8')}</style>"


def track(control: Control, year: str) -> str:
    """Below a slider: the range of the sources as a band, the base as a tick, and both in words."""
    span = control.stop - control.start

    def at(value: float) -> float:
        return 100.0 * min(1.0, max(0.0, (value - control.start) / span)) if span > 0 else 0.0

    band = ""
    if control.low is not None and control.high is not None:
        band = f'<i style="left:{at(control.low):.1f}%;width:{at(control.high) - at(control.low):.1f}%"></i>'
    weak = [k for k in control.kinds if k in ("illustrative", "placeholder")]
    mark = " (part illustrative)" if weak else ""
    return (
        f'<div class="w2t"><div class="w2t-track" aria-hidden="true">{band}<b style="left:{at(control.base):.1f}%"></b>'
        f'</div><p class="w2t-cap">{escape(control.caption(control.base, year) + mark)}</p></div>'
    )


def headline(preview: Preview, case: Case) -> str:
    """The answer in one place: how many, the change against the base, which stage binds, and what was moved."""
    year = preview.year
    if case.failed:
        return (
            '<div class="w2t" role="status" aria-live="polite"><div class="w2t-fail">'
            f"<b>No plan exists at this setting.</b>\n{escape(case.failed)}</div>{moved(preview, case)}</div>"
        )
    value, base = case.total(year), preview.base.total(year)
    words, kind = change_words(value, base)
    stage = case.stage(year)
    colour = STAGE_COLOURS.get(stage, "#888")
    fraction = case.shares(year).get(stage, 0.0)
    binds = (
        f'<span class="w2t-chip" style="background:{colour}">{escape(stage_head(stage))}</span> '
        f"binds most in {year}: {percent_text(fraction)} of all scarcity rent, led by {escape(case.limit(year))}."
        if stage
        else f"No limit has a price in {year}."
    )
    before = preview.base.stage(year)
    switch = f" In the base it is {escape(stage_title(before))}." if before and before != stage else ""
    h100e = ""
    if preview.kind == "energised":
        amount, before_h100e = case.h100e_total(year), preview.base.h100e_total(year)
        h100e = f"{count(amount, DIGITS)} H100-equivalents ({change_words(amount, before_h100e)[0]})."
    return (
        f'<div class="w2t" role="status" aria-live="polite"><div class="w2t-head" style="--stage:{colour}">'
        f'<div><span class="w2t-big" id="w2t-value">{count(value, DIGITS)}</span> '
        f'<span class="w2t-unit">accelerators {preview.kind} in {year}</span></div>'
        f'<div><span class="w2t-delta {kind}">{words}</span> against the base of {count(base, DIGITS)}. {h100e}</div>'
        f'<div style="margin-top:.35rem">{binds}{switch}</div>{moved(preview, case)}</div></div>'
    )


def title(preview: Preview) -> str:
    """Title of the scenario, safe to show."""
    return escape(preview.resolved.scenario.title)


def moved(preview: Preview, case: Case) -> str:
    """The sliders off their base, with a warning where a setting lies outside the sources."""
    items, warnings = [], []
    for control in preview.controls.values():
        setting = case.settings.get(control.id, control.base)
        if abs(setting - control.base) < 1e-9:
            continue
        words = f"{control.title} {setting:g} {control.unit}".strip()
        items.append(f"{words} ({control.caption(setting, preview.year)})")
        if control.outside(setting):
            low, high = plain(control.low or 0.0), plain(control.high or 0.0)
            warnings.append(f"{words} is outside the sources ({low} to {high}): no evidence supports it.")
    if not items:
        return '<p class="w2t-note">All sliders are at the base.</p>'
    window = f" from {case.start} on" if case.start else ""
    out = f'<p class="w2t-note">Moved{escape(window)}: {escape("; ".join(items))}.</p>'
    return out + "".join(f'<p class="w2t-warn">{escape(w)}</p>' for w in warnings)


def chain(preview: Preview, case: Case) -> str:
    """The stages in order: how full the fullest limit is in the year, and the stage's share of scarcity rent."""
    if case.failed:
        return ""
    shares = case.shares(preview.year)
    items = []
    for stage, title, full in _fullest(preview, case):
        share = shares.get(stage, 0.0)
        words = f"binds: {percent_text(share)} of rent" if share else f"{percent_text(full)} full"
        limit = case.limit(preview.year, stage) if share else title
        items.append(
            f'<li class="{"w2t-binds" if share else ""}" style="--stage:{STAGE_COLOURS.get(stage, "#888")}">'
            f"<b>{escape(stage_head(stage))}</b>{words}<br><small>{escape(limit)}</small></li>"
        )
    return (
        f'<div class="w2t"><h2>The chain in {preview.year}</h2><ul class="w2t-chain">{"".join(items)}</ul>'
        "<p class='w2t-note'>Where a stage binds: its share of what all limits together are worth to their users, and "
        "the limit worth most. Elsewhere: how full its fullest limit is on average.</p></div>"
    )


def _fullest(preview: Preview, case: Case) -> list[tuple[str, str, float]]:
    """(stage, title of its fullest limit, mean share in use in the year) of every stage, in chain order."""
    inside = [t for t, p in enumerate(case.periods) if p.startswith(preview.year)]
    network = preview.resolved.network
    out = []
    for stage in STAGE_ORDER:
        mine = [r for r, x in network.resources.items() if x.stage == stage and r in case.utilisation]
        use = {r: float(case.utilisation[r][inside].mean()) for r in mine}
        if use:
            fullest = max(use, key=lambda r: use[r])
            out.append((stage, network.resources[fullest].title or fullest, use[fullest]))
    return out


def band_words(band: Band, preview: Preview) -> str:
    """The band of the headline in words, with what it leaves out."""
    if not band.draws:
        return '<div class="w2t"><p class="w2t-warn">No draw had a plan.</p></div>'
    stages = ", ".join(f"{stage_title(s) or 'nothing'} in {percent_text(v)}" for s, v in _by_share(band.stages))
    failed = f" {band.failed} draws had no plan and are left out." if band.failed else ""
    return (
        f'<div class="w2t"><p><b>{count(band.low, 3)} to {count(band.high, 3)}</b> accelerators {preview.kind} in '
        f"{preview.year} in 80 % of {band.draws} draws, median {count(band.middle, 3)}. The stage that binds most: "
        f"{escape(stages)} of draws.{failed}</p><p class='w2t-note'>All uncertain inputs move within their sources at "
        "once; what the model leaves out is not in the band.</p></div>"
    )


def _by_share(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda item: -item[1])


def pictures(preview: Preview, case: Case, pinned: Case | None) -> str:
    """What binds by period, and accelerators by period with the base and a pinned case behind."""
    if case.failed:
        return ""
    chart = volume_chart(case, preview.base, pinned, titles_of(preview), preview.kind)
    return (
        f"<div class='w2t'><h2>What binds, by period</h2>{binding_grid(case)}<h2>Accelerators {preview.kind}</h2>"
        f"{chart}{volume_table(preview, case)}</div>"
    )


def footing(preview: Preview) -> str:
    """What the numbers are and are not."""
    scenario, network = preview.resolved.scenario, preview.resolved.network
    note = escape(" ".join((scenario.file.note or "").split()))
    rolling = (
        " The scenario asks for a rolling plan; the app plans with foresight, so a run may differ."
        if network.regime.kind == "rolling"
        else ""
    )
    return (
        f"<div class='w2t'><h2>About this scenario</h2><p class='w2t-note'>{note}</p><p class='w2t-note'>Every "
        "number is conditional: the best plan under these limits with the whole horizon known, not a forecast."
        f"{rolling} Costs follow the scarcity of racks and power after a sale; owner costs, engine rates and task "
        "profiles come from dated facts and do not move with the sliders.</p></div>"
    )
