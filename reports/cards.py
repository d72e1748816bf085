"""Short HTML cards of the main objects for notebooks: scenario, graph, run, operating point.

`card(obj)` makes one; `register()` makes IPython and Jupyter show them by themselves (`wafer2token.cards()`). The
classes know nothing of it: rooms above import nothing from reports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from reports.wording import count, plain, stage_title

__all__ = ["Html", "card", "register"]

_MOST = 8
_STYLE = (
    "border:1px solid #cfd4da;border-left:5px solid #882255;border-radius:5px;padding:.5rem .8rem;display:inline-block;"
    "font-family:system-ui,sans-serif;font-size:.9rem;line-height:1.4;color:#1a1a1a;background:#fff;max-width:60rem"
)


class Html(str):
    """HTML text that notebooks show as it is; everything that came from outside is escaped in it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def card(obj: object) -> Html:
    """Card of a `Scenario`, a stage graph, a `Run` or an `OperatingPoint`.

    >>> from scenarios.load import load_scenario
    >>> "2 processes, 2 limits" in card(load_scenario("course_11_1"))
    True

    Raises:
        TypeError: for any other object; the message names the kinds that have a card.
    """
    for kind in type(obj).__mro__:
        maker = _MAKERS.get(f"{kind.__module__}.{kind.__name__}")
        if maker is not None:
            return Html(f'<div style="{_STYLE}">{maker(obj)}</div>')
    kinds = ", ".join(sorted({name.rpartition(".")[2] for name in _MAKERS}))
    raise TypeError(f"there is no card for {type(obj).__name__}; cards exist for {kinds}")


def register(shell: Any = None) -> bool:
    """Show cards by themselves in the IPython or Jupyter session that runs; False where there is none.

    `shell` is an IPython shell, by default the running one. marimo shows a card where a cell ends in `card(obj)`.
    """
    if shell is None:
        import sys

        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return False
    formatter = shell.display_formatter.formatters["text/html"]
    for name in _MAKERS:
        module, _, kind = name.rpartition(".")
        formatter.for_type_by_name(module, kind, card)
    return True


def _head(title: str, line: str) -> str:
    return f'<b style="font-size:1.05em">{escape(title)}</b><br><span style="color:#555">{escape(line)}</span>'


def _table(rows: Sequence[tuple[str, str]]) -> str:
    cell = 'style="text-align:left;padding:.1rem .9rem .1rem 0;vertical-align:top;font-weight:400"'
    body = "".join(f"<tr><th {cell}>{escape(a)}</th><td {cell}>{escape(b)}</td></tr>" for a, b in rows)
    return f'<table style="border:0;margin:.3rem 0 0">{body}</table>'


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more or "none"


def _scenario(scenario: Any) -> str:
    file = scenario.file
    horizon = file.horizon
    rows = [
        ("horizon", f"{horizon.start}, {horizon.periods} x {horizon.step}"),
        ("objective", f"{file.objective.kind}, regime {file.regime.kind}"),
        ("chain", f"{len(file.processes)} processes, {len(file.resources)} limits, {len(file.materials)} materials"),
        ("accelerators", _some([s.title or n for n, s in file.fleet.items()])),
        ("edits", _some([e.pattern for e in scenario.edits])),
        ("groups", _some(list(file.groups))),
    ]
    return _head(scenario.title, f"scenario {scenario.name}") + _table(rows)


def _graph(graph: Any) -> str:
    kinds: dict[str, int] = {}
    stages: dict[str, list[str]] = {}
    for _, node in graph.nodes(data=True):
        kinds[node.get("kind", "other")] = kinds.get(node.get("kind", "other"), 0) + 1
        if node.get("kind") == "process":
            stages.setdefault(node.get("stage") or "other", []).append(str(node.get("title", "")))
    counts = ", ".join(f"{n} {k}" for k, n in kinds.items())
    from supply.graph import stage_rank

    rows = [(stage_title(s), _some(stages[s])) for s in sorted(stages, key=stage_rank)]
    return _head(str(graph.graph.get("title") or "Stage graph"), f"{counts}; {graph.number_of_edges()} edges") + _table(
        rows
    )


def _run(run: Any) -> str:
    answer = run.json()
    last = answer["periods"][-1] if answer["periods"] else None
    objective = answer["objective"]
    rows = [("status", f"{answer['status']}, objective {count(objective['value'])} {objective['unit']}")]
    years: dict[str, float] = {}
    fleet = any(p["fleet"] for p in answer["periods"])
    for period in answer["periods"]:
        made = sum(period["energised" if fleet else "finished"].values())
        years[period["period"][:4]] = years.get(period["period"][:4], 0.0) + made
    rows.append(("energised" if fleet else "finished", "; ".join(f"{count(v)} in {y}" for y, v in years.items())))
    if last is not None:
        bound = sorted(last["binding"], key=lambda b: -(b.get("rent") or 0.0))
        names = [f"{b.get('title') or b['resource']} ({stage_title(b['stage'])})" for b in bound]
        rows.append((f"binds in {last['period']}", _some(names)))
    hours = [c for c in answer["costs"] if last is not None and c["period"] == last["period"]]
    per_sku = {c["sku"]: c["usd_per_gpu_hour"] for c in hours}
    if per_sku:
        rows.append(("USD per GPU-hour", _some([f"{s} {plain(v)}" for s, v in per_sku.items()])))
    rows.append(("folder", str(run.folder or "in memory")))
    return _head(answer.get("title") or run.scenario, f"run {run.id}") + _table(rows)


def _point(point: Any) -> str:
    def band(value: float, ends: tuple[float, float], factor: float, unit: str) -> str:
        return f"{plain(factor * value)} {unit} ({plain(factor * ends[0])} to {plain(factor * ends[1])})"

    rows = [
        ("time to first token", band(point.ttft_s, point.ttft_band_s, 1e3, "ms")),
        ("time per output token", band(point.tpot_s, point.tpot_band_s, 1e3, "ms")),
        (
            "output rate per accelerator",
            band(point.output_tokens_per_s_per_accelerator, point.output_band, 1.0, "token/s"),
        ),
        ("running batch", f"{plain(point.running_batch)} of at most {plain(point.largest_batch)}"),
        ("limited by", str(point.limited_by)),
        ("confidence", str(point.confidence).replace("_", " ")),
    ]
    line = f"on {point.accelerators:g} x {point.hardware}; 90 % bands in brackets"
    return _head(str(point.model), line) + _table(rows)


_MAKERS: dict[str, Callable[[Any], str]] = {
    "scenarios.load.Scenario": _scenario,
    "networkx.classes.multidigraph.MultiDiGraph": _graph,
    "scenarios.runs.Run": _run,
    "econ.performance.serving.OperatingPoint": _point,
}
