"""Words of the figures: no two texts overlap, none leaves the canvas, whatever the names, periods and products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from reports.figures.cases import headline_curve, scenario_panels, scoreboard
from reports.figures.econ import cost_front, cost_waterfall, headline_tornado, others_compared
from reports.figures.fan import draw_timeline, fan_chart
from reports.figures.graph import stage_graph
from reports.figures.making import stack_heights, unit_cost_waterfalls
from reports.figures.sankey import supply_sankey
from reports.figures.style import STAGE_ORDER, Drawn, FigureCard
from reports.figures.supply import (
    accelerator_stack,
    binding_timeline,
    bottleneck_prices,
    potentials,
    power_limits,
    utilisation_map,
)
from reports.figures.yield_power_map import binding_map
from tests.reports.figure_tools import texts_apart

LONG = "Energised AI power of all very large and not so large campuses in the United States of America and Canada"
TITLES = {False: "Short", True: LONG}
PERIODS = {n: [f"{2024 + k // 4}-Q{k % 4 + 1}" for k in range(n)] for n in (1, 8, 20)}


def words_hold(card: FigureCard) -> None:
    """Headline of at most ten words, subtitle with its scope, alternative text that ends with the finding."""
    assert 0 < len(card.headline.split(" ")) <= 10, card.headline
    assert card.subtitle.endswith("test") and card.headline in card.alt and len(card.data) > 0


def one_scale(card: FigureCard) -> None:
    """No second axis over the first; bars from zero (those of the tornado start at the base); panels share scales."""
    assert isinstance(card.svg, Drawn)
    shown = [a for a in card.svg.figure.axes if a.get_visible()]
    places = [tuple(np.round(a.get_position().bounds, 6)) for a in shown]
    assert len(set(places)) == len(places), "two axes lie on one another"
    barred = [a for a in shown if a.containers]
    for axes in [] if card.id == "tornado" else barred:
        upright = axes.containers[0].orientation == "vertical"
        assert (axes.get_ylim() if upright else axes.get_xlim())[0] == 0.0
    assert len({a.get_xlim() for a in barred}) <= 1 and len({a.get_ylim() for a in barred}) <= 1


def rising(n: int, top: float) -> list[float]:
    return [float(v) for v in np.linspace(0.2 * top, top, n)]


def name(k: int, long: bool) -> str:
    return f"{LONG}, part {k}" if long else f"Part {k}"


def timeline(n: int, many: int, long: bool) -> FigureCard:
    rows = [(p, s, 1.0 + k) for p in PERIODS[n] for k, s in enumerate(STAGE_ORDER[:many])]
    return binding_timeline(pd.DataFrame(rows, columns=["period", "stage", "rent"]), PERIODS[n], "test")


def use(n: int, many: int, long: bool) -> FigureCard:
    rows = [
        (f"r{k}", name(k, long), STAGE_ORDER[k % 7], p, v, ("full", "share", "")[k % 3])
        for k in range(many)
        for p, v in zip(PERIODS[n], rising(n, 1.0), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["resource", "title", "stage", "period", "utilisation", "binds"])
    return utilisation_map(table, PERIODS[n], PERIODS[n][-1], "test")


def stack(n: int, many: int, long: bool) -> FigureCard:
    skus = {f"sku{k}": name(k, long) for k in range(many)}
    rows = [
        (p, s, q, v * (k + 1))
        for q in ("finished", "energised")
        for k, s in enumerate(skus)
        for p, v in zip(PERIODS[n], rising(n, 9e5), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["period", "sku", "quantity", "value"])
    return accelerator_stack(table, PERIODS[n], "test", skus)


def prices(n: int, many: int, long: bool) -> FigureCard:
    rows = [
        (p, f"r{k}", name(k, long), STAGE_ORDER[k % 7], v)
        for k in range(many)
        for p, v in zip(PERIODS[n], rising(n, 2.0), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["period", "resource", "title", "stage", "usd_per_gpu_hour"])
    table["reference"] = [name(k % 3, long) for k in range(len(table))]
    return bottleneck_prices(table, PERIODS[n], "test")


def power(n: int, many: int, long: bool) -> FigureCard:
    table = pd.DataFrame({"period": PERIODS[n], "used_mw": rising(n, 4e4), "capacity_mw": rising(n, 5e4)})
    return power_limits(
        table.assign(low_mw=1e4, high_mw=9e4 * many),
        PERIODS[n],
        "Energised power is full from 2026",
        "test",
        f"gap: power not used in {name(0, long)}",
    )


def waiting(n: int, many: int, long: bool) -> FigureCard:
    columns = {"without_power_rows_mw": rising(n, 9e4 * many), "without_chip_rows_mw": rising(n, 4e4)}
    return potentials(pd.DataFrame({"period": PERIODS[n], **columns, "built_mw": rising(n, 4e4)}), PERIODS[n], "test")


def sankey(n: int, many: int, long: bool) -> FigureCard:
    regions = [f"energised:r{k}" for k in range(many)]
    rows = [("start", "fab", "start", 120.0), ("fab", "packaging", "flow", 100.0), ("fab", "loss", "loss", 20.0)]
    rows += [("packaging", "energised", "flow", 97.0), ("packaging", "stock", "stock", 3.0)]
    rows += [("energised", r, "flow", 97.0 / many) for r in regions]
    table = pd.DataFrame(rows, columns=["source", "target", "kind", "accelerators"])
    return supply_sankey(table, "test", {r.partition(":")[2]: name(k, long) for k, r in enumerate(regions)})


def graph(n: int, many: int, long: bool) -> FigureCard:
    nodes = [(f"n{k}", name(k, long), "packaging" if k else "fab", 0.5, k % 2 == 0) for k in range(many + 1)]
    links = [("n0", f"n{k}", 10.0 * k) for k in range(1, many + 1)]
    return stage_graph(
        pd.DataFrame(nodes, columns=["node", "title", "stage", "utilisation", "binds"]),
        pd.DataFrame(links, columns=["source", "target", "accelerators"]),
        PERIODS[n][-1],
        "test",
    )


def fan(n: int, many: int, long: bool) -> FigureCard:
    middle = np.array(rising(n, 1e6 * many))
    ends = {q: middle * f for q, f in zip(("q05", "q25", "q50", "q75", "q95"), (0.6, 0.9, 1, 1.1, 1.5), strict=True)}
    table = pd.DataFrame({"period": PERIODS[n], **ends, "plan": middle})
    return fan_chart(table, PERIODS[n], TITLES[long], "accelerators a quarter", 500, "test", origin=PERIODS[n][n // 2])


def draws(n: int, many: int, long: bool) -> FigureCard:
    rows = [(p, s, 0.9, True) for p in PERIODS[n] for s in [*STAGE_ORDER[:many], "nothing"]]
    table = pd.DataFrame(rows, columns=["period", "stage", "share", "plan"])
    return draw_timeline(table, PERIODS[n], 500, "test")


def waterfall(n: int, many: int, long: bool) -> FigureCard:
    rows = [(name(k, long), 0.2 + 0.1 * k, "part") for k in range(many)]
    return cost_waterfall(pd.DataFrame(rows, columns=["part", "value", "kind"]), TITLES[long], "test")


def tornado(n: int, many: int, long: bool) -> FigureCard:
    rows = [
        (name(k, long), 8.0 - 0.2 * k, 9.0 + 0.2 * k, 12345678.0, 98765432.0, "accelerator/period") for k in range(many)
    ]
    columns = ["title", "at_low", "at_high", "low_input", "high_input", "input_unit"]
    return headline_tornado(pd.DataFrame(rows, columns=columns), 8.5, "million accelerators", "test")


def front(n: int, many: int, long: bool) -> FigureCard:
    skus = [f"s{k}" for k in range(min(many, 4))]
    models = [f"m{k}" for k in range(3)]
    rows = [(m, s, 3.0 * v, 9.0 / v, 5.0 / v, 20.0 / v) for m in models for s in skus for v in (1, 3, 9, 27)]
    columns = ["model", "sku", "tokens_per_s_per_user", "usd_per_mtoken", "low", "high"]
    titles = {s: name(k, long) for k, s in enumerate([*skus, *models])}
    return cost_front(pd.DataFrame(rows, columns=columns), "test", titles)


def others(n: int, many: int, long: bool) -> FigureCard:
    rows = [(name(k, long), "2025", 4e6, 5e6, 3e6, 6e6 + k) for k in range(many)]
    table = pd.DataFrame(rows, columns=["label", "year", "ours", "theirs", "low", "high"])
    return others_compared(table, "test")


def scores(n: int, many: int, long: bool) -> FigureCard:
    head = {"outcome": 3e6, "outcome_low": 2e6, "outcome_high": 4e6, "value": 2e6, "low": 1e6, "high": 3.5e6}
    more = {"inside": True, "naive_last": 1e6, "score": 2.0, "score_last": 4.0}
    rows = [
        {"origin": f"202{4 + k % 2}-01-01", "title": name(k, long), "period": "2025", **head, **more}
        for k in range(many)
    ]
    return scoreboard(pd.DataFrame(rows), "test")


def cases(n: int, many: int, long: bool) -> FigureCard:
    rows = [
        (f"s{k}", name(k, long), p, v * (1 + 0.1 * k))
        for k in range(many + 1)
        for p, v in zip(PERIODS[n], rising(n, 2e6), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["scenario", "title", "period", "value"])
    return scenario_panels(table, PERIODS[n], "s0", "accelerators energised a quarter", "test")


def curve(n: int, many: int, long: bool) -> FigureCard:
    x = np.linspace(0.5, 1.5, max(3, n))
    limits = [f"l{k * many // len(x)}" for k in range(len(x))]
    table = pd.DataFrame({"input": x, "output": 8e6 * np.minimum(x, 1.1), "binding": limits})
    titles = {f"l{k}": name(k, long) for k in range(many)}
    names = (f"{TITLES[long]}, percent of base", "accelerators energised in 2026")
    return headline_curve(table, names, "test", titles, base=1.0, target=7e6, evidence=[0.8, 1.2])


def crossing(n: int, many: int, long: bool) -> FigureCard:
    scale = [float(v) for v in np.linspace(0.8, 1.2, 7)]
    limits = [[f"l{(i + 2 * j) * many // 20 % many}" for i in range(7)] for j in range(7)]
    values = [[8e6 * a * b for a in scale] for b in scale]
    found = {"x": "x", "y": "y", "x_scale": scale, "y_scale": scale, "outputs": {"o": values}, "binding": limits}
    titles = {"x": TITLES[long], "y": TITLES[long], **{f"l{k}": name(k, long) for k in range(many)}}
    return binding_map(found, "o", titles, "accelerators", "test", {}, {"x": (0.7, 1.1), "y": (0.9, 1.3)})


def packages(n: int, many: int, long: bool) -> FigureCard:
    parts = ("raw_silicon", "memory", "assembly", "test", "total")
    skus = [f"s{k}" for k in range(min(many, 6))]
    rows = [(s, p, 1e3 * (4 if p == "total" else 1), 900.0, 5e3) for s in skus for p in parts]
    table = pd.DataFrame(rows, columns=["sku", "part", "value", "low", "high"])
    return unit_cost_waterfalls(table, {skus[0]: 5e3}, {s: name(k, long) for k, s in enumerate(skus)})


def heights(n: int, many: int, long: bool) -> FigureCard:
    rows = [(f"hbm{m}", h, 0.9 - 0.02 * h, 0.5, 0.95, h == 8) for m in range(min(many, 4)) for h in (8, 12, 16)]
    return stack_heights(pd.DataFrame(rows, columns=["memory", "height", "value", "low", "high", "quoted"]))


Maker = Callable[[int, int, bool], FigureCard]
#: Figures, and whether their subtitle is given by the caller.
MAKERS: dict[Maker, bool] = {
    timeline: True, use: True, stack: True, prices: True, power: True, waiting: True, sankey: True, graph: True,
    fan: True, draws: True, waterfall: True, tornado: True, front: True, others: True, scores: True, cases: True,
    curve: True, crossing: True, packages: False, heights: False,
}  # fmt: skip


@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("periods", "many", "long"), [(8, 3, False), (1, 1, True), (20, 20, True)])
def test_texts_stay_apart_and_on_the_canvas(make: Maker, periods: int, many: int, long: bool) -> None:
    card = make(periods, many, long)
    assert texts_apart(card) >= 2
    one_scale(card)
    if MAKERS[make]:
        words_hold(card)


def test_the_check_of_overlaps_can_fail() -> None:
    card = waterfall(1, 3, False)
    assert isinstance(card.svg, Drawn)
    axes = card.svg.figure.axes[0]
    for _ in range(2):
        axes.text(0.5, 0.5, "twice", transform=axes.transAxes)
    with pytest.raises(AssertionError, match="twice"):
        texts_apart(card)


def test_the_check_of_the_canvas_can_fail() -> None:
    card = waterfall(1, 3, False)
    assert isinstance(card.svg, Drawn)
    card.svg.figure.text(0.99, 0.5, "runs out of the canvas")
    with pytest.raises(AssertionError, match="runs out"):
        texts_apart(card)
