"""Fuzzing of every accepted file but scenarios and workbooks: mutated from files that are accepted.

Each example is read and answered with finite numbers, or refused with a `ValueError` in words. `HOSTILE_EXAMPLES=2000`
runs it at length.
"""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st
from ruamel.yaml import YAML

from econ.agent_calls import AgentError
from econ.cases import cases_file
from econ.performance.architecture import ArchitectureError, architecture
from econ.performance.hardware import HardwareError, hardware
from econ.performance.predict import predict_file
from econ.performance.serving import operating_point
from econ.price_quotes import RentalPriceError, instance_price_rows
from econ.token_cost import TokenCostError, load_workload
from econ.trajectories import read_trajectories
from reports.catalogue import read_catalogue
from reports.choices import read_choices
from scenarios.errors import ScenarioError
from supply.facts import FactError
from supply.facts.catalog import COLUMNS, SERIES_COLUMNS, load
from supply.facts.ingest import RAW_COLUMNS, ingest
from supply.input_table import read_input_table
from supply.paths import data_dir, data_file
from tests.hostile.hostile_tools import EXAMPLES, fuzzed, harmed_bytes, harmed_data, harmed_table, limited


def rows_of(path: Path, columns: tuple[str, ...] | None = None, most: int = 6) -> tuple[list[str], list[list[str]]]:
    """Header and a few rows, spread over a shipped table."""
    with path.open(encoding="utf-8", newline="") as handle:
        lines = list(csv.reader(line for line in handle if not line.startswith("#")))
    picked = random.Random(1).sample(lines[1:], min(most, len(lines) - 1))
    return lines[0], picked


def facts_seed(columns: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    for path in sorted((data_dir() / "facts").glob("*.csv")):
        header, rows = rows_of(path)
        if tuple(header) == columns:
            return header, rows
    raise AssertionError(columns)


def encoded(header: list[str], rows: list[list[str]]) -> bytes:
    text = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in [header, *rows]]
    return ("\n".join(text) + "\n").encode()


def tables(*seeds: tuple[list[str], list[list[str]]]) -> st.SearchStrategy[bytes]:
    """Harmed tables: three of four by cell and column, the others by byte."""
    return st.one_of(*[s for t in seeds for s in (harmed_table(*t), harmed_table(*t), harmed_bytes(encoded(*t)))])


@pytest.fixture
def put(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str, bytes], Path]:
    folder = tmp_path_factory.mktemp("fuzz")

    def write(name: str, raw: bytes) -> Path:
        path = folder / name
        path.write_bytes(raw)
        return path

    return write


def finite(values: Iterator[Any]) -> bool:
    return all(math.isfinite(v) for v in values if isinstance(v, float))


# ---- facts
@seed(1)
@fuzzed()
@given(raw=tables(facts_seed(COLUMNS), facts_seed(SERIES_COLUMNS)))
def test_facts_table(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("some.csv", raw)
    with limited():
        try:
            found = load(path.parent)
        except FactError as exc:
            assert "some.csv" in str(exc)
            return
    assert finite(v for f in found for v in (f.value, f.low, f.high))
    assert finite(v for s in found.series_ids for p in found.series(s).points for v in (p.value, p.low, p.high))


RAW = [
    ["a", "TSMC", "capacity_2026", "10", "8", "12", "wafers/month", "2026-03", "estimate", "A (2026-03-01)", "u", ""]
]
RAW += [["b", "NVIDIA H100", "tdp", "700", "", "", "W", "2023", "published", "B citing C", "", "n"]]


@seed(1)
@fuzzed()
@given(raw=tables((list(RAW_COLUMNS), RAW)))
def test_facts_ingest(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("raw.csv", raw)
    target = path.parent / "facts" / "made.csv"
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    with limited():
        try:
            count = ingest(path, target, date(2026, 12, 1))
        except FactError as exc:
            assert "raw.csv" in str(exc) and not target.exists()
            return
        assert len(list(load(target.parent))) == count  # what was written is a facts file


# ---- performance engine
CONFIG = json.loads(data_file("checks", "files", "config_qwen3_next_80b.json").read_text(encoding="utf-8"))
SMALL: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "head_dim": 64,
    "num_key_value_heads": 2,
    "intermediate_size": 1024,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
    "sliding_window": 1024,
    "sliding_window_pattern": 4,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
    "text_config": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "quantization_config": {"quant_method": "fp8"},
}


@seed(1)
@fuzzed()
@given(
    raw=(harmed_data(CONFIG) | harmed_data(SMALL)).map(lambda d: json.dumps(d).encode())
    | harmed_bytes(json.dumps(CONFIG, indent=1).encode())
)
def test_model_config(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("config.json", raw)
    with limited():
        try:
            found = architecture(path)
        except ArchitectureError as exc:
            assert "config" in str(exc)
            return
        assert 0 < found.total_parameters < 1e40 and 0 < found.active_parameters <= found.total_parameters * 1.001
        assert math.isfinite(float(found.kv_bytes(1000)))
        try:
            point = operating_point(str(path), "H100", isl=100, osl=100, concurrency=4)  # type: ignore[arg-type]
        except ValueError:
            return
        assert 0 < point.tpot_s < math.inf and 0 < point.ttft_s < math.inf


CHIP: dict[str, Any] = {
    "name": "own chip",
    "base": "B200",
    "memory_bytes": 192.0e9,
    "memory_bytes_per_s": 8e12,
    "tdp_w": 1000,
    "peak_flop_per_s": {"bf16": 1.8e15, "fp8": 3.6e15},
    "segment": "datacenter",
    "link_bytes_per_s": 9e11,
    "domain_size": 8,
    "internode_bytes_per_s": 5e10,
    "compute_units": 148,
    "l2_bytes": 1e8,
}


def yaml_of(data: Any) -> bytes:
    import io

    out = io.StringIO()
    YAML().dump(data, out)
    return out.getvalue().encode("utf-8", "surrogatepass")


@seed(1)
@fuzzed()
@given(raw=harmed_data(CHIP).map(yaml_of) | harmed_bytes(yaml_of(CHIP)))
def test_hardware_record(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("chip.yaml", raw)
    with limited():
        try:
            found = hardware(path)
        except HardwareError:
            return
        numbers = (found.memory_bytes, found.memory_bytes_per_s, found.tdp_w, *found.peak_flop_per_s.values())
        assert all(0 < v < math.inf for v in numbers)
        try:
            point = operating_point("Llama-3.1-8B", str(path), isl=100, osl=100, concurrency=4)
        except ValueError:
            return
        assert 0 < point.tpot_s < math.inf


def predicted(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("cases.csv", raw)
    with limited():
        try:
            answers = predict_file(path, path.parent / "out.csv")
        except ValueError as exc:
            assert "cases.csv" in str(exc)
            return
    assert all(a.reason or (a.predicted is not None and 0 <= a.predicted < math.inf) for a in answers)
    with (path.parent / "out.csv").open(encoding="utf-8", newline="") as handle:
        assert len(list(csv.DictReader(handle))) == len(answers)


SERVING = [data_file("calibration", f"inference_{n}.csv") for n in ("serving_misc", "mlperf", "local", "trtllm")]


@seed(1)
@fuzzed()
@given(raw=tables(*[rows_of(path, most=3) for path in SERVING]))
def test_predict_serving(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    predicted(put, raw)


@seed(1)
@fuzzed()
@given(raw=tables(rows_of(data_file("calibration", "training.csv"), most=3)))
def test_predict_training(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    predicted(put, raw)


@seed(1)
@fuzzed()
@given(raw=tables(*[rows_of(data_file("calibration", n), most=3) for n in ("kernels.csv", "silicon_points.csv")]))
def test_predict_kernels(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    predicted(put, raw)


# ---- costs
def case_seed() -> tuple[list[str], list[list[str]]]:
    return rows_of(data_file("checks", "econ_cases.csv"), most=12)


def harmed_cases() -> st.SearchStrategy[bytes]:
    """Case rows whose inputs are harmed inside their JSON."""
    header, rows = case_seed()
    k = header.index("inputs_json")
    one = st.sampled_from(rows).flatmap(
        lambda row: harmed_data(json.loads(row[k])).map(lambda d: [*row[:k], json.dumps(d), *row[k + 1 :]])
    )
    return st.lists(one, min_size=1, max_size=2).map(lambda rows: encoded(header, rows))


@seed(1)
@fuzzed()
@given(raw=harmed_cases() | tables(case_seed()))
def test_cases_table(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("cases.csv", raw)
    out = path.parent / "answers.csv"
    with limited():
        try:
            count = cases_file(path, out)
        except ValueError as exc:
            assert "cases.csv" in str(exc)
            return
    with out.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == count
    assert all(r["reason"] or math.isfinite(float(r["computed"])) for r in rows)


HEAD = ["event_id", "task", "attempt", "parent", "started", "input_tokens", "output_tokens", "cache_read_tokens"]
HEAD += ["cache_write_tokens", "thinking_tokens", "tool_s", "tool_usd", "cost_usd", "verified"]
CALLS = [["1", "t", "a", "", "2026-01-01T00:00:00Z", "100", "10", "20", "5", "2", "1.5", "0.01", "0.02", "true"]]
CALLS += [["2", "t", "a", "sub", "2026-01-01T00:00:09Z", "120", "12", "0", "0", "0", "0", "0", "0.03", ""]]
LINES = [dict(zip(HEAD, row, strict=True)) for row in CALLS]


def json_lines(data: Any) -> bytes:
    return "\n".join(json.dumps(d) for d in (data if isinstance(data, list) else [data])).encode()


@seed(1)
@fuzzed()
@given(
    log=st.tuples(st.just("log.csv"), tables((HEAD, CALLS)))
    | st.tuples(st.just("log.jsonl"), harmed_data(LINES).map(json_lines) | harmed_bytes(json_lines(LINES))),
    convention=st.sampled_from(["anthropic", "openai", "google", "disjoint"]),
    running=st.booleans(),
)
def test_trajectories(
    put: Callable[[str, bytes], Path], log: tuple[str, bytes], convention: str, running: bool
) -> None:
    path = put(*log)
    with limited():
        try:
            calls = read_trajectories(path, convention, cumulative_cost=running)
        except AgentError as exc:
            assert path.name in str(exc)
            return
    assert calls and finite(v for c in calls for v in (c.usage.total, c.tool_s, c.tool_usd, c.cost_usd))


@seed(1)
@fuzzed()
@given(raw=tables(rows_of(data_file("checks", "files", "gpu_price_book_two_vendors.csv"), most=3)))
def test_price_book(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("book.csv", raw)
    with limited():
        try:
            rows = instance_price_rows(path)
        except RentalPriceError as exc:
            assert "book.csv" in str(exc)
            return
    assert finite(v for row in rows for v in row.values())


CARD = data_file("cases", "workloads", "chat.yaml").read_bytes()


@seed(1)
@fuzzed()
@given(raw=harmed_data(YAML(typ="safe").load(CARD)).map(yaml_of) | harmed_bytes(CARD))
def test_workload_card(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("card.yaml", raw)
    with limited():
        try:
            load_workload(path)
        except TokenCostError:
            return


# ---- report
CHOICES = {"title": "T", "subtitle": "S", "logo": "logo.png", "notes": ["a", "b"], "text": "de.yaml"}
CHOICES |= {"sections": ["binds", {"id": "supply", "title": "What"}, "inputs"]}  # type: ignore[dict-item]
GERMAN = {"language": "de", "sections": {"power": "Strom", "supply": "Angebot"}}


@seed(1)
@fuzzed()
@given(raw=harmed_data(CHOICES).map(yaml_of) | harmed_bytes(yaml_of(CHOICES)))
def test_choices(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    put("logo.png", b"\x89PNG\r\n\x1a\n")
    put("de.yaml", yaml_of(GERMAN))
    path = put("choices.yaml", raw)
    with limited():
        try:
            read_choices(path)
        except ScenarioError as exc:
            assert exc.problems


@seed(1)
@fuzzed()
@given(raw=harmed_data(GERMAN).map(yaml_of) | harmed_bytes(yaml_of(GERMAN)))
def test_translation(put: Callable[[str, bytes], Path], raw: bytes) -> None:
    path = put("de.yaml", raw)
    with limited():
        try:
            read_catalogue(path)
        except ScenarioError as exc:
            assert exc.problems


def test_the_seeds_are_accepted(put: Callable[[str, bytes], Path]) -> None:
    """Mutations of what is refused anyway would find nothing."""
    for columns in (COLUMNS, SERIES_COLUMNS):
        path = put("some.csv", encoded(*facts_seed(columns)))
        assert list(load(path.parent)) or load(path.parent).series_ids
    assert ingest(put("raw.csv", encoded(list(RAW_COLUMNS), RAW)), put("made.csv", b""), date(2026, 12, 1)) == 2
    for data in (CONFIG, SMALL):
        architecture(put("config.json", json.dumps(data).encode()))
    hardware(put("chip.yaml", yaml_of(CHIP)))
    for path in [
        *SERVING,
        *(data_file("calibration", n) for n in ("training.csv", "kernels.csv", "silicon_points.csv")),
    ]:
        cases = put("cases.csv", encoded(*rows_of(path, most=3)))
        assert any(a.answered for a in predict_file(cases, cases.parent / "out.csv")), path
    cases = put("cases.csv", encoded(*case_seed()))
    cases_file(cases, cases.parent / "answers.csv")
    answers = read_input_table(cases.parent / "answers.csv", ("computed",))[1]
    assert sum(bool(a["computed"]) for a in answers) >= 10
    for name, raw in (("log.csv", encoded(HEAD, CALLS)), ("log.jsonl", json_lines(LINES))):
        assert len(read_trajectories(put(name, raw), "anthropic")) == 2
    put("logo.png", b"\x89PNG\r\n\x1a\n")
    put("de.yaml", yaml_of(GERMAN))
    assert read_choices(put("choices.yaml", yaml_of(CHOICES))).title == "T"
    load_workload(put("card.yaml", CARD))
    assert EXAMPLES >= 10
