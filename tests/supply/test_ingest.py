"""Adding facts: nothing that a file holds is lost, an id in use is refused, and the command answers in words."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from supply.facts import FactError
from supply.facts.catalog import load
from supply.facts.ingest import RAW_COLUMNS, ingest, main
from supply.paths import data_file

DAY = date(2026, 12, 1)


def raw_file(folder: Path, *rows: tuple[str, str], name: str = "raw.csv") -> Path:
    lines = [f"{i},Example part,unit_price,{v},,,USD,2026-05,illustrative,own assumption,,why" for i, v in rows]
    path = folder / name
    path.write_text("\n".join([",".join(RAW_COLUMNS), *lines, ""]), encoding="utf-8")
    return path


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    folder = tmp_path / "facts"
    folder.mkdir()
    return folder


def test_rows_are_added_to_a_file_and_what_it_holds_stays_as_it_is(tmp_path: Path, facts: Path) -> None:
    target = facts / "accelerators.csv"
    before = data_file("facts", "accelerators.csv").read_bytes()
    target.write_bytes(before)
    assert ingest(raw_file(tmp_path, ("new_a", "1"), ("new_b", "2")), target, DAY) == 2
    after = target.read_bytes()
    assert after.startswith(before) and after[len(before) :].count(b"\n") == 2
    assert load(facts)["new_b"].number == 2


def test_an_id_in_use_is_refused_and_nothing_is_written(tmp_path: Path, facts: Path) -> None:
    target = facts / "mine.csv"
    ingest(raw_file(tmp_path, ("a", "1"), ("b", "2")), target, DAY)
    ingest(raw_file(tmp_path, ("c", "3")), facts / "other.csv", DAY)
    before = target.read_bytes()
    with pytest.raises(FactError) as caught:
        ingest(raw_file(tmp_path, ("b", "9"), ("d", "4"), ("c", "5")), target, DAY)
    said = str(caught.value)
    assert "raw.csv:2: b: mine.csv holds this id already" in said and "--replace" in said
    assert "raw.csv:4: c: other.csv holds this id already" in said and ": d:" not in said
    assert target.read_bytes() == before


def test_replace_changes_the_rows_of_the_same_id_in_their_place(tmp_path: Path, facts: Path) -> None:
    target = facts / "mine.csv"
    ingest(raw_file(tmp_path, ("a", "1"), ("b", "2")), target, DAY)
    assert ingest(raw_file(tmp_path, ("c", "3"), ("a", "9")), target, DAY, replace=True) == 2
    assert [(f.id, f.number) for f in load(facts)] == [("a", 9), ("b", 2), ("c", 3)]
    ingest(raw_file(tmp_path, ("x", "1")), facts / "other.csv", DAY)
    with pytest.raises(FactError, match=r"x: other\.csv holds this id already"):
        ingest(raw_file(tmp_path, ("x", "2")), target, DAY, replace=True)


def test_a_file_of_another_kind_is_never_written_to(tmp_path: Path) -> None:
    for text in ("my notes\nof years\n", data_file("facts", "series.csv").read_text(encoding="utf-8")[:5000]):
        target = tmp_path / "target.csv"
        target.write_text(text, encoding="utf-8")
        with pytest.raises(FactError, match=r"target\.csv:1: no facts file"):
            ingest(raw_file(tmp_path, ("a", "1")), target, DAY)
        assert target.read_text(encoding="utf-8") == text


def test_files_that_would_not_be_read_as_facts_are_refused(tmp_path: Path, facts: Path) -> None:
    raw = raw_file(tmp_path, ("new_a", "1"))
    with pytest.raises(FactError, match=r"chip: a facts file ends in \.csv; no other is read"):
        ingest(raw, facts / "chip", DAY)
    with pytest.raises(FactError, match=r"hbm\.csv: every CSV in this folder is read as facts; move the raw rows"):
        ingest(data_file("facts", "hbm.csv"), facts / "chip.csv", DAY)
    assert not list(facts.iterdir())


def test_the_command_answers_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0 and "--replace" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["only_one.csv"])
    assert caught.value.code == 2 and "required: OUT" in capsys.readouterr().err
    raw, target = raw_file(tmp_path, ("a", "1")), tmp_path / "facts.csv"
    assert main([str(raw), str(target)]) == 0 and capsys.readouterr().out == f"1 rows added to {target}\n"
    assert main([str(raw), str(target)]) == 3 and "holds this id already" in capsys.readouterr().err
    assert main([str(raw), str(target), "--replace"]) == 0 and "added or replaced" in capsys.readouterr().out
    assert main([str(tmp_path / "none.csv"), str(target)]) == 3 and "none.csv" in capsys.readouterr().err
    assert main([str(raw), str(tmp_path / "no" / "folder.csv")]) == 3 and "folder.csv" in capsys.readouterr().err
