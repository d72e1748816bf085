"""Power and energy of an operating point: phases from the step model, shares of the peaks from the ideal machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from econ.performance.energy import EnergyError, chip_power_w
from econ.performance.hardware import hardware
from econ.performance.ideal import ideal_parameters
from econ.performance.load_models import closed_loop
from econ.performance.parameters import ParameterSet
from econ.performance.requests import build_setups, make_request
from econ.performance.search import Option
from econ.performance.setups import Load
from econ.performance.steps import constants, decode_step, prefill
from econ.performance.tables import serving_parameters

__all__ = ["OperatingEnergy", "operating_energy"]


@dataclass(frozen=True, slots=True)
class OperatingEnergy:
    """Chip watts per accelerator by phase and on average, and joules per output token at chip and facility scope."""

    prefill_power_w: float
    decode_power_w: float
    average_power_w: float
    prefill_time_share: float
    joules_per_output_token: float
    facility_joules_per_output_token: float


def operating_energy(
    model: str,
    device: str,
    option: Option,
    *,
    isl: int,
    osl: int,
    pue: float = 1.0,
    parameters: ParameterSet | None = None,
) -> OperatingEnergy:
    """Energy of a set-up found by `search` in steady state, prefill and decode taking turns on the same accelerators.

    A phase's shares of the peaks are its time on an ideal machine over its modelled time; PUE is applied once, last.
    Hosts, network and fans are not chip power: the power chain adds them.

    Raises:
        EnergyError: when the PUE is below 1, or the option is disaggregated (its phases run on different accelerators).
    """
    if pue < 1:
        raise EnergyError(f"PUE {pue} is below 1: it divides facility by IT energy")
    if option.mode != "aggregated":
        raise EnergyError(f"{option.layout}: phases on separate accelerators have no common average power")
    fitted = parameters or serving_parameters()
    load = Load(isl, osl, option.concurrency, option.tp, option.pp, option.ep, option.dp)
    request = make_request(model, device, load, weight_format=option.weight_format, kv_format=option.kv_format)
    ours, ideal = (build_setups([request], p) for p in (fitted, ideal_parameters()))
    ours_c, ideal_c = constants(fitted, ours), constants(ideal_parameters(), ideal)
    served = closed_loop(ours, ours_c)
    batch, context = np.maximum(served.running, 1.0), np.array([isl + osl / 2])
    step, floor = decode_step(ours, ours_c, batch, context), decode_step(ideal, ideal_c, batch, context)
    chunk, chunk_floor = prefill(ours, ours_c), prefill(ideal, ideal_c)
    part = hardware(device)
    decode_w = _power(part.name, floor.compute_s, floor.memory_s, step.total_s)
    prefill_w = _power(part.name, chunk_floor.compute_s, chunk_floor.memory_s, chunk.work_s)
    requests_per_s = float(served.output_per_s[0]) / osl / option.dp
    share = min(1.0, requests_per_s * float(chunk.work_s[0]))
    average = share * prefill_w + (1 - share) * decode_w
    joules = average / option.tokens_per_s_per_accelerator
    return OperatingEnergy(prefill_w, decode_w, average, share, joules, joules * pue)


def _power(device: str, compute_s: np.ndarray, memory_s: np.ndarray, total_s: np.ndarray) -> float:
    shares = (min(1.0, float(x[0] / total_s[0])) for x in (compute_s, memory_s))
    return float(chip_power_w(device, *shares))
