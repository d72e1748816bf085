"""`wafer2token predict`, `validate` and `engine`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from reports.cli.exits import print_json

__all__ = ["engine_verb", "predict_verb", "validate_verb"]


def predict_verb(table: Path, out: Path, anchor: Path | None, as_json: bool) -> None:
    """Predict every row of a table."""
    from econ.performance.predict import predict_file, unread_columns

    answers = predict_file(table, out, anchor)
    answered = sum(a.answered for a in answers)
    passed = unread_columns(table)
    if as_json:
        print_json({"out": str(out), "rows": len(answers), "answered": answered, "columns_not_read": passed})
    else:
        print(f"{answered} of {len(answers)} rows answered, written to {out}; the others say why in `reason`")
        if passed:
            print(f"columns that were not read: {', '.join(passed)}")


def validate_verb(as_json: bool) -> None:
    """Print the cross-validated accuracy by what is asked, by hardware and by confidence class."""
    from econ.performance.training_accuracy import training_accuracy
    from econ.performance.validate import accuracy_table, answered_share, format_table

    tables = {by: accuracy_table(by) for by in ("family", "hardware", "confidence")}
    tables["family, one row of the group as anchor"] = accuracy_table("family", ("anchored",))
    training = training_accuracy()
    if as_json:
        payload: dict[str, Any] = {by: [r.as_dict() for r in rows] for by, rows in tables.items()}
        payload["training"] = [dict(r) if isinstance(r, dict) else asdict(r) for r in training]
        payload["answered"] = {k: {"answered": a, "rows": n} for k, (a, n) in answered_share().items()}
        print_json(_finite(payload))
        return
    from reports.accuracy import accuracy_markdown

    print("summary: whole (model, hardware) pairs left out of the fit\n" + accuracy_markdown() + "\n")
    print(
        "Every figure is measured on groups left out of the fit: whole (model, hardware) pairs, whole accelerators, "
        "whole families."
    )
    for by, rows in tables.items():
        print(f"\nby {by}\n{format_table(rows)}")
    print("\ntraining")
    for row in training:
        print("  " + "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in _fields(row).items()))
    print("\nanswered rows")
    for name, (answered, total) in answered_share().items():
        print(f"  {name:32} {answered} of {total}")


def _fields(row: Any) -> dict[str, Any]:
    return dict(row) if isinstance(row, dict) else asdict(row)


def _finite(value: Any) -> Any:
    """NaN (no figure) as None, so that the object is valid JSON."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and value != value else value


#: What an anchored operating point shows: metric, its unit in a case row, words.
ANCHORED = (
    ("ttft_mean", "ms", "time to first token"),
    ("tpot_mean", "ms", "time per output token"),
    ("throughput_output_tokens_per_gpu", "tokens/s", "output rate per accelerator"),
)


def engine_verb(model: str, hardware: str, as_json: bool, anchor: Path | None = None, **setup: Any) -> None:
    """Print one operating point with its band, its parts and what limits it; with anchors, the shifted level too."""
    from econ.performance.serving import operating_point

    point = operating_point(model, hardware, **setup)
    anchored = _anchored(model, hardware, anchor, setup) if anchor is not None else []
    if as_json:
        print_json(asdict(point) | ({"anchored": anchored} if anchored else {}))
        return
    _print_point(point, setup)
    for row in anchored:
        if row["predicted"] is None:
            print(f"anchored {row['metric']}: {row['reason']}")
        else:
            band = f"({row['low']:.4g} to {row['high']:.4g})"
            print(f"anchored {row['words']}: {row['predicted']:.4g} {row['unit']} {band}, {row['confidence']}")


def _anchored(model: str, hardware: str, anchor: Path, setup: dict[str, Any]) -> list[dict[str, Any]]:
    """The same set-up as case rows, predicted with the user's own measurements as anchors."""
    from econ.performance.predict import predict_rows, read_cases

    count = setup["tp"] * setup["pp"] * setup["dp"]
    row = {
        "model": model, "hardware": hardware, "n_accelerators": str(count), "framework": setup["framework"],
        "weight_format": setup["weight_format"] or "", "concurrency_or_batch": str(setup["concurrency"]),
        "scenario": "closed_loop_concurrency",
    }  # fmt: skip
    row |= {name: str(setup[name]) for name in ("isl", "osl", "tp", "pp", "ep", "dp")}
    rows = [row | {"metric": metric, "unit": unit} for metric, unit, _ in ANCHORED]
    answers = predict_rows(rows, read_cases(anchor)[1])
    return [
        {"metric": metric, "unit": unit, "words": words, **asdict(answer)}
        for (metric, unit, words), answer in zip(ANCHORED, answers, strict=True)
    ]


def _print_point(point: Any, setup: dict[str, Any]) -> None:
    low, high = point.tpot_band_s
    print(
        f"{point.model} on {point.accelerators:g} x {point.hardware}, {setup['concurrency']} requests in flight, "
        f"{setup['isl']} tokens in, {setup['osl']} out"
    )
    print(f"time to first token      {1e3 * point.ttft_s:9.1f} ms   (90 % band {_ms(point.ttft_band_s)})")
    print(f"time per output token    {1e3 * point.tpot_s:9.2f} ms   (90 % band {1e3 * low:.2f} to {1e3 * high:.2f})")
    print(
        f"output rate              {point.output_tokens_per_s_per_accelerator:9.1f} tokens/s per accelerator "
        f"({point.output_band[0]:.0f} to {point.output_band[1]:.0f})"
    )
    print(
        f"confidence {point.confidence}; limited by {point.limited_by}; "
        f"running batch {point.running_batch:.1f} of at most {point.largest_batch:.0f}"
    )
    print(
        f"memory per accelerator   weights {point.weight_bytes_per_accelerator / 1e9:.1f} GB, "
        f"KV cache {point.kv_bytes_per_accelerator / 1e9:.1f} GB"
    )
    print("one decode step, by part: " + ", ".join(f"{k} {1e3 * v:.2f} ms" for k, v in point.breakdown_s.items()))


def _ms(band: tuple[float, float]) -> str:
    return f"{1e3 * band[0]:.1f} to {1e3 * band[1]:.1f}"
