"""The front and the best set-up: ceilings, dominance, targets, refusals, what-if."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.performance.architecture import architecture
from econ.performance.formats import weight_bytes
from econ.performance.hardware import hardware
from econ.performance.ideal import ideal_parameters
from econ.performance.search import Front, Option, SearchError, SearchSpace, _pareto, best, explain, front, what_if

SPACE = SearchSpace(tp=(1, 2, 4, 8), ep=(1,), dp=(1,), concurrency=(1, 4, 16, 64, 256), weight_formats=("fp8",))


@pytest.fixture(scope="module")
def found() -> Front:
    return front("Llama-3.1-70B", "H100", isl=1024, osl=1024, space=SPACE)


def test_front_is_undominated_and_ordered(found):
    speeds = [p.user_tokens_per_s for p in found.points]
    rates = [p.tokens_per_s_per_accelerator for p in found.points]
    assert speeds == sorted(speeds, reverse=True) and rates == sorted(rates)
    for point in found.points:
        assert not any(
            o.user_tokens_per_s > point.user_tokens_per_s
            and o.tokens_per_s_per_accelerator > point.tokens_per_s_per_accelerator
            for o in found.options
        )


def option(speed, rate):
    return Option(1, 1, 1, 1, 1, "", "", "aggregated", 1, 0.1, 1 / speed, speed, rate)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(1, 1e3), st.floats(1, 1e4)), min_size=1, max_size=30))
def test_pareto_agrees_with_brute_force(pairs):
    options = [option(*p) for p in pairs]
    points = _pareto(options)
    brute = {
        (o.user_tokens_per_s, o.tokens_per_s_per_accelerator)
        for o in options
        if not any(
            (
                q.user_tokens_per_s >= o.user_tokens_per_s
                and q.tokens_per_s_per_accelerator > o.tokens_per_s_per_accelerator
            )
            or (
                q.user_tokens_per_s > o.user_tokens_per_s
                and q.tokens_per_s_per_accelerator >= o.tokens_per_s_per_accelerator
            )
            for q in options
        )
    }
    assert {(p.user_tokens_per_s, p.tokens_per_s_per_accelerator) for p in points} == brute


def test_no_option_beats_the_bandwidth_ceiling(found):
    """A user's token needs one read of the weights by its TP ranks, whatever the constants."""
    read = weight_bytes(architecture("Llama-3.1-70B"), "fp8")
    for o in found.options:
        ceiling = o.tp * hardware("H100").memory_bytes_per_s / (0.95 * read)
        assert o.user_tokens_per_s < ceiling


def test_physical_ceiling_is_above_every_option(found):
    ideal = front("Llama-3.1-70B", "H100", isl=1024, osl=1024, space=SPACE, parameters=ideal_parameters())
    by_key = {(o.tp, o.concurrency): o for o in ideal.options}
    for o in found.options:
        top = by_key[(o.tp, o.concurrency)]
        assert o.tokens_per_s_per_accelerator <= top.tokens_per_s_per_accelerator * (1 + 1e-9)


def test_best_meets_its_target(found):
    chosen = best(found, user_tokens_per_s=40, ttft_s=2)
    assert chosen.user_tokens_per_s >= 40 and chosen.ttft_s <= 2
    rivals = [o for o in found.options if o.user_tokens_per_s >= 40 and o.ttft_s <= 2]
    assert chosen.tokens_per_s_per_accelerator == max(o.tokens_per_s_per_accelerator for o in rivals)
    assert best(found, most_accelerators=2).accelerators <= 2
    price = chosen.usd_per_million_output_tokens(2.5)
    assert price == pytest.approx(2.5e6 / (chosen.tokens_per_s_per_accelerator * 3600))


def test_targets_out_of_reach_name_the_nearest(found):
    with pytest.raises(SearchError, match=r"meets TPOT 1e-05 s; nearest: TP8, 1 users.*times the limit"):
        best(found, tpot_s=1e-5)
    with pytest.raises(SearchError, match="uses at most 0 accelerators"):
        best(found, most_accelerators=0)


def test_a_model_that_fits_nowhere_is_refused_with_reasons():
    with pytest.raises(SearchError, match="no room for one sequence"):
        front("Kimi-K2", "RTX-4090", isl=1024, osl=1024, space=SearchSpace(ep=(1,), dp=(1,)))


def test_what_if_moves_the_way_physics_says():
    space = SearchSpace(tp=(4, 8), ep=(1,), dp=(1,), concurrency=(4, 16, 64, 256), weight_formats=("fp8",))
    gain = what_if(
        "Llama-3.1-70B",
        "H100",
        {
            "2x bandwidth": {"memory_bytes_per_s": 2},
            "2x link": {"link_bytes_per_s": 2},
            "half link": {"link_bytes_per_s": 0.5},
        },
        isl=1024,
        osl=1024,
        target_tpot_s=0.03,
        space=space,
    )
    assert gain["base"] == 1 and gain["2x bandwidth"] > gain["2x link"] >= 1 >= gain["half link"]
    assert gain["2x bandwidth"] < 2.01


def test_explanation_sums_to_the_step(found):
    chosen = best(found, user_tokens_per_s=40)
    parts = explain("Llama-3.1-70B", "H100", chosen, isl=1024, osl=1024)
    assert sum(parts[k] for k in ("weights", "experts", "attention", "collectives", "launch")) == pytest.approx(1)
    assert parts["experts"] == 0 and parts["step_s"] <= chosen.tpot_s
    assert math.isfinite(parts["compute_over_memory"])


def test_experts_and_modes_are_searched():
    space = SearchSpace(
        tp=(1, 8),
        ep=(1, 8),
        dp=(1, 8),
        concurrency=(8, 64, 512),
        modes=("aggregated", "disaggregated"),
        most_accelerators=32,
    )
    found = front("DeepSeek-V3", "H200", isl=1024, osl=1024, space=space)
    assert {o.mode for o in found.options} == {"aggregated", "disaggregated"}
    assert {o.ep for o in found.options} == {1, 8} and max(o.accelerators for o in found.options) <= 32
    assert all(np.isfinite(o.ttft_s) and o.tokens_per_s_per_accelerator > 0 for o in found.options)
    assert found.evaluated == len(found.options) > len(found.points)
