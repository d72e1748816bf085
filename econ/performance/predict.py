"""Predictions for rows in the formats of the benchmarks: inference, training, kernels and operators, with bands.

Only set-up columns are read. ``value``, ``latency_ms``, ``id``, ``source``, ``url`` and ``as_of`` never are, and each
row is
answered by itself, so blanking those columns, reordering rows or asking for one row alone changes nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from econ.performance.anchors import anchor_shifts, shifted
from econ.performance.inference_predict import predict_inference_rows
from econ.performance.kernel_predict import predict_kernel_rows
from econ.performance.prediction import Prediction
from supply.files import whole_text
from supply.input_table import read_input_table, unread

__all__ = ["FORBIDDEN", "kind_of", "predict_file", "predict_rows", "read_cases", "unread_columns"]

#: Columns that a prediction must not see.
FORBIDDEN = ("value", "latency_ms", "id", "source", "url", "as_of")
OUTPUT = ("predicted", "low", "high", "confidence", "limited_by", "reason")
#: Columns that only one kind fills: they tell a row of a mixed file that leaves the first columns of its kind empty.
INFERENCE_ONLY = ("isl", "osl", "concurrency_or_batch", "framework", "scenario", "weight_format", "kv_format")
TRAINING_ONLY = ("seq", "micro_batch", "cp", "precision", "recompute", "params", "tokens")
TRAINING_METRICS = ("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu", "hfu", "samples_per_s_total")
#: Columns of which a case file has at least one.
KNOWN = ("model", "hardware", "isl", "global_batch", "kernel", "params_json", "metric", "system", "op")
#: Every column that has a meaning here, those included that a prediction must not see.
READ = (
    *FORBIDDEN,
    *INFERENCE_ONLY,
    *TRAINING_ONLY,
    *KNOWN,
    *("n_accelerators", "activation_format", "version", "tp", "pp", "dp", "ep", "unit", "conditions"),
    *("shape", "dtype", *OUTPUT),
)
KINDS = ("operator", "kernel", "training", "inference")


def kind_of(row: Mapping[str, str]) -> str | None:
    """Kind of a row from its filled columns; None when it is none of the known ones.

    >>> kind_of({"isl": "1000", "model": "m"}), kind_of({"kernel": "GEMM"}), kind_of({"params_json": "{}"})
    ('inference', 'kernel', 'operator')
    """
    for column, kind in (("params_json", "operator"), ("kernel", "kernel"), ("global_batch", "training")):
        if (row.get(column) or "").strip():
            return kind
    if any((row.get(column) or "").strip() for column in INFERENCE_ONLY):
        return "inference"
    if any((row.get(column) or "").strip() for column in TRAINING_ONLY):
        return "training"
    metric = (row.get("metric") or "").strip()
    if metric in TRAINING_METRICS or metric.endswith("_gib"):
        return "training"
    if not metric:
        return None
    return "inference" if "isl" in row else "training" if "global_batch" in row else None


def visible(row: Mapping[str, str]) -> dict[str, str]:
    """The row without the columns that a prediction must not see; spaces around names and cells say nothing."""
    cells = {name.strip(): (text or "").strip() for name, text in row.items() if name}
    return {name: text for name, text in cells.items() if name not in FORBIDDEN}


def _by_kind(rows: Sequence[Mapping[str, str]]) -> list[Prediction]:
    seen = [visible(row) for row in rows]
    kinds = [kind_of(row) for row in seen]
    out: list[Prediction | None] = [None] * len(rows)
    for kind in KINDS:
        index = [n for n, found in enumerate(kinds) if found == kind]
        if not index:
            continue
        for n, answer in zip(index, _answer(kind, [seen[n] for n in index]), strict=True):
            out[n] = answer
    unknown = "cannot tell the kind of row: fill isl (inference), global_batch (training), kernel or params_json"
    return [answer if answer is not None else Prediction.refused(unknown) for answer in out]


def _answer(kind: str, rows: list[dict[str, str]]) -> list[Prediction]:
    if kind == "inference":
        return predict_inference_rows(rows)
    if kind in ("kernel", "operator"):
        return predict_kernel_rows(rows)
    # The training model imports this package's parts; importing it here keeps start-up light.
    from econ.performance.training_predict import predict_training_rows

    return list(predict_training_rows(rows))


def predict_rows(
    rows: Sequence[Mapping[str, str]], anchors: Sequence[Mapping[str, str]] | None = None
) -> list[Prediction]:
    """One prediction per row, in order.

    ``anchors`` are the user's own measured rows (same format, ``value`` filled): they shift the level of like set-ups
    (shrunk mean log residual by model, accelerator, framework, format and metric) and never replace the physics.
    """
    answers = _by_kind(rows)
    if not anchors:
        return answers
    measured = [{name.strip(): (text or "").strip() for name, text in row.items() if name} for row in anchors]
    shifts = anchor_shifts(measured, _by_kind(measured))
    return [shifted(visible(row), answer, shifts) for row, answer in zip(rows, answers, strict=True)]


def read_cases(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Header and rows of a case file; lines starting with # are skipped.

    Raises:
        ValueError: when the file cannot be read as CSV with a header.
    """
    return read_input_table(path, KNOWN, READ)


def unread_columns(path: Path) -> list[str]:
    """Columns of a case file that pass through without a meaning.

    Raises:
        ValueError: when the file cannot be read as CSV with a header.
    """
    return unread(read_cases(path)[0], READ)


def predict_file(cases: str | Path, out: str | Path, anchor: str | Path | None = None) -> list[Prediction]:
    """Answer a case file: the same rows and columns in order, then predicted, low, high, confidence, limited_by,
    reason.

    Raises:
        ValueError: when a file cannot be read.
    """
    header, rows = read_cases(Path(cases))
    anchors = read_cases(Path(anchor))[1] if anchor is not None else None
    answers = predict_rows(rows, anchors)
    write_answers(Path(out), header, rows, answers)
    return answers


def write_answers(
    path: Path, header: Iterable[str], rows: Sequence[Mapping[str, str]], answers: Sequence[Prediction]
) -> None:
    """Rows with the output columns appended (columns of that name in the input are replaced)."""
    kept = [name for name in header if name not in OUTPUT]
    with whole_text(path) as handle:
        writer = csv.DictWriter(handle, [*kept, *OUTPUT], lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        for row, answer in zip(rows, answers, strict=True):
            writer.writerow({name: row.get(name, "") for name in kept} | answer.as_columns())
