"""A value of the language to a node over the periods: units, facts, series, distributions, arithmetic, edits.

Default spreads, by a stated rule (they feed tornado charts and draws; a deterministic run is not touched by them):
a range of the source or of the file is used as it stands; an estimate without a range gets +-15 %, an illustrative
value +-25 %; published, measured and plain numbers get none. A spread is two half triangles with the value as median.

Arithmetic works in root units with counts dropped; a plain number in it is a pure number, and a plain result is taken
in the unit of the field. The terms of a sum that carry no unit are in the unit of the field too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from scenarios.derived import DerivedError, derived_figure
from scenarios.horizon import boundaries, place, window
from scenarios.measures import Measure, UnitError, describe, natural, target, wanted
from scenarios.nodes import (
    Array,
    Constant,
    Delayed,
    Fill,
    Grown,
    Mapped,
    Node,
    Product,
    Ratio,
    Reference,
    Shape,
    Source,
    Spread,
    Sum,
    Varied,
)
from scenarios.value_units import Names, Units, unit_in, units_written, written_unit
from scenarios.values import (
    ByPeriod,
    Distribution,
    Edit,
    FactForm,
    ManufacturingForm,
    Number,
    PathForm,
    ProductForm,
    RatioForm,
    SeriesForm,
    StatedForm,
    SumForm,
)
from supply.facts import Catalog, FactError
from supply.network import Horizon

__all__ = ["RULE_SPREAD", "Evaluator", "ValueFaultError"]

#: Half width of the default spread of a value without a range, by kind.
RULE_SPREAD = {"estimate": 0.15, "illustrative": 0.25}
#: The node of another path, its measure, or a ValueFaultError for an unknown path or a circle.
Lookup = Callable[[str], tuple[Node, Measure]]


class ValueFaultError(ValueError):
    """A value that cannot be evaluated; the caller adds the place."""


class Evaluator:
    """Evaluates values of one scenario: its horizon, its facts, and the numbers that others refer to."""

    def __init__(
        self, horizon: Horizon, facts: Catalog, lookup: Lookup, memory: dict[tuple[str, str], Any] | None = None
    ) -> None:
        self.horizon = horizon
        self.facts = facts
        self.lookup = lookup
        self.memory = {} if memory is None else memory  # levels and points of series that were read already

    def node(self, form: Any, measure: Measure, driver: str) -> Node:
        """The node of a value in the unit of a field.

        Raises:
            ValueFaultError: unknown fact, refused kind, or a unit that does not fit.
        """
        self._counter, self._driver = 0, driver
        try:
            if measure.kind == "survival" and self.horizon.months != 3:
                quarter = self._field(form, Measure("ratio"), False)
                return Mapped(quarter, lambda a: np.power(a, self.horizon.months / 3.0), quarter.source)
            return self._field(form, measure, False)
        except (UnitError, FactError, DerivedError) as exc:
            raise ValueFaultError(str(exc)) from exc

    def _name(self) -> str:
        """Driver of an assumption: the path, with a number where one path holds several."""
        self._counter += 1
        return self._driver if self._counter == 1 else f"{self._driver}#{self._counter}"

    # ---- in the unit of a field
    def _field(self, form: Any, measure: Measure, marked: bool) -> Node:
        if isinstance(form, (ProductForm, RatioForm)):
            return self._fitted(form, measure, marked)
        if isinstance(form, SumForm):
            parts = tuple(self._field(term, measure, marked) for term in form.sum)
            return Sum(parts, _joined(parts, form.note))
        if isinstance(form, PathForm):
            return self._fitted(form, measure, marked)
        if isinstance(form, ByPeriod):
            return self._by_period(form, lambda inner: self._field(inner, measure, marked))
        if isinstance(form, StatedForm):
            marked = marked or form.kind == "illustrative"
            return self._stated(form, self._field(form.value, measure, marked), Units(self.horizon, measure), marked)
        return self._atom(form, Units(self.horizon, measure), marked)

    def _fitted(self, form: Any, measure: Measure, marked: bool) -> Node:
        node, names = self._natural(form, marked, "")
        if not names:
            return node
        for size, wanted_names in target(measure, self.horizon):
            if wanted_names == names:
                return node if size == 1.0 else _times(node, 1.0 / size)
        written = units_written(form, self.facts)
        told = f"its units ({', '.join(written)}) leave {describe(names)}" if written else f"it is in {describe(names)}"
        raise UnitError(f"{told}, but the field is {wanted(measure)}; counts (die, wafer ...) drop out of arithmetic")

    # ---- in root units, counts dropped
    def _natural(self, form: Any, marked: bool, default: str) -> tuple[Node, Names]:
        if isinstance(form, ProductForm):
            return self._product(form, marked)
        if isinstance(form, RatioForm):
            top, above = self._natural(form.ratio[0], marked, "")
            bottom, below = self._natural(form.ratio[1], marked, "")
            if np.any(bottom.value == 0.0):
                raise ValueFaultError("the ratio divides by zero in some period")
            return Ratio((top, bottom), _joined((top, bottom), form.note)), _combine(above, below, -1.0)
        if isinstance(form, SumForm):
            return self._natural_sum(form, marked)
        if isinstance(form, PathForm):
            node, measure = self.lookup(form.path)
            size, names = target(measure, self.horizon)[0] if measure.word or measure.kind != "own" else (1.0, {})
            return Reference(form.path, node, size, node.source), names
        default = default or unit_in(form, self.facts)
        if isinstance(form, ByPeriod):
            kinds: list[Names] = []

            def entry(inner: Any) -> Node:
                node, names = self._natural(inner, marked, default)
                kinds.append(names)
                return node

            node = self._by_period(form, entry)
            if any(names != kinds[0] for names in kinds):
                raise UnitError(f"the periods have different units: {describe(kinds[0])} and others")
            return node, kinds[0]
        units = Units(self.horizon, None, default)
        if isinstance(form, StatedForm):
            marked = marked or form.kind == "illustrative"
            inner, names = self._natural(form.value, marked, default)
            node = self._stated(form, inner, units, marked)
            if form.range is not None and units.names is not None and units.names != names:
                raise UnitError(f"the range is in {describe(units.names)}, the value in {describe(names)}")
            return node, names
        node = self._atom(form, units, marked)
        return node, units.names or {}

    def _product(self, form: ProductForm, marked: bool) -> tuple[Node, Names]:
        names: Names = {}
        parts = []
        for factor in form.product:
            node, more = self._natural(factor, marked, "")
            names = _combine(names, more, 1.0)
            parts.append(node)
        return Product(tuple(parts), _joined(parts, form.note)), names

    def _natural_sum(self, form: SumForm, marked: bool) -> tuple[Node, Names]:
        terms = [self._natural(term, marked, "") for term in form.sum]
        first = terms[0][1]
        other = next((names for _, names in terms if names != first), None)
        if other is not None:
            raise UnitError(f"the sum adds {describe(first)} and {describe(other)}: give every term a unit")
        parts = tuple(node for node, _ in terms)
        return Sum(parts, _joined(parts, form.note)), first

    # ---- single values
    def _atom(self, form: Any, units: Units, marked: bool) -> Node:
        if isinstance(form, Number):
            return _constant(
                units(form.magnitude, form.unit), self.horizon.length, Source.same(self.horizon.length, "stated")
            )
        if isinstance(form, FactForm):
            return self._fact(form, units, marked)
        if isinstance(form, SeriesForm):
            return self._series(form, units, marked)
        if isinstance(form, ManufacturingForm):
            return self._manufacturing(form, units)
        if isinstance(form, Distribution):
            shape = _shape(form, lambda n: None if n is None else units(n.magnitude, n.unit))
            source = Source.same(self.horizon.length, form.kind or "distribution", (), form.note, form.distribution)
            return Varied(shape, self._name(), source)
        raise ValueFaultError(f"{form!r} is not a value")

    def _fact(self, form: FactForm, units: Units, marked: bool) -> Node:
        fact = self.facts[form.fact]
        if fact.kind == "placeholder":
            raise ValueFaultError(f"fact {fact.id} is a placeholder ({fact.note or fact.source}): use a sourced fact")
        value, low, high = (units(x, written_unit(fact.unit)) * form.scale for x in (fact.number, *fact.range))
        kind = "illustrative" if marked else fact.kind
        stated = low != high and (fact.low is not None or fact.high is not None)
        spread = "source range" if stated else ""
        source = Source.same(self.horizon.length, kind, (fact.id,), form.note, spread)
        if stated:
            return _spread(value, min(low, high), max(low, high), f"fact {fact.id}", source)
        return _by_rule(value, kind, f"fact {fact.id}", source)

    def _series(self, form: SeriesForm, units: Units, marked: bool) -> Node:
        series = self.facts.series(form.series)
        if series.outcome_derived and not marked:
            raise ValueFaultError(
                f"series {series.id} derives from shipments or accelerator revenue, an outcome: use another input, or "
                "mark it "
                "{value: {series: ...}, kind: illustrative, note: why}"
            )
        columns = [
            self._levels(form.series, c) * units(1.0, written_unit(series.unit)) * form.scale
            for c in ("value", "low", "high")
        ]
        nearest = self._points(form.series)
        kinds = tuple("illustrative" if marked else p.kind for p in nearest)
        notes = (form.note,) if form.note else ()
        source = Source(tuple((p.id,) for p in nearest), kinds, notes, "source range")
        if form.column != "value":
            index = ("value", "low", "high").index(form.column)
            return Constant(columns[index], Source(source.facts, source.kinds, notes))
        low, high = np.minimum(columns[1], columns[2]), np.maximum(columns[1], columns[2])
        return _spread(columns[0], low, high, f"series {series.id}", source)

    def _levels(self, series_id: str, column: str) -> Array:
        """Mean level of each period for levels dated at quarter ends (a rate per month, MW); else the quarter's."""
        if (series_id, column) not in self.memory:
            self.memory[series_id, column] = self._read_levels(series_id, column)
        return np.asarray(self.memory[series_id, column])

    def _read_levels(self, series_id: str, column: str) -> Array:
        series = self.facts.series(series_id)
        days = boundaries(self.horizon)
        per_month = natural(written_unit(series.unit))[1] == {"second": -1.0} and not series.unit.endswith("/quarter")
        if not per_month and series.unit not in ("MW", "GW"):
            return np.asarray(series.levels(days[1:], column))
        ends = np.asarray(series.levels(days, column))
        return np.asarray(0.5 * (ends[1:] + ends[:-1]))

    def _points(self, series_id: str) -> list[Any]:
        """The point that each period rests on: its own quarter, or the nearest one."""
        if (series_id, "points") not in self.memory:
            placed = [(place(self.horizon, p.period, end=True), p) for p in self.facts.series(series_id).points]
            periods = range(self.horizon.length)
            self.memory[series_id, "points"] = [
                min(placed, key=lambda item: (abs(item[0] - t), -item[0]))[1] for t in periods
            ]
        return list(self.memory[series_id, "points"])

    def _manufacturing(self, form: ManufacturingForm, units: Units) -> Node:
        ends = boundaries(self.horizon)
        middle = [a + (b - a) / 2 for a, b in pairwise(ends)]
        figure = derived_figure(form.manufacturing, middle, self.facts)
        factor = units(1.0, figure.unit) * form.scale
        value, low, high = (np.asarray(column) * factor for column in (figure.values, figure.low, figure.high))
        source = Source.same(self.horizon.length, "derived", figure.facts, form.note or figure.note, "derived range")
        return _spread(value, np.minimum(low, high), np.maximum(low, high), figure.driver, source)

    # ---- compound values
    def _stated(self, form: StatedForm, inner: Node, units: Units, marked: bool) -> Node:
        length = self.horizon.length
        kinds = ("illustrative",) * length if form.kind == "illustrative" else inner.source.kinds
        notes = tuple(dict.fromkeys((*inner.source.notes, *((form.note,) if form.note else ()))))
        if form.range is None:
            source = Source(inner.source.facts, kinds, notes, inner.source.spread)
            if inner.drivers() or not marked:
                return _resourced(inner, source)
            return _by_rule(inner.value, "illustrative", self._name(), source)
        low, high = (units(n.magnitude, n.unit) for n in form.range)
        value = inner.value
        if np.any(value < low - 1e-12 * abs(low)) or np.any(value > high + 1e-12 * abs(high)):
            raise ValueFaultError(
                f"the range [{form.range[0].magnitude:g}, {form.range[1].magnitude:g}] does not hold the value "
                f"{value[0]:g}: widen it, or change the value"
            )
        return _spread(value, low, high, self._name(), Source(inner.source.facts, kinds, notes, "stated range"))

    def _by_period(self, form: ByPeriod, evaluate: Callable[[Any], Node]) -> Node:
        if not form.entries:
            raise ValueFaultError("values by period need at least one period, e.g. {2026-Q1: 5}")
        placed = sorted(
            ((place(self.horizon, p), evaluate(v)) for p, v in form.entries.items()), key=lambda item: item[0]
        )
        starts = [start for start, _ in placed]
        periods = np.arange(self.horizon.length)
        weights = np.array([_fill_weight(periods, starts, k, form.fill) for k in range(len(placed))])
        parts = tuple(node for _, node in placed)
        holder = [max((k for k, start in enumerate(starts) if start <= t), default=0) for t in periods]
        facts = tuple(parts[k].source.facts[t] for t, k in enumerate(holder))
        kinds = tuple(parts[k].source.kinds[t] for t, k in enumerate(holder))
        whole = _joined(parts, "")
        return Fill(parts, Source(facts, kinds, whole.notes, whole.spread), weights)

    # ---- edits
    def edited(self, base: Node | None, edit: Edit, measure: Measure, path: str, note: str) -> Node:
        """The node after one edit.

        Raises:
            ValueFaultError: an edit of a value that is absent, or a value that cannot be evaluated.
        """
        inside = window(self.horizon, edit.start, edit.end)
        mask = np.zeros(self.horizon.length)
        mask[inside] = 1.0
        if edit.replace is not None:
            new = self.node(edit.replace, measure, path)
            if base is None and not np.all(mask):
                raise ValueFaultError("there is no inherited value outside `from` and `to`: give one for all periods")
            return new if base is None or bool(np.all(mask)) else _patched(base, new, mask, note)
        if base is None:
            raise ValueFaultError("there is no inherited value to edit: give a value instead")
        if edit.delay is not None:
            periods = float(self.node(edit.delay, Measure("periods"), path).value[0])
            return Delayed(base, periods, inside, _noted(base.source, note))
        if edit.add is not None:
            extra = self.node(edit.add, measure, f"{path} (add)")
            return Fill((base, extra), _joined((base, extra), note), np.array([np.ones_like(mask), mask]))
        if edit.scale_growth is not None:
            factor = self.node(edit.scale_growth, Measure("ratio"), f"{path} (scale_growth)")
            return Grown((base, factor), _joined((base, factor), note), inside)
        factor = self.node(edit.scale, Measure("ratio"), f"{path} (scale)")
        scaled = Product((base, factor), _joined((base, factor), note))
        return scaled if bool(np.all(mask)) else _patched(base, scaled, mask, note)


def _patched(base: Node, new: Node, mask: Array, note: str) -> Node:
    facts = tuple(new.source.facts[t] if on else base.source.facts[t] for t, on in enumerate(mask))
    kinds = tuple(new.source.kinds[t] if on else base.source.kinds[t] for t, on in enumerate(mask))
    whole = _joined((base, new), note)
    return Fill((base, new), Source(facts, kinds, whole.notes, whole.spread), np.array([1.0 - mask, mask]))


def _joined(parts: Sequence[Node], note: str) -> Source:
    return _noted(Source.joined([p.source for p in parts]), note)


def _noted(source: Source, note: str) -> Source:
    if not note or note in source.notes:
        return source
    return Source(source.facts, source.kinds, (*source.notes, note), source.spread)


def _times(node: Node, factor: float) -> Node:
    return Fill((node,), node.source, np.full((1, node.length), factor))


def _resourced(node: Node, source: Source) -> Node:
    return Fill((node,), source, np.ones((1, node.length)))


def _constant(value: Any, length: int, source: Source) -> Constant:
    return Constant(np.broadcast_to(np.asarray(value, dtype=float), (length,)).copy(), source)


def _spread(value: Any, low: Any, high: Any, driver: str, source: Source) -> Node:
    length = len(source.kinds)
    values, lows, highs = (np.broadcast_to(np.asarray(x, dtype=float), (length,)).copy() for x in (value, low, high))
    lows, highs = np.minimum(lows, values), np.maximum(highs, values)
    if not np.any(highs > lows):
        return Constant(values, Source(source.facts, source.kinds, source.notes))
    return Spread(values, lows, highs, driver, source)


def _by_rule(value: Any, kind: str, driver: str, source: Source) -> Node:
    half = RULE_SPREAD.get(kind, 0.0)
    base = np.asarray(value, dtype=float)
    if not half or not np.any(base):
        return _constant(base, len(source.kinds), Source(source.facts, source.kinds, source.notes))
    ruled = Source(source.facts, source.kinds, source.notes, f"rule: {kind} +-{half:.0%}")
    width = np.abs(base) * half
    return _spread(base, base - width, base + width, driver, ruled)


def _combine(left: Names, right: Names, sign: float) -> Names:
    out = {n: left.get(n, 0.0) + sign * right.get(n, 0.0) for n in (*left, *(k for k in right if k not in left))}
    return {n: p for n, p in sorted(out.items()) if p}


def _fill_weight(periods: Any, starts: list[int], index: int, fill: str) -> Array:
    """Share of entry `index` in each period: a box from its start to the next one (step), or a hat (linear)."""
    knots = np.zeros(len(starts))
    knots[index] = 1.0
    if fill == "linear":
        return np.asarray(np.interp(periods, starts, knots))
    held = np.clip(np.searchsorted(starts, periods, side="right") - 1, 0, None)
    return np.asarray(knots[held])


def _shape(form: Distribution, number: Callable[[Number | None], float | None]) -> Shape:
    def need(n: Number | None) -> float:
        value = number(n)
        assert value is not None
        return value

    least, greatest, kind = number(form.min), number(form.max), form.distribution
    if kind == "discrete":
        values, weights = form.values or (), form.weights or ()
        if len(values) != len(weights) or not values or min(weights) < 0 or sum(weights) <= 0:
            raise ValueFaultError("discrete needs as many weights as values, none negative, at least one positive")
        pairs = sorted((need(v), w) for v, w in zip(values, weights, strict=True))
        return Shape(kind, tuple(v for v, _ in pairs), tuple(w for _, w in pairs), least, greatest)
    parameters: tuple[float, ...]
    if kind == "normal":
        parameters = (need(form.mean), need(form.sd))
        ordered = parameters[1] > 0
    elif kind == "lognormal":
        parameters = (need(form.median), float(form.sigma or 0.0))
        ordered = parameters[0] > 0 and parameters[1] > 0
    elif kind == "triangular":
        parameters = (need(form.low), need(form.mode), need(form.high))
        ordered = parameters[0] <= parameters[1] <= parameters[2] and parameters[0] < parameters[2]
    elif kind == "uniform":
        parameters = (need(form.low), need(form.high))
        ordered = parameters[0] < parameters[1]
    else:
        low, high = number(form.low), number(form.high)
        parameters = (
            float(form.a or 0.0),
            float(form.b or 0.0),
            0.0 if low is None else low,
            1.0 if high is None else high,
        )
        ordered = parameters[0] > 0 and parameters[1] > 0 and parameters[2] < parameters[3]
    if not ordered:
        raise ValueFaultError(f"{kind} {parameters}: low, mode and high must rise, and sd, sigma, a and b be positive")
    return Shape(kind, parameters, (), least, greatest)
