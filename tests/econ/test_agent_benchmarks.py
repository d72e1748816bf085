"""The agent model against published leaderboards: spending adds up, cost distributions and bills are predicted."""

import csv
from collections import defaultdict
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import brentq

from econ.agent_task import FlatPrice, agent_task, attempt_cost, cost_per_verified_task, total_spend
from econ.api_bill import bill_usd
from econ.price_book import TokenPrices
from supply.paths import data_file

Rows = dict[tuple[str, str], dict[str, float]]


@lru_cache(maxsize=1)
def swe_bench() -> Rows:
    """By model and scaffold: per-instance statistics with the leaderboard's own success rate and cost."""
    out: Rows = defaultdict(dict)
    with data_file("agents_economics.csv").open(encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if row["benchmark"] == "swe-bench":
                out[row["model"], row["agent"]][row["metric"]] = float(row["value"])
    return {k: v for k, v in out.items() if "cost_per_resolved_task_mean" in v and "success_rate_pct" in v}


def mean_usd(row: dict[str, float]) -> float:
    rate = row["success_rate_pct"] / 100
    spend = total_spend(row["cost_per_resolved_task_mean"], row["cost_per_unresolved_task_mean"], rate, 1.0)
    return cost_per_verified_task(spend, verified=rate) * rate


def test_solved_and_failed_runs_make_the_printed_cost() -> None:
    ratios = np.array([mean_usd(v) / v["cost_per_task"] for v in swe_bench().values()])
    assert len(ratios) == 24
    # a few leaderboard entries were re-run after their per-instance files; most agree to a few percent
    assert np.median(np.abs(ratios - 1)) < 0.02
    assert np.mean(np.abs(ratios - 1) < 0.10) > 0.9


def test_failed_runs_are_mostly_dearer_but_not_always() -> None:
    ratios = [v["cost_per_unresolved_task_mean"] / v["cost_per_resolved_task_mean"] for v in swe_bench().values()]
    assert min(ratios) < 1 < np.median(ratios)
    success_only = [v["cost_per_resolved_task_mean"] for v in swe_bench().values()]
    verified = [mean_usd(v) / (v["success_rate_pct"] / 100) for v in swe_bench().values()]
    assert all(a < b for a, b in zip(success_only, verified, strict=True))


def test_the_ninetieth_percentile_is_predicted_from_the_median() -> None:
    """One number (the spread of calls) is fitted to median over mean; the upper tail of 24 agents is a prediction."""
    base = agent_task("coding", review_minutes=0.0)
    price = FlatPrice(TokenPrices(3.0, 15.0, 0.3, 3.75))

    def shape(cv: float) -> tuple[float, float]:
        attempt = attempt_cost(replace(base, calls_cv=cv), price)
        return attempt.quantiles["p50"] / attempt.usd, attempt.quantiles["p90"] / attempt.usd

    grid = np.linspace(0.05, 1.3, 26)
    medians, nineties = np.array([shape(cv) for cv in grid]).T
    errors = []
    for row in swe_bench().values():
        mean = mean_usd(row)
        cv = brentq(lambda c, m=row["cost_per_task_median"] / mean: np.interp(c, grid, medians) - m, 0.05, 1.3)
        errors.append(np.interp(cv, grid, nineties) * mean / row["cost_per_task_p90"] - 1)
    assert np.mean(np.abs(errors)) < 0.08
    assert abs(np.median(errors)) < 0.04


@pytest.mark.parametrize(
    ("model", "prices"),
    [
        ("o3-pro (high)", (20.0, 80.0)),
        ("grok-4 (high)", (3.0, 15.0)),
        ("claude-opus-4-20250514 (no think)", (15.0, 75.0)),
        ("claude-opus-4-20250514 (32k thinking)", (15.0, 75.0)),
        ("gemini-2.5-flash-preview-05-20 (no think)", (0.15, 0.60)),
        ("DeepSeek-V3.2-Exp (Chat)", (0.28, 0.42)),
        ("DeepSeek-V3.2-Exp (Reasoner)", (0.28, 0.42)),
    ],
)
def test_logged_bills_of_runs_without_a_cache(model: str, prices: tuple[float, float]) -> None:
    run = aider()[model]
    usd = bill_usd(run["prompt_tokens_total"], run["completion_tokens_total"], *prices)
    assert usd == pytest.approx(run["total_cost"], rel=1e-4)


@pytest.mark.parametrize(
    ("model", "price_in", "price_cached", "price_out"),
    [
        ("gpt-5 (high)", 1.25, 0.125, 10.0),
        ("gpt-5 (medium)", 1.25, 0.125, 10.0),
        ("o3", 2.0, 0.5, 8.0),
        ("claude-sonnet-4-20250514 (no thinking)", 3.0, 0.3, 15.0),
    ],
)
def test_logged_bills_lie_between_no_cache_and_all_cached(
    model: str, price_in: float, price_cached: float, price_out: float
) -> None:
    run = aider()[model]
    counts = run["prompt_tokens_total"], run["completion_tokens_total"]
    fresh = bill_usd(*counts, price_in, price_out)
    cached = bill_usd(0, counts[1], price_in, price_out, counts[0], usd_per_mtoken_cache_read=price_cached)
    assert cached < run["total_cost"] < fresh


@lru_cache(maxsize=1)
def aider() -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = defaultdict(dict)
    with data_file("agents_economics.csv").open(encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if row["benchmark"] == "aider polyglot" and row["agent"].startswith("aider diff"):
                out[row["model"]][row["metric"]] = float(row["value"])
    return out
