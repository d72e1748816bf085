"""`data/owner_cost.csv`: every row that names what is not there, and every part left half done, is refused at once."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from econ.owner_cost_table import COLUMNS, SCOPES, OwnerCostError, read_owner_costs
from supply.facts import catalog
from supply.paths import data_file

GOOD = {
    "sku": "h100",
    "title": "NVIDIA H100 SXM",
    "input": "purchase",
    "valid_from": "2022-09-29",
    "scope": "server",
    "source_ids": "buy_nvidia_h100_sxm5_80gb_2022_09_29",
    "divide_by": "1",
    "note": "",
}
WATTS = {**GOOD, "input": "it_power", "scope": "series", "source_ids": "it_power_nvidia_h100"}


def refused(folder: Path, *rows: dict[str, str], columns: tuple[str, ...] = COLUMNS) -> list[str]:
    path = folder / "owner_cost.csv"
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, columns)
        writer.writeheader()
        writer.writerows({c: r.get(c, "") for c in columns} for r in rows)
    with pytest.raises(OwnerCostError) as caught:
        read_owner_costs(path, catalog())
    return str(caught.value).splitlines()[1:]


def test_the_shipped_table_is_complete() -> None:
    table = read_owner_costs(data_file("owner_cost.csv"), catalog())
    assert len(table) == 17 and all({r["input"] for r in rows} == set(SCOPES) for rows in table.values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source_ids": "xylo_x1_price"}, "source_ids: no fact 'xylo_x1_price'"),
        ({"source_ids": "h100_sxm_server_power"}, "source_ids: no fact"),
        ({"source_ids": "buy_nvidia_h100_sxm5_80gb_2022_09_28"}, "did you mean buy_nvidia_h100_sxm5_80gb_2022_09_29"),
        ({"source_ids": "nvidia_h100_sxm5_80gb_bf16_dense_2022"}, "is in 'TFLOP/s'; scope server needs USD"),
        ({"scope": "sever"}, "scope 'sever' is not one of chip, chip_series, server, rack, site"),
        ({"scope": "series"}, "those of purchase"),
        ({"scope": "chip_series"}, "source_ids: no series"),
        ({"scope": "site"}, "scope site needs USD/GW"),
        ({"input": "price"}, "input 'price' is not one of purchase, it_power"),
        ({"valid_from": "2022-09"}, "valid_from '2022-09' is no day: write YYYY-MM-DD"),
        ({"divide_by": "0"}, "divide_by '0': give the accelerators"),
        ({"divide_by": ""}, "divide_by ''"),
        ({"title": ""}, "title is empty"),
    ],
)
def test_a_wrong_cell_is_named_with_its_line(tmp_path: Path, change: dict[str, str], words: str) -> None:
    found = refused(tmp_path, {**GOOD, "valid_from": "2021-01-01"}, WATTS, {**GOOD, **change})
    assert len(found) == 1 and found[0].startswith("owner_cost.csv:4: ") and words in found[0]


def test_a_part_that_is_nowhere_or_half_done_is_refused(tmp_path: Path) -> None:
    odd = {**WATTS, "sku": "x1"}
    found = refused(tmp_path, GOOD, WATTS, odd, {**GOOD, "sku": "b200"}, {**GOOD, "sku": "B 200"})
    assert [line.split(": ", 1)[0] for line in found] == [f"owner_cost.csv:{n}" for n in (4, 6, 4, 5, 6)]
    assert "sku 'x1' is no part of data/hardware.csv" in found[0]
    assert "sku 'B 200' is not an id" in found[1]
    assert "'x1' has no row with input purchase: add one that names a fact of its price" in found[2]
    assert "'b200' has no row with input it_power" in found[3]


def test_columns_and_rows_twice_are_refused(tmp_path: Path) -> None:
    found = refused(tmp_path, GOOD, columns=(*(c for c in COLUMNS if c != "scope"), "scop"))
    assert found == [
        "owner_cost.csv:1: lacks the column scope",
        "owner_cost.csv:1: unknown column 'scop'; did you mean scope?",
    ]
    found = refused(tmp_path, GOOD, GOOD, WATTS)
    assert [line.partition(": ")[2] for line in found] == [
        "'h100' has two rows of purchase from 2022-09-29: keep one"
    ] * 2


def test_a_wrong_table_stops_a_run_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import econ.owner_cost as module
    from scenarios.runner import run

    path = tmp_path / "owner_cost.csv"
    text = data_file("owner_cost.csv").read_text(encoding="utf-8")
    path.write_text(text + "rubin,Rubin,purchase,2027-01-01,rack,no_such_fact,72,\n", encoding="utf-8")
    monkeypatch.setattr(module, "data_file", lambda name: path)
    module._table.cache_clear()
    chain = Path(__file__).parents[1] / "scenarios" / "cases" / "chain.yaml"
    try:
        with pytest.raises(OwnerCostError, match=r"owner_cost\.csv:43: source_ids: no fact 'no_such_fact'"):
            run(chain, prices=False)
    finally:
        module._table.cache_clear()
