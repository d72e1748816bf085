"""Colours of the workbook, each named once by what it marks: those of the printed report and of its figures."""

from __future__ import annotations

from reports.figures.style import INK, STAGE_COLOURS, colour_of

__all__ = [
    "ACCENT", "CHECKED", "EXPORT", "GRID", "GUIDE", "INK", "INPUT", "LEAST", "LINK", "MOST", "MUTED", "OTHER", "PAPER",
    "PARTS", "SOLVER", "TABS", "WARNED",
]  # fmt: skip

#: Titles, headings, warnings and the one line that a chart is about, as in the printed report.
ACCENT = "#882255"
MUTED, LINK, EXPORT = "#555555", "#1a4f8a", "#b00020"
#: Fills: inputs, values of the run, warnings, values read against the flow.
INPUT, SOLVER, WARNED, CHECKED, PAPER = "#fff2cc", "#d9e2ef", "#faf3f6", "#f2f2f2", "#ffffff"
#: Lines of charts: rules behind the data, ends of a band; what has no colour of its own.
GRID, GUIDE, OTHER = "#dddddd", "#8c8c8c", "#777777"
#: Bars at the low and the high end of an input.
LEAST, MOST = "#6699cc", "#cc6677"
#: Parts of a cost, from the drawn colours of products and stages; light and dark take turns.
PARTS = (
    *(colour_of(name) for name in ("b200", "b300", "h200", "h20", "tpu_v6e", "tpu_v7", "mi300x", "mi355x")),
    *(colour_of(name) for name in ("trainium2", "trainium3")),
    STAGE_COLOURS["server"], STAGE_COLOURS["test"], colour_of("other"),
)  # fmt: skip
#: Tab of a sheet by what it is for.
TABS = {
    "cover": INK, "inputs": colour_of("tpu_v7"), "results": STAGE_COLOURS["hbm"], "workings": colour_of("h200"),
    "studies": colour_of("trainium3"), "control": ACCENT,
}  # fmt: skip
