"""Agent logs: reading, replays, unmetered runs, child calls, caps, and fits that recover what made the log."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from econ.agent_calls import AgentError, Context
from econ.agent_task import AgentTask, FlatPrice, task_cost
from econ.api_bill import api_bill, require_metered
from econ.price_book import PriceError, TokenPrices
from econ.trajectories import CallEvent, clean, read_trajectories, runs
from econ.trajectory_fit import cap_report, fit_trajectories
from econ.usage import TokenUsage

PRICE = FlatPrice(TokenPrices(3.0, 15.0, 0.3, 3.75))
TASK = AgentTask("t", Context(2000, 500, 800, 200), 12, 0.6, calls_failed=18, calls_cv=0.4, correlation=0.4, tool_s=5)


def events(tasks: int, tries: int, seed: int = 1) -> list[CallEvent]:
    """A log made by the task model itself."""
    rng = np.random.default_rng(seed)
    size = 1 / TASK.correlation - 1
    out = []
    for t in range(tasks):
        p = rng.beta(TASK.success_rate * size, (1 - TASK.success_rate) * size)
        for a in range(tries):
            won = bool(rng.random() < p)
            mean = 12 if won else 18
            calls = max(1, round(1 + rng.gamma(1 / 0.4**2, (mean - 1) * 0.4**2)))
            for i, record in enumerate(TASK.walk(calls).calls):
                usd = sum(PRICE.by_class(record.usage).values())
                out.append(
                    CallEvent(f"{t}-{a}-{i}", f"task{t}", str(a), record.usage, tool_s=5.0, cost_usd=usd, verified=won)
                )
    return out


def write_csv(path: Path, rows: list[dict[str, object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


ROW: dict[str, object] = {
    "event_id": "e1",
    "task": "a",
    "attempt": "1",
    "input_tokens": 9,
    "output_tokens": 4,
    "cache_write_tokens": 17102,
    "verified": "true",
}


# --- user cases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("main", "children", "right", "over"),
    [(8.93, 11.28, 20.21, 1.263), (7.70, 20.06, 27.76, 2.605), (125.74, 6.05, 131.79, 0.048)],
)
def test_case_agent_subagents_left_out(main: float, children: float, right: float, over: float) -> None:
    session = [CallEvent("m", "s", "1", TokenUsage(output=1), cost_usd=main, verified=True)]
    session += [
        CallEvent(f"c{i}", "s", "1", TokenUsage(output=1), parent="main", cost_usd=children / 5) for i in range(5)
    ]
    (run,) = runs(clean(session))
    assert run.usd() == pytest.approx(right, rel=0.001)
    assert run.usd() / main - 1 == pytest.approx(over, abs=0.002)
    assert len(run.calls) == 1 and len(run.child_calls) == 5


def test_replays_are_dropped_by_event_id() -> None:
    log = events(20, 1)
    twice = [*log, *log[: len(log) // 2]]
    cleaned = clean(twice)
    assert cleaned.events == tuple(log)
    assert cleaned.inflation == pytest.approx(len(twice) / len(log))
    assert fit_trajectories(cleaned).usd_per_attempt == pytest.approx(fit_trajectories(clean(log)).usd_per_attempt)
    with pytest.raises(AgentError, match="streaming snapshots"):
        clean([log[0], replace(log[0], usage=TokenUsage(output=1))])


def test_case_agent_zero_cost_runs() -> None:
    silent = [CallEvent(f"z{i}", f"z{i}", "1", TokenUsage(), cost_usd=0.0, verified=True) for i in range(4)]
    with pytest.raises(AgentError, match=r"all 4 attempts show no tokens.*gateway's figures; zeros are not costs"):
        clean(silent)
    log = events(30, 1)
    mixed = fit_trajectories(clean([*log, *silent]))
    alone = fit_trajectories(clean(log))
    assert mixed.unmetered == 4
    assert mixed.usd_per_attempt == pytest.approx(alone.usd_per_attempt)
    assert mixed.usd_per_verified_task == pytest.approx(alone.usd_per_verified_task)


def test_case_agent_cost_cap_not_enforced() -> None:
    with pytest.raises(PriceError, match=r"no price for cache_write, output .*cap cannot hold"):
        require_metered(TokenPrices(1.25, None, 0.3), ("uncached_input", "cache_write", "cache_read", "output"))
    require_metered(TokenPrices(1.25, 10.0, 0.3))
    with pytest.raises(PriceError, match="unknown token class"):
        require_metered(TokenPrices(1.25, 10.0), ("thinking",))
    report = cap_report([0.5] * 99 + [700.0], 4.0)
    assert report.overrun_factor == 175
    assert report.mean_usd == pytest.approx(7.495)
    assert report.mean_if_cut_usd < 0.6  # a distribution cut at the cap hides nine tenths of the spending


# --- reading ----------------------------------------------------------------------------------------------------------


def test_csv_and_jsonl_read_alike(tmp_path: Path) -> None:
    rows = [ROW, ROW | {"event_id": "e2", "cache_write_tokens": 0, "cache_read_tokens": 17102, "started": ""}]
    rows[0] = rows[0] | {"cache_read_tokens": "", "started": "2026-08-03T15:31:05Z"}
    table = read_trajectories(write_csv(tmp_path / "log.csv", rows), "anthropic")
    lines = tmp_path / "log.jsonl"
    lines.write_text("\n".join(json.dumps(r) for r in rows) + "\n", encoding="utf-8")
    assert read_trajectories(lines, "anthropic") == table
    assert [e.usage.prompt for e in table] == [17111, 17111]
    prices = TokenPrices(1.0, 5.0, 0.1, 1.25)
    assert api_bill(table[0].usage, prices).total == pytest.approx(0.0214065, rel=5e-4)


def test_other_column_names(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": 1, "instance": "x", "run": 1, "prompt_tokens": 100, "completion_tokens": 5}]
    names = {
        "event_id": "id",
        "task": "instance",
        "attempt": "run",
        "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
    }
    (event,) = read_trajectories(write_csv(tmp_path / "log.csv", rows), "openai", names)
    assert event.usage == TokenUsage(uncached_input=100, output=5)


def test_every_bad_row_is_named_at_once(tmp_path: Path) -> None:
    rows = [
        ROW | {"input_tokens": "many"},
        ROW | {"output_tokens": -1},
        ROW | {"task": ""},
        ROW | {"verified": "perhaps"},
    ]
    with pytest.raises(AgentError) as caught:
        read_trajectories(write_csv(tmp_path / "bad.csv", rows), "anthropic")
    text = str(caught.value)
    assert text.startswith("4 bad row(s):")
    for part in (
        "bad.csv:2: input_tokens: 'many'",
        "bad.csv:3: output_tokens",
        "bad.csv:4: task: missing",
        "bad.csv:5",
    ):
        assert part in text
    with pytest.raises(AgentError, match=r"exceed the 9 input tokens"):
        read_trajectories(write_csv(tmp_path / "log.csv", [ROW]), "openai")
    (tmp_path / "broken.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(AgentError, match=r"broken\.jsonl:1: not JSON"):
        read_trajectories(tmp_path / "broken.jsonl", "openai")
    with pytest.raises(AgentError, match="cannot be read"):
        read_trajectories(tmp_path / "nosuch.csv", "openai")
    (tmp_path / "empty.csv").write_text("event_id,task,attempt,input_tokens,output_tokens\n", encoding="utf-8")
    with pytest.raises(AgentError, match="no calls"):
        read_trajectories(tmp_path / "empty.csv", "openai")


def test_running_totals_are_differenced(tmp_path: Path) -> None:
    rows = [ROW | {"event_id": f"e{i}", "task": f"t{i}", "cost_usd": c} for i, c in enumerate((0.4, 1.0, 1.7))]
    path = write_csv(tmp_path / "cum.csv", rows)
    spent = [e.cost_usd for e in read_trajectories(path, "anthropic", cumulative_cost=True)]
    assert spent == pytest.approx([0.4, 0.6, 0.7])
    falling = write_csv(tmp_path / "fall.csv", [rows[1], rows[0]])
    with pytest.raises(AgentError, match="running total never falls"):
        read_trajectories(falling, "anthropic", cumulative_cost=True)


# --- fitting ----------------------------------------------------------------------------------------------------------


def test_fit_recovers_the_task_that_made_the_log() -> None:
    fit = fit_trajectories(clean(events(200, 3)), resamples=300)
    assert fit.success.rate == pytest.approx(0.6, abs=0.04)
    assert fit.success.correlation == pytest.approx(0.4, abs=0.1)
    assert fit.calls_solved == pytest.approx(12, rel=0.05)
    assert fit.calls_failed == pytest.approx(18, rel=0.05)
    assert (fit.first_prompt, fit.growth, fit.output, fit.tool_s) == (2500, 1000, 200, 5)
    again = fit.to_task("again", instructions=2000)
    assert again.context == TASK.context
    model = task_cost(replace(again, observed_tasks=None), PRICE).usd_per_verified_task
    assert model == pytest.approx(fit.usd_per_verified_task, rel=0.05)
    assert fit.low < fit.usd_per_verified_task < fit.high
    assert fit_trajectories(clean(events(200, 3)), PRICE, resamples=50).usd_per_attempt == pytest.approx(
        fit.usd_per_attempt
    )


def test_cost_is_all_spending_over_verified() -> None:
    log = clean(events(60, 2))
    fit = fit_trajectories(log, resamples=50)
    spend = sum(e.cost_usd or 0.0 for e in log.events)
    assert fit.usd_per_verified_task == pytest.approx(spend / sum(bool(r.verified) for r in runs(log)))
    assert fit.largest_usd >= fit.usd_per_attempt


def test_fit_refuses_what_it_cannot_tell() -> None:
    log = events(5, 1)
    with pytest.raises(AgentError, match="have no verdict"):
        fit_trajectories(clean([replace(e, verified=None) for e in log]))
    with pytest.raises(AgentError, match="has no cost in the log: give a price, it is not free"):
        fit_trajectories(clean([replace(e, cost_usd=None) for e in log]))
    with pytest.raises(AgentError, match="without one"):
        fit_trajectories(clean([replace(e, verified=False) for e in log]))
    with pytest.raises(AgentError, match="both verified and not"):
        runs(clean([replace(log[0], verified=True), replace(log[1], verified=False)]))


def test_shrinking_context_is_read_not_assumed() -> None:
    prompts = [31983, 32362, 31564, 31355, 30661, 29929, 29295]
    log = [
        CallEvent(str(i), "t", "1", TokenUsage(uncached_input=p, output=100), cost_usd=0.1, verified=True)
        for i, p in enumerate(prompts)
    ]
    fit = fit_trajectories(clean(log), resamples=10)
    assert fit.growth < 0
    with pytest.raises(AgentError, match="runtime drops context"):
        fit.to_task("x")


def test_cap_report_needs_costs() -> None:
    with pytest.raises(AgentError, match="give finite costs and a positive cap"):
        cap_report([], 4.0)
