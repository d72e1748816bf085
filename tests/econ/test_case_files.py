"""Library case files: facts resolved, unknown keys and facts refused with their place."""

from datetime import date
from pathlib import Path

import pytest

from econ.agent_calls import AgentError
from econ.agent_spec import AgentTask
from econ.case_files import fact_ids, read_case
from econ.token_cost import Workload
from econ.tokens import TokenCostError
from econ.workload_card import Buyer, ChoiceError


def write(folder: Path, text: str) -> Path:
    path = folder / "case.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_facts_are_resolved_converted_and_listed(tmp_path: Path) -> None:
    text = """
name: x
prompt_tokens: {fact: course_10_5_prompt_tokens, times: 2}
output_tokens: {fact: course_10_5_output_tokens}
ttft_target_s: {fact: anthropic_cache_ttl_default_2025, unit: second}
"""
    path = write(tmp_path, text)
    load = read_case(path, Workload, TokenCostError)
    assert (load.prompt_tokens, load.output_tokens, load.ttft_target_s) == (2000, 200, 300)
    assert fact_ids(path) == [
        "course_10_5_prompt_tokens",
        "course_10_5_output_tokens",
        "anthropic_cache_ttl_default_2025",
    ]


def test_an_end_of_a_facts_range(tmp_path: Path) -> None:
    text = (
        "name: x\nprompt_tokens: 1\noutput_tokens: 1\ncache_hit_share: {fact: course_task_chat_success_rate, bound: %s}"
    )
    values = [read_case(write(tmp_path, text % b), Workload, TokenCostError).cache_hit_share for b in ("low", "high")]
    assert values == [0.8, 0.97]
    with pytest.raises(TokenCostError, match="bound 'mid' is low or high"):
        read_case(write(tmp_path, text % "mid"), Workload, TokenCostError)


def test_nested_parts_and_dates(tmp_path: Path) -> None:
    text = """
card: {name: x, job: batch, model: m, requests: 10, deadline_hours: 1, needed_by: {fact: buyer_delivery_needed_by},
       workload: {name: w, prompt_tokens: 1, output_tokens: 1}}
candidates: [{name: a, hardware: H100, usd_per_gpu_hour: 2, available_from: 2026-12-24}]
"""
    buyer = read_case(write(tmp_path, text), Buyer, ChoiceError)
    assert buyer.card.needed_by == date(2027, 1, 15)
    assert buyer.candidates[0].available_from == date(2026, 12, 24)
    assert isinstance(buyer.candidates[0].usd_per_gpu_hour, float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\npromt_tokens: 5", r"case\.yaml: unknown key 'promt_tokens'; did you mean prompt_tokens\?"),
        ("name: x\nprompt_tokens: {fact: nosuch}\noutput_tokens: 1", r"case\.yaml\.prompt_tokens: no fact 'nosuch'"),
        ("name: x\nprompt_tokens: {fact: us_cpi_u_2024, unti: s}", "unknown key 'unti' beside 'fact'"),
        ("name: x", "missing 2 required positional arguments"),
        ("- 1", "expected the keys of Workload"),
        ("name: [", "cannot be read"),
        ("name: x\nprompt_tokens: 1\noutput_tokens: 0", "at least one output token"),
    ],
)
def test_bad_files_name_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TokenCostError, match=message):
        read_case(write(tmp_path, text), Workload, TokenCostError)


def test_bad_nested_key_names_its_path(tmp_path: Path) -> None:
    text = "name: x\ncalls: 1\nsuccess_rate: 1\ncontext: {instructions: 1, request: 1, observation: 1, outputs: 1}"
    with pytest.raises(AgentError, match=r"case\.yaml\.context: unknown key 'outputs'; did you mean output\?"):
        read_case(write(tmp_path, text), AgentTask, AgentError)
    with pytest.raises(AgentError, match="cannot be read"):
        read_case(tmp_path / "nosuch.yaml", AgentTask, AgentError)
