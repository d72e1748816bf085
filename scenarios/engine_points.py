"""Tables of the per-token engine for figures: operators under the roofline, and measured beside predicted fronts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from supply.paths import data_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CALIBRATED", "measured_front", "measured_roof", "operator_points"]

_SETUP = ["hardware", "n_accelerators", "weight_format", "framework", "isl", "osl", "tp"]
_ROWS = ("inference_inferencex.csv", "inference_trtllm.csv", "inference_serving_misc.csv")
#: Products of the scenarios by their name in the calibration data.
CALIBRATED = {"h100": "H100", "h200": "H200", "b200": "B200", "mi300x": "MI300X"}
#: Accelerators that differ in their links only.
_SAME_RATES = {"H100": ("H100", "H800")}
#: Fewest measured loads that make a front.
FEWEST = 3


def operator_points(
    model: str, hardware: str, *, isl: int = 1000, osl: int = 1000, concurrency: int = 64, tp: int = 1
) -> pd.DataFrame:
    """Operators of a decode step and of the prefill of one request under the roofline at datasheet rates.

    Columns phase, operator, flops, bytes, intensity_flop_per_byte, seconds, time_share (of its phase),
    attained_flop_per_s, peak_flop_per_s (dense, of the format that the operator computes in), bandwidth_bytes_per_s,
    limited_by, format, model, hardware, and the best rates that kernels were measured at on it (of `measured_roof`):
    measured_flop_per_s, measured_bytes_per_s, missing where there is no measurement.

    Raises:
        EngineError: unknown model or accelerator, or an impossible layout.

    >>> t = operator_points("Llama-3.1-70B", "H100", tp=4)
    >>> sorted(t.loc[t["phase"] == "decode", "limited_by"].unique())
    ['memory_bandwidth']
    """
    import pandas as pd

    from econ.performance.operators import operators
    from econ.performance.requests import make_request
    from econ.performance.setups import Load

    request = make_request(model, hardware, Load(isl=isl, osl=osl, concurrency=concurrency, tp=tp))
    attention_format = "bf16"
    rows = []
    for phase, batch, context in (("decode", float(concurrency), isl + osl / 2), ("prefill", 1.0, float(isl))):
        found = operators(request, "decode" if phase == "decode" else "prefill", batch, context)
        whole = sum(o.seconds for o in found)
        for o in found:
            own = request.members["format_expert" if o.name == "experts" else "format_dense"]
            name = attention_format if o.name in ("attention", "lm_head") else own
            head = (phase, o.name, o.flops, o.bytes_moved, o.intensity_flop_per_byte, o.seconds, o.seconds / whole)
            rate = (o.flops / o.seconds, o.peak_flop_per_s, request.rates.memory_bytes_per_s, o.limited_by, name)
            rows.append((*head, *rate, request.model, request.hardware_name))
    columns = ["phase", "operator", "flops", "bytes", "intensity_flop_per_byte", "seconds", "time_share"]
    columns += ["attained_flop_per_s", "peak_flop_per_s", "bandwidth_bytes_per_s", "limited_by", "format"]
    best, stream = measured_roof(hardware)
    table = pd.DataFrame(rows, columns=[*columns, "model", "hardware"])
    return table.assign(measured_flop_per_s=best, measured_bytes_per_s=stream)


def measured_roof(hardware: str) -> tuple[float, float]:
    """Best measured rates of kernels on an accelerator: FLOP/s in BF16 or FP16, and bytes/s of its memory.

    The H800 counts as an H100, whose arithmetic and memory it has. Missing (NaN) where nothing was measured.

    >>> [f"{x:.3g}" for x in measured_roof("H100")], measured_roof("B200")[1]
    (['6.6e+14', '3e+12'], nan)
    """
    import pandas as pd

    table = pd.read_csv(data_file("calibration", "kernels.csv"), low_memory=False)
    mine = table[table["hardware"].isin(_SAME_RATES.get(hardware, (hardware,)))]
    half = mine["dtype"].astype(str).str.match("bf16|fp16|bfloat16")
    flops = mine.loc[(mine["metric"] == "tflops") & half, "value"].max() * 1e12
    return float(flops), float(mine.loc[mine["metric"] == "memory_bandwidth", "value"].max() * 1e9)


def measured_front(
    model: str, usd_per_gpu_hour: Mapping[str, float], *, isl: int = 1024, osl: int = 1024
) -> pd.DataFrame:
    """Measured operating points of the calibration data beside the engine at the same set-ups, priced by the hour.

    For each accelerator, the framework and format measured at most set-ups are taken, with all their layouts. Output
    tokens/s of a closed loop of n users is n x osl / (TTFT + (osl - 1) x TPOT); cost is all spending over output
    tokens, so it is not the share of the output tokens that other tables print.

    Columns model, hardware, setup, layout, concurrency, as_of, source, tokens_per_s_per_user and usd_per_mtoken
    (measured), on_front (no other measured point is both faster and cheaper), predicted_tokens_per_s_per_user,
    predicted_usd_per_mtoken, low, high (90 % band of the engine); no row where fewer than three set-ups were measured.

    Args:
        model: name as in the calibration data, such as Llama-3.1-70B.
        usd_per_gpu_hour: hour cost by accelerator as in the calibration data, such as {"H100": 2.5}.
        isl: input tokens of the set-ups.
        osl: output tokens.
    """
    import pandas as pd

    wide = _measured(model, isl, osl)
    rows: list[tuple[Any, ...]] = []
    for hardware, usd in usd_per_gpu_hour.items():
        here = wide[wide["hardware"] == hardware]
        sizes = here.groupby(["weight_format", "framework"]).size()
        if here.empty or int(sizes.max()) < FEWEST:
            continue
        weight_format, framework = sizes.index[int(sizes.to_numpy().argmax())]
        mine = here[(here["weight_format"] == weight_format) & (here["framework"] == framework)]
        found = [_front_row(model, usd, {str(k): v for k, v in r.items()}) for r in mine.to_dict("records")]
        rows += [(*row, not any(o[7] > row[7] and o[8] < row[8] for o in found)) for row in found]
    columns = ["model", "hardware", "setup", "layout", "concurrency", "as_of", "source", "tokens_per_s_per_user"]
    columns += ["usd_per_mtoken", "predicted_tokens_per_s_per_user", "predicted_usd_per_mtoken", "low", "high"]
    return pd.DataFrame(rows, columns=[*columns, "on_front"])


def _measured(model: str, isl: int, osl: int) -> pd.DataFrame:
    """Closed-loop rows of a model with both latencies: one row a set-up and load, columns ttft_s and tpot_s."""
    import pandas as pd

    whole = pd.concat([pd.read_csv(data_file("calibration", n), low_memory=False) for n in _ROWS], ignore_index=True)
    keep = (whole["model"] == model) & (whole["isl"] == isl) & (whole["osl"] == osl)
    keep &= whole["scenario"].astype(str).str.contains("closed_loop_concurrency aggregated")
    keep &= whole["metric"].isin(["ttft_mean", "tpot_mean"]) & (whole["dp"].fillna(1) == 1) & (whole["unit"] == "ms")
    rows = whole[keep].assign(concurrency=lambda d: pd.to_numeric(d["concurrency_or_batch"], errors="coerce"))
    keys = [*_SETUP, "concurrency", "as_of", "source"]
    wide = rows.pivot_table(index=keys, columns="metric", values="value", aggfunc="median").reset_index()
    if not {"ttft_mean", "tpot_mean"} <= set(wide.columns):
        return pd.DataFrame(columns=[*keys, "ttft_s", "tpot_s"])
    wide = wide.dropna(subset=["ttft_mean", "tpot_mean"])
    return wide.assign(ttft_s=wide["ttft_mean"] / 1e3, tpot_s=wide["tpot_mean"] / 1e3)


def _front_row(model: str, usd: float, r: Mapping[str, Any]) -> tuple[Any, ...]:
    from econ.performance.serving import operating_point

    osl, users, count, tp = float(r["osl"]), float(r["concurrency"]), float(r["n_accelerators"]), int(r["tp"])
    rate = users * osl / (r["ttft_s"] + (osl - 1) * r["tpot_s"]) / count
    point = operating_point(
        model,
        str(r["hardware"]),
        isl=float(r["isl"]),
        osl=osl,
        concurrency=users * tp / count,
        tp=tp,
        weight_format=str(r["weight_format"]),
        framework=str(r["framework"]),
    )
    setup, layout = f"{r['framework']}, {r['weight_format']}", f"TP{tp}"
    ends = [_usd(usd, x) for x in reversed(point.output_band)]
    predicted = (point.tokens_per_s_per_user, _usd(usd, point.output_tokens_per_s_per_accelerator), *ends)
    head = (model, r["hardware"], setup, layout, users, str(r["as_of"]), r["source"])
    return (*head, 1.0 / r["tpot_s"], _usd(usd, rate), *predicted)


def _usd(usd_per_gpu_hour: float, tokens_per_s: float) -> float:
    """USD per million tokens at an hour cost and a rate of one accelerator.

    >>> round(_usd(3.6, 1000.0), 9)
    1.0
    """
    return usd_per_gpu_hour / (tokens_per_s * 3600.0) * 1e6
