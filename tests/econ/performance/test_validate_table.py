"""The accuracy table: left-out errors, coverage of the bands, the roofline beside it, answered share."""

from __future__ import annotations

import pytest

from econ.performance.tables import band_for, constants_table
from econ.performance.validate import accuracy_table, answered_share, format_table


def test_left_out_accuracy_meets_the_targets_it_claims() -> None:
    rows = {r.slice: r for r in accuracy_table(schemes=("pair",), sound_only=True)}
    assert rows["closed/tpot"].mape <= 15
    assert rows["closed/ttft"].mape <= 28
    assert rows["local/decode"].median <= 10
    assert rows["local/prefill"].median <= 20
    for row in rows.values():
        if row.rows >= 40:
            assert 0.75 <= row.bias <= 1.3, row


def test_bands_hold_nine_of_ten_left_out_rows() -> None:
    for row in accuracy_table(schemes=("pair",)):
        if row.rows >= 40:
            assert 85 <= row.coverage <= 97, row


def test_engine_beats_the_plain_roofline_everywhere_it_is_served() -> None:
    for row in accuracy_table(schemes=("pair", "family")):
        if row.slice in ("closed/tpot", "closed/ttft", "offline/rate", "mlperf/rate", "fixed/tpot"):
            assert row.mape < 0.6 * row.roofline_mape, row


def test_bands_never_narrow_with_distance_from_evidence() -> None:
    classes = ("measured_nearby", "same_hardware", "same_family", "first_principles")
    for topic in ("closed/tpot", "closed/ttft", "offline/rate", "local/decode", "kernel/gemm"):
        widths = [band_for(topic, name).high / band_for(topic, name).low for name in classes]  # type: ignore[arg-type]
        assert widths == sorted(widths)


def test_unknown_topic_has_a_wide_band_and_unknown_slicing_is_refused() -> None:
    assert band_for("no/such", "same_hardware").high >= 3
    with pytest.raises(ValueError, match="by="):
        accuracy_table(by="colour")


def test_at_least_95_percent_of_rows_are_answered() -> None:
    shares = answered_share()
    assert sum(a for a, _ in shares.values()) / sum(n for _, n in shares.values()) >= 0.95


def test_table_prints_every_row_once_and_constants_are_counted() -> None:
    rows = accuracy_table(by="confidence")
    assert len(format_table(rows).splitlines()) == 1 + len(rows)
    serving = next(r for r in constants_table() if r["problem"] == "serving")
    assert serving["rows"] / serving["constants"] >= 15
