"""`wafer2token predict`, `validate` and `engine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reports.cli.exits import plain, print_json
from reports.cli.terminal import head, line, table, whole

__all__ = ["engine_verb", "predict_verb", "validate_verb"]


def predict_verb(cases: Path, out: Path, anchor: Path | None, as_json: bool) -> None:
    """Predict every row of a table."""
    from econ.performance.predict import predict_file, unread_columns

    answers = predict_file(cases, out, anchor)
    answered = sum(a.answered for a in answers)
    passed = unread_columns(cases)
    if as_json:
        print_json({"out": str(out), "rows": len(answers), "answered": answered, "columns_not_read": passed})
    else:
        others = "; the others say why in `reason`" if answered < len(answers) else ""
        line(f"{answered} of {len(answers)} rows answered{others}.")
        if passed:
            line(f"columns that were not read: {', '.join(passed)}")
        whole(f"written: {out}")


def validate_verb(as_json: bool) -> None:
    """Print the cross-validated accuracy by what is asked, by hardware and by confidence class."""
    from econ.performance.training_accuracy import training_accuracy
    from econ.performance.validate import accuracy_table, answered_share

    tables = {by: accuracy_table(by) for by in ("family", "hardware", "confidence")}
    tables["family, one row of the group as anchor"] = accuracy_table("family", ("anchored",))
    training = training_accuracy()
    if as_json:
        payload: dict[str, Any] = {by: [r.as_dict() for r in rows] for by, rows in tables.items()}
        payload["training"] = [dict(r) for r in training]
        payload["answered"] = {k: {"answered": a, "rows": n} for k, (a, n) in answered_share().items()}
        print_json(plain(payload))
        return
    line("Error of the engine on measurements that its fit has not seen: whole (model, hardware) pairs, whole "
         "accelerators or whole families left out. Percent of the measured value.")  # fmt: skip
    head("Summary: pairs left out")
    _print_summary()
    line("all: mean absolute error (MAPE) over all rows; sound: without rows that contradict physics or their "
         "neighbours; in band: share inside the 90 % band; roofline: MAPE of a plain roofline.")  # fmt: skip
    for by, rows in tables.items():
        head(f"By {by}")
        _print_accuracy([r.as_dict() | {"group": r.slice} for r in rows])
    head("Training step, by what was left out and how the layout is known")
    _print_accuracy([{**r, "group": "all runs" if r["group"] == "all" else r["group"]} for r in training])
    line("bias: median of predicted over measured. p90: 90 % of the errors are below it.")
    head("Rows that the engine answers")
    table(["measurements", "answered", "of"], [[k, str(a), str(n)] for k, (a, n) in answered_share().items()])


def _print_summary() -> None:
    """The accuracy table of the README, for a terminal."""
    from reports.accuracy import accuracy_markdown

    rows = [[cell.strip() for cell in text.strip("|").split("|")] for text in accuracy_markdown().splitlines()[2:]]
    table(["what", "rows", "all", "median", "sound", "in band", "roofline"], rows)


def _print_accuracy(groups: Sequence[Mapping[str, Any]]) -> None:
    """Accuracy in percent, a line a group and what was left out of its fit."""
    names = ("mape", "median", "p90", "bias", "coverage", "roofline_mape")
    rows = []
    for row in groups:
        values = {k: float("nan") if row[k] is None else float(row[k]) for k in names}
        numbers = ["-" if v != v else f"{v:.2f}" if k == "bias" else f"{v:.1f}" for k, v in values.items()]
        rows.append([str(row["group"]).replace("_", " "), str(row["left_out"]), str(row["rows"]), *numbers])
    table(["group", "left out", "rows", "MAPE", "median", "p90", "bias", "in band", "roofline"], rows, words=2)


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
            line(f"anchored {row['metric']}: {row['reason']}")
        else:
            band = f"({row['low']:.4g} to {row['high']:.4g})"
            line(f"anchored {row['words']}: {row['predicted']:.4g} {row['unit']} {band}, {row['confidence']}")


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
    line(
        f"{point.model} on {point.accelerators:g} x {point.hardware}, {setup['concurrency']} requests in flight, "
        f"{setup['isl']} tokens in, {setup['osl']} out"
    )
    ttft, tpot = (f"{1e3 * v:.4g} ms" for v in (point.ttft_s, point.tpot_s))
    rate = f"{point.output_tokens_per_s_per_accelerator:.1f} tokens/s"
    low, high = point.output_band
    table(
        ["", "value", "90 % band"],
        [
            ["time to first token", ttft, _ms(point.ttft_band_s)],
            ["time per output token", tpot, _ms(point.tpot_band_s)],
            ["output rate per accelerator", rate, f"{low:.0f} to {high:.0f}"],
        ],
    )
    line(
        f"confidence {point.confidence}; limited by {point.limited_by.replace('_', ' ')}; "
        f"running batch {point.running_batch:.1f} of at most {point.largest_batch:.0f}"
    )
    line(
        f"memory per accelerator: weights {point.weight_bytes_per_accelerator / 1e9:.1f} GB, "
        f"KV cache {point.kv_bytes_per_accelerator / 1e9:.1f} GB"
    )
    if point.format_without_rate:
        line(
            f"{point.hardware} has no native {point.format_without_rate} rate: the weights are stored in this format "
            f"and computed in {point.computed_in}"
        )
    parts = ", ".join(f"{k.replace('_', ' ')} {1e3 * v:.2f} ms" for k, v in point.breakdown_s.items())
    line(f"one decode step, by part: {parts}")


def _ms(band: tuple[float, float]) -> str:
    return f"{1e3 * band[0]:.4g} to {1e3 * band[1]:.4g}"
