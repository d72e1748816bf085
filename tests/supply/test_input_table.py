"""Files that users hand in: byte-order marks, line ends, comments, quoted lines, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from econ.performance.predict import predict_file
from reports.cli.app import main
from supply.input_table import InputTableError, read_input_table

COLUMNS = ("model", "metric")
ROW = {
    "model": "Llama-3.1-8B",
    "hardware": "H100",
    "isl": "1024",
    "osl": "128",
    "concurrency_or_batch": "4",
    "scenario": "closed_loop_concurrency",
    "metric": "tpot_mean",
    "unit": "ms",
}


def table(tmp_path: Path, text: str | bytes) -> tuple[list[str], list[dict[str, str]]]:
    path = tmp_path / "cases.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_input_table(path, COLUMNS)


@pytest.mark.parametrize(
    "text",
    [
        "model,metric\na,b\n",
        "\ufeffmodel,metric\r\na,b\r\n",
        "# said before\n\nmodel,metric\n# between\na,b\n\n",
        "model,metric\ra,b\r",
        'model,metric\n"a","b"',
        "model,metric,\na,b,\n",
        "model,metric\na,b,,\n",
    ],
)
def test_spellings_of_one_table(tmp_path: Path, text: str) -> None:
    header, rows = table(tmp_path, text)
    assert header == ["model", "metric"] and rows == [{"model": "a", "metric": "b"}]


def test_lines_of_a_quoted_cell_are_kept_as_they_are(tmp_path: Path) -> None:
    _, rows = table(tmp_path, 'model,metric\n"a\n# not a comment\n\nz",b\n12" wafer,c\n# a comment\nd\n')
    assert [r["model"] for r in rows] == ["a\n# not a comment\n\nz", '12" wafer', "d"]
    assert rows[2]["metric"] == ""


def test_separators_that_are_no_line_ends_stay_in_the_cell(tmp_path: Path) -> None:
    _, rows = table(tmp_path, "model,metric\na\u2028b\x0c\x85,c\n")
    assert rows == [{"model": "a\u2028b\x0c\x85", "metric": "c"}]


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    assert len(table(tmp_path, "model,metric\n" + "x" * 300_000 + ",b\n")[1][0]["model"]) == 300_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no header"),
        ("# only a comment\n", "no header"),
        ("Llama,12,3\nGemma,4,5\n", "no header"),
        ("model,model\na,b\n", "stated twice"),
        ("model,metric\na,b,c\n", "more cells"),
        ('model,metric\n"a,b\n', "cannot be read as CSV"),
        (b"model,metric\n\xff\xfe,b\n", "UTF-8"),
    ],
)
def test_what_is_no_table_is_refused_with_its_name(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(InputTableError, match=r"cases\.csv") as problem:
        table(tmp_path, text)
    assert words in str(problem.value)


def written(path: Path, rows: list[dict[str, str]], header: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, header)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_predict_keeps_columns_rows_and_cells(tmp_path: Path) -> None:
    header = [*ROW, "note", "global_batch", "kernel", "params_json", " value "]
    rows = [
        ROW | {"note": 'two\nlines, "quoted"', " value ": "7"},
        ROW | {"note": "# kept"},
        {"kernel": "GEMM", "hardware": "H100", "metric": "latency_ms"},
    ]
    cases = written(tmp_path / "in.csv", rows, header)
    answers = predict_file(cases, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle)
        back = list(reader)
    assert reader.fieldnames == [*header, "predicted", "low", "high", "confidence", "limited_by", "reason"]
    assert [{k: b[k] for k in header} for b in back] == [{k: r.get(k, "") for k in header} for r in rows]
    assert answers[0] == answers[1] and all(a.answered for a in answers)


@pytest.mark.parametrize(
    ("verb", "text", "code"),
    [
        ("predict", "model,isl\nno-such,1\n", 0),
        ("predict", "model,isl\n", 0),
        ("predict", "", 3),
        ("predict", None, 3),
        ("predict", 'model,isl\n"open,1\n', 3),
        ("cases", "case_id,inputs_json,output_quantity\nx,{},no_such\n", 0),
        ("cases", 'case_id,inputs_json,output_quantity\nx,"{""a"": 1",y\n', 0),
        ("cases", "case_id,inputs_json\n", 3),
        ("cases", "", 3),
    ],
)
def test_exit_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, text: str | None, code: int) -> None:
    path = tmp_path / "in.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["wafer2token", verb, str(path), "--out", str(tmp_path / "out.csv")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert (stopped.value.code or 0) == code
