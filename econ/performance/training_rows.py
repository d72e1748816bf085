"""From a row of the training format to a model, a part and a set-up; what a row leaves open follows stated rules.

Only columns that describe the run are read: model, params, hardware, n_accelerators, seq, global_batch, micro_batch,
tp, pp, cp, ep, dp, precision, recompute, metric and, for the set-up, conditions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from econ.performance.hardware import Hardware, HardwareError, hardware
from econ.performance.training_layout import best_layout, with_fitting_recompute
from econ.performance.training_memory import TrainingMemoryError, fits, state_fits
from econ.performance.training_model import TrainingModel, TrainingModelError, dense_model, training_model
from econ.performance.training_parameters import TrainingConstants
from econ.performance.training_setup import SetupError, TrainingSetup

__all__ = ["METRICS", "RowError", "TrainingCase", "training_case"]

METRICS = (
    "step_time_s",
    "tokens_per_s_per_gpu",
    "tflops_per_gpu",
    "mfu",
    "samples_per_s_total",
    "peak_memory_gib",
    "params_and_optimizer_memory_gib",
    "activation_memory_gib",
)
MEMORY_METRICS = METRICS[5:]
#: A run in 8 or 4 bit is a tuned one; one of which neither batch nor layout is told may be any.
NARROW = ("fp8", "mxfp8", "nvfp4")
#: Selective recompute of operators saves every second matrix product (torchtitan); that of attention only none.
OPERATOR_SHARE = 0.5
TOLD_COLUMNS = ("seq", "global_batch", "micro_batch", "recompute")
#: Sequences of a micro-batch where a row states none, in tokens of one accelerator; and chunks of a stage likewise.
DEFAULT_SEQUENCE, DEFAULT_RANK_TOKENS, EARLY_CHUNKS, MAX_CHUNKS = 2048, 4096, 3, 8
#: Rates an accelerator hardly depend on the number of accelerators: a usual size is assumed where none is stated.
RATE_METRICS, DEFAULT_ACCELERATORS = ("mfu", "tflops_per_gpu", "tokens_per_s_per_gpu"), 256
#: Longest sequence and largest batch, layout or cluster that a row can mean; a larger number is a slip.
MOST = 1e7
_NUMBER = re.compile(r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?")


#: A micro-batch below one sequence splits a sequence over chips; 1/64 is the least that is plausible.
_RANGE: Mapping[str, tuple[float, float]] = {"micro_batch": (1 / 65, MOST), "global_batch": (1 / 65, MOST)}


class RowError(ValueError):
    """A row that cannot be answered, with the reason."""


@dataclass(frozen=True)
class TrainingCase:
    """One row, understood: what to compute and how its metric is defined."""

    model: TrainingModel
    hw: Hardware
    setup: TrainingSetup
    metric: str
    attention: str
    flop_params: float | None
    stated: bool
    unknown: bool
    assumed: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The group whose error band applies: dense or expert model; layout and batch stated, assumed,
        or (with the shape of the model) unknown."""
        model = "expert" if self.model.moe_layers else "dense"
        return f"{model}_{'stated' if self.stated else 'unknown' if self.unknown else 'assumed'}"


def _text(row: Mapping[str, str], key: str) -> str:
    return (row.get(key) or "").strip()


def _number(row: Mapping[str, str], key: str) -> float | None:
    text = _text(row, key).replace(",", "")
    if not text or text.lower() in ("n/a", "na", "none", "nan"):
        return None
    if not _NUMBER.fullmatch(text):
        raise RowError(f"{key} = {text!r} is not a number")
    value = float(text)
    low, high = _RANGE.get(key, (0.0, 1e16))
    if not low < value <= high:
        raise RowError(f"{key} = {text!r} must be above {low:g} and at most {high:g}")
    return value


def _whole(row: Mapping[str, str], key: str) -> int | None:
    value = _number(row, key)
    if value is None:
        return None
    if value != int(value) or value > MOST:
        raise RowError(f"{key} = {value!r} must be a whole number, at most {MOST:g}")
    return int(value)


def _number_format(text: str, hw: Hardware, adapters: bool) -> str:
    """Training format of a precision text; where none is stated, FP8 for tuned submissions on parts that have it."""
    low = text.lower()
    for key, name in (
        ("nvfp4", "nvfp4"),
        ("fp4", "nvfp4"),
        ("mxfp8", "mxfp8"),
        ("fp8-mx", "mxfp8"),
        ("fp8_mx", "mxfp8"),
        ("bf16 column", "bf16"),
        ("fp8", "fp8"),
        ("bf16", "bf16"),
        ("bfloat16", "bf16"),
        ("fp16", "fp16"),
        ("float16", "fp16"),
        ("tf32", "tf32"),
        ("fp32", "fp32"),
    ):
        if key in low:
            return name
    if low:
        raise RowError(f"precision {text!r} is not one of bf16, fp16, fp8, mxfp8, nvfp4, tf32, fp32")
    return "fp8" if adapters and "fp8" in hw.peak_flop_per_s else "bf16"


def _recompute(text: str) -> str | None:
    low = text.lower()
    if not low:
        return None
    for key in ("none", "selective", "full"):
        if low.startswith(key):
            return key
    if "checkpoint" in low:
        return "full"
    raise RowError(f"recompute {text!r} is not none, selective or full")


def _resolve_model(row: Mapping[str, str]) -> tuple[TrainingModel, bool]:
    name, params = _text(row, "model"), _number(row, "params")
    if not name and params is None:
        raise RowError("no model name and no params")
    try:
        return training_model(name), True
    except TrainingModelError as error:
        if params is None:
            raise RowError(str(error)) from error
    try:
        return dense_model(params, name, sequence=DEFAULT_SEQUENCE), False
    except TrainingModelError as error:
        raise RowError(str(error)) from error


def _resolve_hardware(row: Mapping[str, str], conditions: str) -> Hardware:
    name = _text(row, "hardware")
    try:
        hw = hardware(name)
        if hw.name == "H200" and "h200-nvl" in conditions.lower():
            hw = hardware("H200-NVL")
        rate = re.search(r"([\d.]+)\s*TB/s", conditions)
        if rate and 0.2 < float(rate[1]) * 1e12 / hw.memory_bytes_per_s < 5:
            hw = replace(hw, memory_bytes_per_s=float(rate[1]) * 1e12)
    except HardwareError as error:
        raise RowError(str(error)) from error
    return hw


def _internode(conditions: str, hw: Hardware) -> float:
    """Bytes/s an accelerator of the stated network: `1600 Gbps node-node`, `4x100 Gb/s per node`, `400 Gb/s per
    GPU`."""
    found = re.search(r"(?:(\d+)\s*x\s*)?(\d+)\s*Gb(?:ps|/s|it/s)([^;]*)", conditions, re.IGNORECASE)
    if not found:
        return 0.0
    total = float(found[1] or 1) * float(found[2]) * 1e9 / 8
    return (
        total if re.search(r"per (?:gpu|accelerator|chip)", found[3], re.IGNORECASE) else total / max(hw.domain_size, 1)
    )


def _sharding(row: Mapping[str, str], conditions: str, hw: Hardware, megatron: bool) -> str:
    low = conditions.lower()
    if "shard_grad_op" in low:
        return "zero2"
    if "full_shard" in low or re.search(r"fsdp\s*=\s*[1-9]", low):
        return "zero3"
    if re.search(r"zero[-_ ]?([123])", low):
        return f"zero{re.search(r'zero[-_ ]?([123])', low)[1]}"  # type: ignore[index]
    if hw.vendor == "google" or "2d +" in low or "compile" in low or "torchao" in _text(row, "precision").lower():
        return "zero3"
    if megatron or (_whole(row, "pp") or 1) > 1:
        return "zero1"
    return "zero1" if (_whole(row, "tp") or 1) > 1 else "zero3"


def _virtual(conditions: str, model: TrainingModel, pp: int, early: bool) -> int:
    """Chunks a stage: the stated number; else one layer a chunk, at most eight; in stacks of 2022 (`early`) three
    chunks where the layers of a stage divide by three, else one.
    """
    found = re.search(r"virtual pipeline (\d+|n/a)", conditions)
    if found:
        return 1 if found[1] == "n/a" or pp == 1 else int(found[1])
    if pp == 1:
        return 1
    if not early:
        return max(1, min(MAX_CHUNKS, round(model.layers / pp)))
    return EARLY_CHUNKS if model.layers % pp == 0 and (model.layers // pp) % EARLY_CHUNKS == 0 else 1


def training_case(row: Mapping[str, str], constants: TrainingConstants | None = None) -> TrainingCase:
    """The case of a row; `constants` (default: the shipped ones) rank layouts where a row states none.

    Raises:
        RowError: with the reason, when the row cannot be answered.
    """
    metric = _text(row, "metric")
    if metric not in METRICS:
        raise RowError(f"metric {metric!r} is not predicted for training; metrics: {', '.join(METRICS)}")
    conditions = _text(row, "conditions")
    model, named = _resolve_model(row)
    hw = _resolve_hardware(row, conditions)
    adapters = "lora" in f"{_text(row, 'model')} {conditions}".lower()
    megatron = bool(re.search(r"virtual pipeline|FSDP=0", conditions))
    layout = any(_text(row, k) for k in ("tp", "pp", "cp", "ep", "dp"))
    if metric in MEMORY_METRICS and not (layout and _text(row, "global_batch") and _text(row, "seq")):
        raise RowError(f"{metric} follows from layout, batch and sequence, and the row does not state all of them")
    try:
        setup, stated, assumed = _setup(row, model, hw, conditions, adapters, megatron, constants)
    except (SetupError, TrainingMemoryError) as error:
        raise RowError(str(error)) from error
    causal = not model.hybrid and (
        megatron or "causal" in conditions.lower() or (hw.family == "blackwell" and "full" not in conditions.lower())
    )
    assumed += () if named else ("shape from the parameter count",)
    flop_params = _number(row, "params") if not model.moe_layers else None
    if flop_params is not None and not 0.5 < flop_params / model.total_params < 2:
        raise RowError(f"params = {flop_params:g} contradicts the {model.total_params:.4g} parameters of {model.name}")
    return TrainingCase(
        model,
        hw,
        setup,
        metric,
        "causal" if causal else "full",
        flop_params,
        stated and named,
        not (
            stated
            or (model.workload and hw.vendor == "google")
            or setup.number_format in NARROW
            or any(_text(row, k) for k in TOLD_COLUMNS)
        ),
        assumed,
    )


def _check_layout(row: Mapping[str, str], model: TrainingModel, count: int | None) -> None:
    """Refuse a stated layout that the model or the stated accelerators contradict.

    Raises:
        RowError: with the degree and what it contradicts.
    """
    tp, pp, cp, ep = (_whole(row, k) or 1 for k in ("tp", "pp", "cp", "ep"))
    dp, replica = _whole(row, "dp"), tp * pp * cp
    if tp > model.n_heads:
        raise RowError(f"tp = {tp} is more than the {model.n_heads} attention heads of {model.name}")
    if ep > 1 and not model.moe_layers:
        raise RowError(f"ep = {ep}: {model.name} has no experts")
    if count is not None and replica > count:
        raise RowError(f"tp x pp x cp = {replica} is more than n_accelerators = {count}")
    if count is not None and dp is not None and dp * replica != count:
        raise RowError(f"tp x pp x cp x dp = {replica * dp} is not n_accelerators = {count}")


def _check_batch(setup: TrainingSetup) -> None:
    """Refuse a micro-batch that is more than a replica's share of the global batch.

    Raises:
        RowError: with both.
    """
    if setup.micro_batch * setup.dp > setup.global_batch * (1 + 1e-9):
        raise RowError(
            f"micro_batch = {setup.micro_batch:g} on {setup.dp} replicas is more than global_batch = "
            f"{setup.global_batch:g}"
        )


def _setup(
    row: Mapping[str, str],
    model: TrainingModel,
    hw: Hardware,
    conditions: str,
    adapters: bool,
    megatron: bool,
    constants: TrainingConstants | None,
) -> tuple[TrainingSetup, bool, tuple[str, ...]]:
    """The set-up of a row, whether its layout and batch are stated, and what was assumed."""
    assumed: list[str] = []
    degrees = {k: _whole(row, k) for k in ("tp", "pp", "cp", "ep")}
    stated = any(v is not None for v in (*degrees.values(), _whole(row, "dp")))
    tp, pp, cp, ep = (degrees[k] or 1 for k in ("tp", "pp", "cp", "ep"))
    _check_layout(row, model, _whole(row, "n_accelerators"))
    accelerators = _accelerators(row, tp * pp * cp, assumed)
    sequence = _whole(row, "seq")
    if sequence is None:
        sequence = model.sequence or 8192
        assumed.append(f"sequence {sequence}")
    precision = _text(row, "precision")
    number_format = _number_format(precision, hw, adapters or "submitter=" in conditions)
    recompute = _recompute(_text(row, "recompute"))
    unfused = number_format == "fp16"
    attention_only = "attention" in _text(row, "recompute").lower()
    global_batch, micro = _number(row, "global_batch"), _number(row, "micro_batch")
    low = conditions.lower()
    base = TrainingSetup(
        accelerators=accelerators,
        sequence=sequence,
        global_batch=global_batch or 1.0,
        micro_batch=micro or 1.0,
        virtual=1,
        sharding=_sharding(row, conditions, hw, megatron),
        recompute=recompute or "none",
        selective_share=OPERATOR_SHARE if recompute == "selective" and not unfused and not attention_only else 0.0,
        number_format=number_format,
        sequence_parallel="no sequence parallelism" not in low and "baseline" not in low,
        fused_attention=not unfused,
        tensor_overlap=not unfused and ("2d +" not in low or "async tp" in low),
        autocast=precision.lower().startswith("amp"),
        balanced_stages=not unfused,
        adapters_only=adapters,
        internode_bytes_per_s=_internode(conditions, hw),
    )
    if not stated:
        assumed.append("layout by search")
        replicas = re.search(r"(\d+)-way data parallel", low)
        dp = int(replicas[1]) if replicas else None
        return _searched(base, model, hw, global_batch, recompute, dp, constants), False, tuple(assumed)
    virtual = _virtual(conditions, model, pp, unfused)
    setup = replace(base, tp=tp, pp=pp, cp=cp, ep=1, virtual=virtual, schedule="interleaved" if virtual > 1 else "1f1b")
    setup = _filled(replace(setup, ep=ep), model, hw, low, global_batch, micro, assumed)
    if recompute is None:
        setup = with_fitting_recompute(model, hw, setup)
        assumed.append(f"recompute {setup.recompute} by memory")
    return setup, global_batch is not None, tuple(assumed)


def _filled(
    setup: TrainingSetup,
    model: TrainingModel,
    hw: Hardware,
    conditions: str,
    global_batch: float | None,
    micro_batch: float | None,
    assumed: list[str],
) -> TrainingSetup:
    """A stated layout with the batch and the sharding that a row leaves out; what was assumed is noted."""
    if global_batch is not None and micro_batch is not None:
        _check_batch(replace(setup, global_batch=global_batch))
    if micro_batch is None:
        setup = replace(setup, micro_batch=max(1.0, DEFAULT_RANK_TOKENS * setup.cp // setup.sequence))
    if global_batch is None:
        assumed.append("global batch of one micro-batch a replica")
        batches = 4 * setup.pp if setup.pp > 1 else 1
        setup = replace(setup, global_batch=setup.dp * setup.micro_batch * batches)
    if not re.search(r"fsdp|zero|shard", conditions) and not state_fits(model, hw, setup) and setup.pp == 1:
        # A run that exists cannot have held a whole state a replica: its sharding is not told.
        setup = replace(setup, sharding="zero3")
        assumed.append("weights sharded over the replicas (zero3), as nothing less fits")
    return setup


def _accelerators(row: Mapping[str, str], replica: int, assumed: list[str]) -> int:
    count, dp = _whole(row, "n_accelerators"), _whole(row, "dp")
    if count is not None:
        return max(count, replica)
    if dp is not None:
        return dp * replica
    if _text(row, "metric") not in RATE_METRICS:
        raise RowError("neither n_accelerators nor dp is given")
    assumed.append(f"{DEFAULT_ACCELERATORS} accelerators")
    return max(DEFAULT_ACCELERATORS, replica)


def _searched(
    base: TrainingSetup,
    model: TrainingModel,
    hw: Hardware,
    global_batch: float | None,
    recompute: str | None,
    dp: int | None,
    constants: TrainingConstants | None,
) -> TrainingSetup:
    key = (model, hw.name, base, global_batch, recompute, dp)
    if constants is None and key in _SEARCHED:
        return _SEARCHED[key]
    found = _flat(base, model, hw, global_batch, recompute) if hw.vendor == "google" else None
    if found is None:
        if global_batch is None:
            base = replace(base, global_batch=base.accelerators * max(1.0, DEFAULT_RANK_TOKENS // base.sequence))
        found = best_layout(model, hw, base, recompute=recompute, constants=constants, dp=dp)
    if constants is None:
        _SEARCHED[key] = found
    return found


#: Layouts already searched with the shipped constants; rows come in groups of one set-up.
_SEARCHED: dict[tuple[object, ...], TrainingSetup] = {}


def _flat(
    base: TrainingSetup, model: TrainingModel, hw: Hardware, global_batch: float | None, recompute: str | None
) -> TrainingSetup | None:
    """Weights sharded over all chips and nothing else, the usual TPU layout, with the largest batch a chip that
    fits."""
    most = max(1, 2 * DEFAULT_RANK_TOKENS // base.sequence)
    for rank_batch in (global_batch / base.accelerators,) if global_batch else (most, most / 2, most / 4):
        if rank_batch < 1:
            continue
        trial = replace(base, global_batch=rank_batch * base.accelerators, micro_batch=rank_batch)
        trial = trial if recompute else with_fitting_recompute(model, hw, trial)
        if fits(model, hw, trial):
            return trial
    return None
