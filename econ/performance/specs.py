"""Every fitted constant: its prior from physics or kernels, its spread and the levels that may shift it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from econ.performance.kernel_rows import BACKENDS, FORMATS
from econ.performance.local import ENGINES, PLACES
from econ.performance.parameters import Spec
from econ.performance.software import FRAMEWORKS, GENERATIONS

FAMILIES = ("", "ampere", "hopper", "blackwell", "ada", "cdna3")
COMPUTED = ("bf16", "fp8", "fp4", "int8")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")

SERVING_LEVELS: dict[str, tuple[str, ...]] = {
    "framework": FRAMEWORKS,
    "generation": GENERATIONS,
    "era": ("", "2023"),
    "family": FAMILIES,
    "format_dense": COMPUTED,
    "format_expert": COMPUTED,
}

#: Priors: kernel microbenchmarks for bandwidth, arithmetic and collectives; launch floors of kernels for layer time.
SERVING_SPECS: tuple[Spec, ...] = (
    Spec("weight_bandwidth", 0.85, 0.04, {"family": 0.04}, "share of nominal", "weights read in a step"),
    Spec("kv_bandwidth", 0.67, 0.10, {"family": 0.08}, "share of nominal", "cache read in a step"),
    Spec("compute", 0.68, 0.10, {"family": 0.10, "era": 0.15}, "share of dense peak", "matrix products"),
    Spec("compute_format_dense", 1.0, 0.01, {"format_dense": 0.2}, "factor", "by arithmetic of dense layers"),
    Spec(
        "compute_format_expert",
        1.0,
        0.01,
        {"format_expert": 0.2},
        "factor",
        "by arithmetic of experts",
    ),
    Spec("prefill_compute", 0.9, 0.15, {"framework": 0.1}, "factor", "prefill over decode products"),
    Spec("attention_peak", 0.65, 0.2, {"family": 0.15}, "share of BF16 peak", "long prefill attention"),
    Spec("attention_half_length", 3000.0, 0.3, {}, "token", "length of half the attention rate"),
    Spec("rows_floor", 60.0, 0.3, {}, "row", "rows that a small product costs besides its own"),
    Spec("expert_rows_floor", 60.0, 0.4, {}, "row", "the same an expert"),
    Spec("layer_us", 50.0, 0.3, {"framework": 0.3, "era": 0.8}, "us", "launch and gaps a layer"),
    Spec("moe_layer_us", 17.0, 0.5, {}, "us", "more for a layer with experts"),
    Spec("linear_layer_share", 1.0, 0.3, {}, "share", "layer time of linear attention, which runs as many kernels"),
    Spec("step_ms", 0.3, 0.5, {"framework": 0.4}, "ms", "scheduler and sampling a step"),
    Spec("sequence_us", 9.0, 0.5, {"framework": 0.3}, "us", "host work a running sequence"),
    Spec("skew", 0.75, 0.2, {}, "exponent", "uneven routing"),
    Spec("ep_imbalance", 0.3, 0.6, {}, "factor", "busiest expert rank"),
    Spec("collective_us", 7.0, 0.3, {}, "us", "collective in a step on eight ranks"),
    Spec("collective_bandwidth", 0.75, 0.08, {}, "share of link", "collective wire time"),
    Spec("first_token_ms", 20.0, 0.8, {"framework": 1.0}, "ms", "tokenising, admission, first reply"),
    Spec("prefill_layer_us", 100.0, 0.5, {"framework": 0.4}, "us", "launch a layer in prefill"),
    Spec("interference", 0.85, 0.1, {}, "factor", "prefill work that decode waits for"),
    Spec("burst", 0.1, 0.5, {"framework": 0.5}, "factor", "requests that arrive together"),
    Spec("floor_share", 0.3, 0.7, {"framework": 0.5}, "share", "launch floor that queued prefills pay"),
    Spec("waits", 2.7, 0.4, {}, "step", "decode steps that an arrival waits"),
    Spec("overload", 0.6, 0.3, {}, "factor", "wait for the cache over a full request"),
    Spec("chunk_tokens", 8192.0, 0.3, {}, "token", "prefill chunk"),
    Spec("capacity", 1.0, 0.1, {}, "factor", "sequences over the computed limit"),
    Spec("release_rate", 1.0, 0.01, {"generation": 0.2}, "factor", "maximum rate of a software release"),
    Spec("shard_loss", 0.02, 0.7, {}, "share", "narrow shards of tensor parallelism"),
    Spec("expert_width", 300.0, 0.7, {}, "element", "inner width at which an expert reaches half its rate"),
    Spec("rank_wait", 0.2, 0.7, {}, "share", "data-parallel ranks that wait for the prefill of another"),
    Spec("separate_step", 1.0, 0.2, {}, "factor", "decode step of a separate worker"),
    Spec("separate_first_ms", 100.0, 0.7, {}, "ms", "hand-over between prefill and decode workers"),
    Spec("separate_burst", 0.1, 0.7, {}, "factor", "requests that arrive together at a prefill worker"),
    Spec("server_share", 0.89, 0.1, {}, "share", "MLPerf Server over the rate within its limit"),
    Spec("interactive_share", 0.85, 0.15, {}, "share", "MLPerf Interactive over the rate within its limit"),
)

KERNEL_LEVELS: dict[str, tuple[str, ...]] = {
    "family": FAMILIES[:5],
    "format": FORMATS,
    "backend": (*BACKENDS, "custom", "low_latency", "normal"),
    "op": ("", *COLLECTIVES),
    "cell": ("", *(f"{family}/{form}" for family in FAMILIES[1:5] for form in FORMATS)),
}
_ATTENTION = (
    Spec("attention_compute", 0.7, 0.2, {"family": 0.2, "backend": 0.15, "format": 0.2}, "share of BF16 peak"),
    Spec("attention_half", 900.0, 0.5, {}, "token"),
    Spec("attention_launch_us", 9.0, 0.4, {"family": 0.3, "backend": 0.3}, "us"),
)
_CACHE = (
    Spec("decode_bandwidth", 0.75, 0.15, {"family": 0.2, "backend": 0.15}, "share of nominal"),
    Spec("decode_launch_us", 7.0, 0.4, {"family": 0.3, "backend": 0.3}, "us"),
)
KERNEL_SPECS: dict[str, tuple[Spec, ...]] = {
    "gemm": (
        Spec(
            "gemm_compute",
            0.7,
            0.15,
            {"family": 0.15, "format": 0.25, "backend": 0.2, "cell": 0.15},
            "share of dense peak",
        ),
        Spec(
            "gemm_bandwidth",
            0.75,
            0.15,
            {"family": 0.15, "format": 0.2, "backend": 0.15, "cell": 0.12},
            "share of nominal",
        ),
        Spec("gemm_launch_us", 6.0, 0.4, {"family": 0.3, "format": 0.3, "backend": 0.4}, "us"),
        Spec("gemm_short_k", 200.0, 0.4, {}, "element"),
    ),
    "prefill_attention": _ATTENTION,
    "decode_attention": (
        *_CACHE,
        Spec("decode_block_us", 1.5, 0.5, {"family": 0.2}, "us"),
        Spec("decode_wide_group", 0.5, 0.7, {}, "exponent"),
    ),
    "latent_decode": (Spec("latent_compute", 0.45, 0.3, {"family": 0.3, "backend": 0.2}, "share of peak"), *_CACHE),
    "latent_prefill": (Spec("latent_prefill", 0.9, 0.3, {}, "factor"), *_ATTENTION),
    "moe": (
        Spec("moe_compute", 0.6, 0.2, {"family": 0.2, "format": 0.2, "backend": 0.2}, "share of dense peak"),
        Spec("moe_bandwidth", 0.7, 0.15, {"family": 0.15, "format": 0.2, "backend": 0.15}, "share of nominal"),
        Spec("moe_launch_us", 25.0, 0.5, {"family": 0.3, "backend": 0.3}, "us"),
        Spec("moe_skew", 0.7, 0.3, {}, "exponent"),
        Spec("moe_imbalance", 0.4, 0.5, {}, "factor"),
        Spec("moe_rows_floor", 40.0, 0.5, {}, "row"),
        Spec("moe_short_k", 150.0, 0.5, {}, "element"),
    ),
    "collective": (
        Spec("collective_us", 12.0, 0.4, {"family": 0.3, "backend": 0.8, "op": 0.2}, "us"),
        Spec("collective_rank_power", 0.5, 0.4, {"backend": 0.3}, "exponent"),
        Spec("collective_rate", 0.85, 0.1, {"family": 0.1, "backend": 0.15, "op": 0.1}, "share of link"),
        Spec("collective_norm", 0.7, 0.2, {"backend": 0.2}, "exponent"),
        Spec("collective_node_factor", 4.0, 0.5, {}, "factor"),
        Spec("eager_us", 15.0, 0.5, {}, "us"),
    ),
    "exchange": (
        Spec("exchange_us", 15.0, 0.5, {"backend": 0.5}, "us"),
        Spec("exchange_rate", 0.5, 0.4, {"backend": 0.3, "family": 0.2}, "share of link"),
        Spec("exchange_node_copies", 0.8, 0.3, {}, "factor"),
    ),
}

LOCAL_LEVELS: dict[str, tuple[str, ...]] = {"place": PLACES, "engine": ENGINES, "quantised": ("", "yes")}
LOCAL_SPECS: tuple[Spec, ...] = (
    Spec("local_bandwidth", 0.8, 0.15, {"place": 0.2, "engine": 0.1, "quantised": 0.1}, "share of nominal"),
    Spec("local_layer_us", 60.0, 0.4, {"place": 0.4, "engine": 0.4}, "us", "launch and host time a layer"),
    Spec("local_moe_us", 60.0, 0.4, {"place": 0.3}, "us", "more for a layer with experts"),
    Spec("local_hop_us", 120.0, 0.5, {}, "us", "hop between cards of a layer split"),
    Spec("local_batch_compute", 0.2, 0.5, {"place": 0.3}, "share of peak", "small batches"),
    Spec("local_sequence_us", 100.0, 0.8, {"place": 0.3}, "us", "host time a further sequence"),
    Spec("local_prefill_peak", 0.6, 0.3, {"place": 0.3, "quantised": 0.2}, "share of peak"),
    Spec("local_unit_tflops", 0.95, 0.2, {"place": 0.2, "quantised": 0.2}, "TFLOP/s a multiprocessor"),
    Spec("local_prefill_layer_us", 60.0, 0.6, {"place": 0.4}, "us", "launch a layer and micro-batch"),
    Spec("local_overlap", 0.6, 0.4, {}, "share", "gain of micro-batches over several cards"),
)


def present_levels(
    levels: Mapping[str, tuple[str, ...]], members: Iterable[Mapping[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Levels with only the members that some measurement has, so that no constant stands without a row.

    The first member of a level (no offset) always stays.
    """
    seen: dict[str, set[str]] = {level: set() for level in levels}
    for row in members:
        for level in levels:
            seen[level].add(row.get(level, ""))
    return {level: (names[0], *(name for name in names[1:] if name in seen[level])) for level, names in levels.items()}
