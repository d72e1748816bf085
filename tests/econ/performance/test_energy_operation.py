"""Energy of operating points: between idle and the limit, falling with batch, PUE once."""

import pytest

from econ.performance.energy import EnergyError, joules_per_token
from econ.performance.energy_operation import operating_energy
from econ.performance.hardware import hardware
from econ.performance.search import SearchSpace, front


@pytest.fixture(scope="module")
def options():
    space = SearchSpace(tp=(1,), ep=(1,), dp=(1,), concurrency=(1, 4, 16, 64), weight_formats=("bf16",))
    return sorted(front("Llama-2-7B", "A100", isl=512, osl=512, space=space).options, key=lambda o: o.concurrency)


def test_power_stays_between_idle_and_limit(options):
    limit = hardware("A100").tdp_w
    for o in options:
        e = operating_energy("Llama-2-7B", "A100", o, isl=512, osl=512)
        assert 0.15 * limit <= e.decode_power_w <= e.prefill_power_w <= limit
        assert e.decode_power_w <= e.average_power_w <= e.prefill_power_w
        assert 0 < e.prefill_time_share < 1


def test_batching_saves_energy_per_token(options):
    joules = [operating_energy("Llama-2-7B", "A100", o, isl=512, osl=512).joules_per_output_token for o in options]
    assert joules == sorted(joules, reverse=True)
    assert joules[0] / joules[-1] > 10, "one user pays for the whole weight sweep"
    assert joules[-1] == pytest.approx(float(joules_per_token(400, 1900)), rel=0.6)  # the service of the user case


def test_pue_enters_once_and_last(options):
    chip = operating_energy("Llama-2-7B", "A100", options[0], isl=512, osl=512)
    site = operating_energy("Llama-2-7B", "A100", options[0], isl=512, osl=512, pue=1.3)
    assert site.joules_per_output_token == chip.joules_per_output_token
    assert site.facility_joules_per_output_token == pytest.approx(1.3 * chip.joules_per_output_token)
    with pytest.raises(EnergyError, match="below 1"):
        operating_energy("Llama-2-7B", "A100", options[0], isl=512, osl=512, pue=0.9)


def test_disaggregated_phases_have_no_common_power():
    space = SearchSpace(tp=(1,), ep=(1,), dp=(1,), concurrency=(16,), modes=("disaggregated",))
    option = front("Llama-2-7B", "A100", isl=512, osl=512, space=space).options[0]
    with pytest.raises(EnergyError, match="no common average power"):
        operating_energy("Llama-2-7B", "A100", option, isl=512, osl=512)
