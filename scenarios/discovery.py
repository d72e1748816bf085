"""Scenario discovery: in which region of the uncertain inputs does something happen, such as HBM binding?

target      `binding:X@PERIOD`   X (a stage, a resource or a pattern) has the largest rent of the period
            `priced:X@PERIOD`    X has a price at all
            `OUTPUT<VALUE`, `OUTPUT>VALUE`   any output, e.g. `energised:*@2026<9e6`
coverage    share of all draws in which it happens that a rule catches
density     share of the draws inside a rule in which it happens
A classification tree (scikit-learn) finds the rules on two thirds of the draws; coverage and density come from the last
third, which it has not seen. Thresholds are ranks of an input's range (0 its low end, 1 its high end); their 90 %
intervals hold the order of the splits and find each threshold again on bootstrap samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scenarios.errors import did_you_mean
from scenarios.load import Scenario, load_scenario
from scenarios.nodes import Array
from scenarios.output_words import input_title, input_values
from scenarios.outputs import output_error
from scenarios.resolve import resolve

if TYPE_CHECKING:
    from scenarios.resolve import Resolved

__all__ = ["Condition", "DiscoverError", "Discovery", "Rule", "discover", "find_rules"]

Hits = npt.NDArray[np.bool_]
#: Bootstrap samples, and the quantiles of the intervals.
BOOTSTRAPS = 200
_ENDS = (0.05, 0.95)
_DEPTH = 3
#: A rule is kept when it happens in at least this share of the draws inside it, and more often than in all draws.
LEAST_DENSITY = 0.5
_LEAST_DRAWS = 60
#: Unseen draws that a rule must hold, so that its density says something.
_LEAST_INSIDE = 5
#: Rents below this share of the largest one are rounding, not prices.
_SPECK = 1e-9


class DiscoverError(ValueError):
    """The study cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Condition:
    """`low` < rank of `input` <= `high`; None where that side is open. `reading`: the threshold in the input's unit."""

    input: str
    low: float | None
    high: float | None
    low_interval: tuple[float, float] | None = None
    high_interval: tuple[float, float] | None = None
    reading: str = ""
    title: str = ""


@dataclass(frozen=True)
class Rule:
    """A box of conditions with its coverage, density and share of all draws, on draws that the tree did not see."""

    conditions: tuple[Condition, ...]
    coverage: float
    density: float
    mass: float
    coverage_interval: tuple[float, float]
    density_interval: tuple[float, float]

    def words(self) -> str:
        """The rule as a sentence."""
        return " and ".join(_condition_words(c) for c in self.conditions) or "always"


@dataclass
class Discovery:
    """Rules for a target, the best coverage first; `share` is how often it happens in all draws."""

    scenario: str
    target: str
    draws: int
    share: float
    rules: list[Rule] = field(default_factory=list)
    note: str = ""

    def json(self) -> dict[str, Any]:
        """Plain values; each rule with its words."""
        rules = [asdict(r) | {"words": r.words()} for r in self.rules]
        whole = {"scenario": self.scenario, "target": self.target, "draws": self.draws, "share": self.share}
        return whole | {"rules": rules, "note": self.note}


def _condition_words(c: Condition) -> str:
    name = c.title or c.input
    if c.low is not None and c.high is not None:
        text = f"{name} between {_share(c.low, c.low_interval)} and {_share(c.high, c.high_interval)} of its range"
    elif c.high is not None:
        text = f"{name} below {_share(c.high, c.high_interval)} of its range"
    else:
        text = f"{name} above {_share(c.low or 0.0, c.low_interval)} of its range"
    return f"{text} ({c.reading})" if c.reading else text


def _share(value: float, interval: tuple[float, float] | None) -> str:
    return f"{value:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def discover(
    scenario: str | Path | Scenario,
    target: str,
    *,
    inputs: Sequence[str] | None = None,
    draws: int = 400,
    sets: Sequence[tuple[str, Any]] = (),
    seed: int = 0,
    workers: int = 1,
    cluster: str | None = None,
    depth: int = _DEPTH,
    out: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Discovery:
    """Draw the uncertain inputs, solve each draw, and find where the target happens.

    Raises:
        DiscoverError: too few draws, or scikit-learn is not installed. ScenarioError: wrong scenario, input or target.
    """
    from scenarios.sample import sample
    from scenarios.sampling import factors

    _tree_class()
    if draws < _LEAST_DRAWS:
        raise DiscoverError(f"--draws {draws}: rules need at least {_LEAST_DRAWS}")
    loaded = scenario if isinstance(scenario, Scenario) else load_scenario(scenario, sets)
    resolved = resolve(loaded)
    outputs, decide = _target(target, resolved)
    drawn = sample(
        loaded, draws, seed=seed, inputs=inputs, outputs=outputs, workers=workers, cluster=cluster, out=out,
        progress=progress,
    )  # fmt: skip
    good = ~np.isnan(drawn.values).any(axis=1)
    hit = decide(drawn.values[good])
    chosen = factors(resolved, inputs)
    names = [f.name for f in chosen]
    ranks = np.column_stack([drawn.ranks[f.drivers[0]] for f in chosen])[good]
    result = Discovery(loaded.name, target, int(good.sum()), float(hit.mean()))
    if hit.all() or not hit.any():
        result.note = "it happens in every draw" if hit.all() else "it happens in no draw"
        return result
    found = find_rules(names, ranks, hit, depth=depth, seed=seed)
    period = (re.search(r"@(\d{4}[^<>]*)", target) or [None, ""])[1]
    drivers = dict(zip(names, (f.drivers for f in chosen), strict=True))
    result.rules = [_with_readings(r, resolved, drivers, str(period).strip()) for r in found]
    if not found:
        result.note = f"no box of at most {depth} conditions holds it in half of its draws: draw more, or name inputs"
    return result


def _target(text: str, resolved: Resolved) -> tuple[list[str], Callable[[Array], Hits]]:
    """Outputs that a target needs, and how it is decided from them (rows are draws)."""
    match = re.fullmatch(r"(binding|priced):([^@<>]+)@([^@<>]+)", text.strip())
    if match is None:
        return _threshold(text)
    kind, wanted, period = match.groups()
    resources = resolved.network.resources
    mine = [fnmatchcase(r, wanted) or row.stage == wanted for r, row in resources.items()]
    if not any(mine):
        known = [*resources, *(row.stage for row in resources.values())]
        raise output_error(text, f"no stage or resource {wanted!r}{did_you_mean(wanted, known)}")
    outputs = [f"rent:{r}@{period}" for r in resources]
    flags = np.array(mine)
    if kind == "priced":
        return outputs, lambda rents: np.asarray((rents[:, flags] > _SPECK * rents.max(initial=0.0)).any(axis=1))
    groups = [wanted if m else (row.stage or r) for m, (r, row) in zip(mine, resources.items(), strict=True)]
    return outputs, lambda rents: _leads(rents, groups, wanted)


def _leads(rents: Array, groups: Sequence[str], wanted: str) -> Hits:
    """Whether the rents of `wanted` are the largest of all groups, and positive."""
    sums = {g: rents[:, [k for k, other in enumerate(groups) if other == g]].sum(axis=1) for g in dict.fromkeys(groups)}
    mine = sums.pop(wanted)
    best = np.max(list(sums.values()), axis=0) if sums else np.zeros(len(mine))
    return np.asarray((mine > 0) & (mine >= best))


def _threshold(text: str) -> tuple[list[str], Callable[[Array], Hits]]:
    match = re.fullmatch(r"([^<>]+)([<>])([^<>]+)", text.strip())
    try:
        limit = float(match[3]) if match else float("nan")
    except ValueError:
        limit = float("nan")
    if match is None or np.isnan(limit):
        raise output_error(
            text, "a target is binding:STAGE@PERIOD, priced:RESOURCE@PERIOD, OUTPUT<VALUE or OUTPUT>VALUE"
        )
    below = match[2] == "<"
    return [match[1].strip()], lambda values: np.asarray(values[:, 0] < limit if below else values[:, 0] > limit)


def find_rules(
    names: Sequence[str], ranks: Array, hit: Hits, *, depth: int = _DEPTH, seed: int = 0, bootstraps: int = BOOTSTRAPS
) -> list[Rule]:
    """Boxes of a classification tree in which `hit` is dense, the best coverage first (siblings joined).

    `ranks`: a row a draw, a column an input. Empty where no leaf reaches `LEAST_DENSITY`.

    Raises:
        DiscoverError: scikit-learn is not installed, or there are fewer than 60 draws.
    """
    if len(hit) < _LEAST_DRAWS:
        raise DiscoverError(f"{len(hit)} draws with an optimum: rules need at least {_LEAST_DRAWS}")
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(hit))
    cut = 2 * len(hit) // 3
    fit, rest = order[:cut], order[cut:]
    if hit[fit].all() or not hit[fit].any():
        return []
    tree = _fit(ranks[fit], hit[fit], depth, seed).tree_
    spread = _bootstrap_thresholds(tree, ranks[fit], hit[fit], generator, bootstraps)
    ways = _boxes(tree, max(LEAST_DENSITY, float(hit[fit].mean())))
    found = [_rule(w, names, tree, spread, ranks[rest], hit[rest], generator, bootstraps) for w in ways]
    least = max(LEAST_DENSITY, float(hit[rest].mean()))
    kept = [r for r in found if r.mass * len(rest) >= _LEAST_INSIDE and r.density >= least]
    return sorted(kept, key=lambda r: -r.coverage)


def _tree_class() -> Any:
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError as exc:
        raise DiscoverError("rules need scikit-learn: pip install 'wafer2token[discover]'") from exc
    return DecisionTreeClassifier


def _fit(ranks: Array, hit: Hits, depth: int, seed: int) -> Any:
    least = max(5, len(hit) // 25)
    maker = _tree_class()(max_depth=depth, min_samples_leaf=least, min_impurity_decrease=0.005, random_state=seed)
    return maker.fit(ranks, hit)


#: The way down to a box: (node, whether the rank is at or below its threshold).
Way = tuple[tuple[int, bool], ...]


def _boxes(tree: Any, least: float, node: int = 0, way: Way = ()) -> list[Way]:
    """Ways to the boxes in which at least `least` of the draws hit; where both sides of a split do, to the split."""
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == right:
        counts = tree.value[node][0]
        return [way] if float(counts[1] / counts.sum()) >= least else []
    below, above = _boxes(tree, least, left, (*way, (node, True))), _boxes(tree, least, right, (*way, (node, False)))
    whole = below == [(*way, (node, True))] and above == [(*way, (node, False))]
    return [way] if whole else below + above


def _bootstrap_thresholds(
    tree: Any, ranks: Array, hit: Hits, generator: np.random.Generator, bootstraps: int
) -> dict[int, Array]:
    """Thresholds of each split found again on bootstrap samples, the inputs of the splits held."""
    found: dict[int, list[float]] = {}
    for _ in range(bootstraps):
        rows = generator.integers(0, len(hit), len(hit))
        stack = [(0, rows)]
        while stack:
            node, inside = stack.pop()
            if tree.children_left[node] == tree.children_right[node]:
                continue
            column = ranks[inside, tree.feature[node]]
            threshold = _best_split(column, hit[inside])
            if threshold is None:
                continue
            found.setdefault(node, []).append(threshold)
            below = column <= threshold
            stack += [(int(tree.children_left[node]), inside[below]), (int(tree.children_right[node]), inside[~below])]
    return {node: np.array(values) for node, values in found.items()}


def _best_split(column: Array, hit: Hits) -> float | None:
    """Threshold of one input with the least Gini impurity, each side keeping a few draws; None where none splits."""
    order = np.argsort(column, kind="stable")
    x, y = column[order], hit[order].astype(float)
    n, least = len(y), max(3, len(y) // 25)
    if n < 2 * least or y.min() == y.max():
        return None
    left = np.cumsum(y)[:-1]
    count = np.arange(1, n)
    right = y.sum() - left
    impurity = left * (1 - left / count) + right * (1 - right / (n - count))
    allowed = (count >= least) & (n - count >= least) & (x[1:] > x[:-1])
    if not allowed.any():
        return None
    k = int(np.argmin(np.where(allowed, impurity, np.inf)))
    return float((x[k] + x[k + 1]) / 2)


def _rule(
    way: Way,
    names: Sequence[str],
    tree: Any,
    spread: dict[int, Array],
    ranks: Array,
    hit: Hits,
    generator: np.random.Generator,
    bootstraps: int,
) -> Rule:
    sides: dict[str, dict[str, int]] = {}
    inside = np.ones(len(hit), dtype=bool)
    for node, below in way:
        column = ranks[:, tree.feature[node]]
        inside &= column <= tree.threshold[node] if below else column > tree.threshold[node]
        side = sides.setdefault(names[tree.feature[node]], {})
        held = side.get("high" if below else "low")
        tighter = held is None or (tree.threshold[node] < tree.threshold[held]) == below
        if tighter:
            side["high" if below else "low"] = node
    conditions = tuple(_condition(name, side, tree, spread) for name, side in sides.items())
    coverage, density = _score(inside, hit)
    drawn = generator.integers(0, len(hit), (bootstraps, len(hit)))
    scores = np.array([_score(inside[rows], hit[rows]) for rows in drawn])
    ends = [_interval(column[~np.isnan(column)]) for column in scores.T]
    return Rule(conditions, coverage, density, float(inside.mean()), ends[0], ends[1])


def _interval(values: Array) -> tuple[float, float]:
    """Ends of the interval; NaN where no sample had anything to share."""
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, _ENDS)
    return float(low), float(high)


def _score(inside: Hits, hit: Hits) -> tuple[float, float]:
    """Coverage and density; NaN where there is nothing to share."""
    both, all_hits, size = float((inside & hit).sum()), float(hit.sum()), float(inside.sum())
    return (both / all_hits if all_hits else float("nan")), (both / size if size else float("nan"))


def _condition(name: str, side: dict[str, int], tree: Any, spread: dict[int, Array]) -> Condition:
    def end(which: str) -> tuple[float | None, tuple[float, float] | None]:
        node = side.get(which)
        if node is None:
            return None, None
        values = spread.get(node)
        low_high = np.quantile(values, _ENDS) if values is not None else None
        return float(tree.threshold[node]), None if low_high is None else (float(low_high[0]), float(low_high[1]))

    (low, low_interval), (high, high_interval) = end("low"), end("high")
    return Condition(name, low, high, low_interval, high_interval)


def _with_readings(rule: Rule, resolved: Resolved, drivers: dict[str, tuple[str, ...]], period: str) -> Rule:
    conditions = tuple(
        replace(c, reading=_reading(c, resolved, drivers[c.input], period), title=input_title(c.input, resolved))
        for c in rule.conditions
    )
    return replace(rule, conditions=conditions)


def _reading(c: Condition, resolved: Resolved, drivers: tuple[str, ...], period: str) -> str:
    """The thresholds as values of a number that moves with the input, in the target's period."""
    ranks = [0.0, 1.0, *(rank for rank in (c.low, c.high) if rank is not None)]
    found = input_values(resolved, drivers, ranks, period)
    if found is None:
        return ""
    low, high, *limits = found.values
    words = ["above", "at most"] if high >= low else ["below", "at least"]
    chosen = [word for word, rank in zip(words, (c.low, c.high), strict=True) if rank is not None]
    ends = [f"{word} {value:.4g}" for word, value in zip(chosen, limits, strict=True)]
    unit = "" if found.unit == "fraction" else f" {found.unit}"
    return f"{found.name} {' and '.join(ends)}{unit} in {found.period}"
