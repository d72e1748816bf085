"""Facts: loading, dates, units, look-up, the rule where sources disagree, traces, and message quality."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supply.facts import FactError, catalog
from supply.facts.catalog import COLUMNS, check_units, load
from supply.facts.dating import date_fact, span
from supply.facts.units import convert, multiplier

FORBIDDEN_KINDS = {"unverified"}


def test_every_fact_has_source_dates_and_a_known_kind() -> None:
    facts = list(catalog())
    assert len(facts) > 3_000
    for fact in facts:
        assert fact.source and fact.kind not in FORBIDDEN_KINDS
        assert fact.valid_from <= fact.valid_to
        assert not fact.id.startswith("lead_")


def test_every_unit_parses_with_pint() -> None:
    assert check_units(catalog()) == []


def test_every_basis_of_a_series_resolves() -> None:
    cat = catalog()
    lost = {
        b
        for s in cat.series_ids
        for p in cat.series(s).points
        for b in p.basis
        if b not in cat and b not in cat.series_ids
    }
    assert lost == set()


def test_as_of_of_a_forecast_is_when_it_was_said_and_the_target_is_in_the_name() -> None:
    dates = date_fact("capacity_plan_for_end_2023", "2023-06", "Repost of DigiTimes (2023-06)", "estimate")
    assert dates.valid_to == date(2023, 12, 31) and dates.known_on == date(2023, 6, 30)


def test_a_measured_value_is_never_known_before_it_happened() -> None:
    for fact in catalog():
        if fact.kind == "measured":
            assert fact.known_on >= fact.valid_from, fact.id


def test_a_guessed_date_is_flagged() -> None:
    assert date_fact("price", "2024", "A page", "estimate").rule.endswith("?")


@pytest.mark.parametrize(
    ("value", "unit", "target", "expected"),
    [
        (1.0, "GB", "gigabit", 8.0),
        (15_000.0, "wafers/month", "wafer/quarter", 45_000.0),
        (16.0, "USD/8-GPU-hour", "USD/accelerator/hour", 2.0),
        (1.0, "GiB", "GB", 1.073741824),
        (3.35, "GW", "MW", 3350.0),
    ],
)
def test_conversion(value: float, unit: str, target: str, expected: float) -> None:
    assert convert(value, unit, target) == pytest.approx(expected, rel=1e-12)


def test_unit_mismatch_names_both_units_and_the_place() -> None:
    with pytest.raises(FactError, match=r"fact tsmc_cowos_wafer_price_2026_01.*USD/wafer.*watt"):
        catalog()["tsmc_cowos_wafer_price_2026_01"].to("watt")


def test_chips_and_wafers_are_different_counts() -> None:
    with pytest.raises(FactError):
        multiplier("chips", "wafer")


def test_unknown_id_offers_the_nearest() -> None:
    with pytest.raises(FactError, match="did you mean tsmc_cowos_wafer_price_2026_01"):
        catalog()["tsmc_cowos_wafer_price_2026_1"]


def test_selection_prefers_the_span_that_holds_the_day_then_the_kind_then_the_newest() -> None:
    cat = catalog()
    chosen = cat.select("NVIDIA H100 SXM5 80GB", "memory_bandwidth")
    assert chosen.number == 3350.0
    conflicts = cat.conflicts("TSMC CoWoS", "capacity", on=date(2025, 12, 31))
    assert conflicts[0].valid_to <= date(2025, 12, 31)


def test_selection_without_a_match_lists_the_quantities() -> None:
    with pytest.raises(FactError, match="quantities of"):
        catalog().select("TSMC CoWoS", "colour")


def test_series_level_is_linear_between_quarter_ends_and_flat_outside() -> None:
    series = catalog().series("tsmc_cowos_capacity")
    a, b = series.at("2025-Q3").value, series.at("2025-Q4").value
    end_a, end_b = span("2025-Q3")[1], span("2025-Q4")[1]
    middle = date.fromordinal((end_a.toordinal() + end_b.toordinal()) // 2)
    (level,) = series.levels([middle])
    assert min(a, b) <= level <= max(a, b)
    assert series.levels([date(1990, 1, 1)]) == [series.points[0].value]


def test_a_series_before_an_origin_hides_what_was_not_known() -> None:
    series = catalog().series("tsmc_cowos_capacity").known_by(date(2024, 1, 1))
    assert all(p.known_on <= date(2024, 1, 1) for p in series.points)
    with pytest.raises(FactError, match="nothing was known"):
        catalog().series("tsmc_cowos_capacity").known_by(date(2000, 1, 1))


def test_trace_of_a_series_point_ends_in_facts_with_sources() -> None:
    trace = catalog().trace("tsmc_cowos_capacity@2025-Q4")
    assert len(trace) > 1
    assert all(getattr(t, "source", "x") for t in trace[1:])


def test_all_problems_of_a_fact_file_are_reported_at_once(tmp_path: Path) -> None:
    good = "a,S,q,1,,,USD,subject,2024-01-01,2024-12-31,2024-12-31,as_of,estimate,src,src,http://x,"
    rows = [
        ",".join(COLUMNS),
        good,
        good,
        "b,S,q,1,,,parsecs,subject,2024-01-01,2024-12-31,2024-12-31,as_of,estimate,src,src,http://x,",
        "c,S,q,5,6,7,USD,subject,2024-01-01,2024-12-31,2024-12-31,as_of,estimate,src,src,http://x,",
        "d,S,q,1,,,USD,subject,2024-01-01,2024-12-31,2024-12-31,as_of,rumour,,src,http://x,",
    ]
    (tmp_path / "x.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(FactError) as caught:
        load(tmp_path)
    text = str(caught.value)
    assert "x.csv:3: a: the id is used twice" in text
    assert "x.csv:4: b: unit 'parsecs'" in text
    assert "x.csv:5: c: value 5.0 lies outside" in text
    assert "kind 'rumour'" in text and "source is empty" in text


@given(st.integers(1990, 2090), st.integers(1, 4))
@settings(max_examples=50)
def test_quarter_spans_tile_the_year(year: int, quarter: int) -> None:
    first, last = span(f"{year}-Q{quarter}")
    assert (last - first).days in (89, 90, 91)
    assert first.day == 1


def test_a_bad_date_says_which_forms_are_read() -> None:
    with pytest.raises(ValueError, match="is not a day"):
        span("spring 2024")


def test_nothing_is_known_after_the_day_of_copying() -> None:
    assert max(f.known_on for f in catalog()) <= date(2026, 11, 30)
    dates = date_fact("unit_price", "2028", "A page", "estimate", copied_on=date(2026, 11, 30))
    assert dates.known_on == date(2026, 11, 30) and dates.rule.endswith("?")


@pytest.mark.parametrize(
    ("quantity", "first", "last"),
    [
        ("capacity_plan_for_end_2027", "2027-12-31", "2027-12-31"),
        ("capacity_plan_for_mid_2027", "2027-06-30", "2027-06-30"),
        ("capacity_plan_for_start_2027", "2027-01-01", "2027-01-01"),
        ("revenue_guide_for_Q3_2027", "2027-07-01", "2027-09-30"),
        ("revenue_target_h1_2027", "2027-01-01", "2027-06-30"),
        ("revenue_target_H2_2027", "2027-07-01", "2027-12-31"),
        ("shipments_forecast_2027", "2027-01-01", "2027-12-31"),
    ],
)
def test_a_forecast_is_about_its_target(quantity: str, first: str, last: str) -> None:
    dates = date_fact(quantity, "2026-05", "A note (2026-05-20)", "estimate")
    assert (dates.valid_from, dates.valid_to) == (date.fromisoformat(first), date.fromisoformat(last))
    assert (dates.known_on, dates.rule) == (date(2026, 5, 20), "target+source_date")


@pytest.mark.parametrize(
    ("quantity", "as_of", "source", "kind", "known", "rule"),
    [
        ("price", "2024", "A page", "estimate", "2024-12-31", "as_of+as_of?"),  # the year is over by then
        (
            "price_forecast",
            "2027",
            "A page",
            "estimate",
            "2027-01-01",
            "as_of+as_of?",
        ),  # at its start at the latest
        ("price", "2024-05", "A page", "measured", "2024-05-31", "as_of+as_of"),
        (
            "price",
            "2024-05",
            "A page of 2023-02-01",
            "measured",
            "2024-05-01",
            "as_of+clamped?",
        ),  # not before that
        ("price", "2024-05-07", "A page of 2023-02-01", "published", "2024-05-07", "as_of+clamped?"),
        ("price", "2024-05", "A page (2024-06 and 2024-07-03)", "measured", "2024-07-03", "as_of+source_date"),
    ],
)
def test_when_a_value_was_known(quantity: str, as_of: str, source: str, kind: str, known: str, rule: str) -> None:
    dates = date_fact(quantity, as_of, source, kind)
    assert (dates.known_on.isoformat(), dates.rule) == (known, rule)
