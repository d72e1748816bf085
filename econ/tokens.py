"""Cost of a million tokens: accelerator-hours and a checked throughput to four classes and four denominators.

A throughput has four possible denominators, which differ up to ninefold for one run, so each is always named:

    output    output tokens only
    input     prompt tokens only
    total     prompt and output tokens
    weighted  prompt tokens plus `OUTPUT_WEIGHT` times output tokens

Classes (uncached input, cache write, cache read, output) are costed by their stand-alone accelerator time a token,
scaled so that class cost x volume sums to the spending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from numpy.typing import ArrayLike

from econ.finance import plain, require
from econ.usage import TokenUsage
from supply.facts import catalog

__all__ = [
    "ClassCosts",
    "Denominator",
    "StepTimes",
    "TokenCostError",
    "accelerators_of",
    "class_costs",
    "cost_over_price",
    "counted_tokens",
    "denominators",
    "implied_tokens_per_s",
    "output_weight",
    "prefill_usd_per_mtoken",
    "requests_per_hour",
    "tokens_per_usd_of_cost",
    "tokens_per_usd_of_revenue",
    "usd_per_gpu_hour_for",
    "usd_per_mtoken",
]

Denominator = Literal["output", "input", "total", "weighted"]
DENOMINATORS: tuple[Denominator, ...] = get_args(Denominator)


class TokenCostError(ValueError):
    """A token cost that cannot be: no tokens, an unnamed denominator, a class without a time."""


def output_weight() -> float:
    """Input tokens that one output token counts for in the weighted denominator (a published serving default).

    >>> output_weight()
    4.0
    """
    return catalog()["gke_inference_recommender_input_output_cost_ratio_default_2026"].number


def usd_per_mtoken(
    usd_per_gpu_hour: ArrayLike,
    tokens_per_s: ArrayLike,
    denominator: Denominator = "output",
    accelerators: ArrayLike = 1,
    busy_share: ArrayLike = 1.0,
) -> Any:
    """USD per million of the tokens that `denominator` names: price x accelerators / (rate x 0.0036 x busy share).

    `tokens_per_s` is the rate of all `accelerators` together, counted in that denominator. `busy_share` is the share of
    paid hours spent computing (scheduled x healthy x busy); it divides the tokens and never the dollars. The engine's
    rate already holds the arithmetic efficiency, which must not be divided in again.

    Raises:
        TokenCostError: when the denominator has another name.
        FinanceError: when a rate or share is not positive.

    >>> round(usd_per_mtoken(2.50, 700), 6), round(usd_per_mtoken(2.50, 700, busy_share=0.1), 5)
    (0.992063, 9.92063)
    """
    if denominator not in DENOMINATORS:
        raise TokenCostError(
            f"denominator {denominator!r}: name what the rate counts, one of {', '.join(DENOMINATORS)}"
        )
    spend = require("usd_per_gpu_hour", usd_per_gpu_hour, 0) * require("accelerators", accelerators, 0, open_low=True)
    mtokens = require("tokens_per_s", tokens_per_s, 0, open_low=True) * 0.0036
    return plain(spend / (mtokens * require("busy_share", busy_share, 0, 1, open_low=True)))


def usd_per_gpu_hour_for(
    usd_per_mtoken: ArrayLike, tokens_per_s_per_accelerator: ArrayLike, busy_share: ArrayLike = 1.0
) -> Any:
    """The accelerator-hour price at which a token cost is just met (the inverse of `usd_per_mtoken`).

    >>> round(usd_per_gpu_hour_for(0.53, 739), 2)
    1.41
    """
    mtokens = require("tokens_per_s_per_accelerator", tokens_per_s_per_accelerator, 0, open_low=True) * 0.0036
    return plain(require("usd_per_mtoken", usd_per_mtoken, 0) * mtokens * require("busy_share", busy_share, 0, 1))


def implied_tokens_per_s(usd_per_gpu_hour: ArrayLike, usd_per_mtoken: ArrayLike) -> Any:
    """The rate that a quoted hour price and token cost imply: price / (token cost x 0.0036).

    >>> round(implied_tokens_per_s(1.41, 0.53), 1)
    739.0
    """
    cost = require("usd_per_mtoken", usd_per_mtoken, 0, open_low=True)
    return plain(require("usd_per_gpu_hour", usd_per_gpu_hour, 0) / (cost * 0.0036))


def accelerators_of(tp: int = 1, pp: int = 1, dp: int = 1, cp: int = 1, ep: int = 1) -> int:
    """Accelerators of a parallel layout: TP x PP x DP x CP; expert parallelism runs on these and adds none.

    >>> accelerators_of(tp=1, pp=1, dp=8, ep=8)
    8
    """
    sizes = {"tp": tp, "pp": pp, "dp": dp, "cp": cp, "ep": ep}
    for name, size in sizes.items():
        if size < 1 or size != int(size):
            raise TokenCostError(f"{name} = {size!r}: parallel sizes are whole numbers from 1")
    return tp * pp * dp * cp


def tokens_per_usd_of_cost(tokens_per_s: ArrayLike, usd_per_hour: ArrayLike) -> Any:
    """Tokens per dollar spent, the reciprocal of cost per token.

    >>> tokens_per_usd_of_cost(1000, 3.6)
    1000000.0
    """
    hourly = require("usd_per_hour", usd_per_hour, 0, open_low=True)
    return plain(require("tokens_per_s", tokens_per_s, 0) * 3600 / hourly)


def tokens_per_usd_of_revenue(usd_per_mtoken_price: ArrayLike) -> Any:
    """Tokens that a customer gets per dollar paid: a price statistic, not a cost.

    >>> tokens_per_usd_of_revenue(2.0)
    500000.0
    """
    return plain(1e6 / require("usd_per_mtoken_price", usd_per_mtoken_price, 0, open_low=True))


def requests_per_hour(usd_per_gpu_hour: ArrayLike, usd_per_request: ArrayLike) -> Any:
    """Requests an hour at which the accelerator costs as much as the requests are paid.

    >>> requests_per_hour(2.5, 0.004)
    625.0
    """
    price = require("usd_per_request", usd_per_request, 0, open_low=True)
    return plain(require("usd_per_gpu_hour", usd_per_gpu_hour, 0) / price)


def prefill_usd_per_mtoken(
    active_params: ArrayLike,
    gpu_flop_per_s: ArrayLike,
    usd_per_gpu_hour: ArrayLike,
    utilisation: ArrayLike,
    flop_per_param_per_token: ArrayLike = 2.0,
) -> Any:
    """Cost per million prompt tokens by operations alone: FLOP a token / achieved FLOP/s x price; attention left out.

    Compute-bound prefill only; decode is bound by memory and is not costed this way.

    >>> round(prefill_usd_per_mtoken(1e12, 5e15, 3.2, 0.6), 4)
    0.5926
    """
    flop = require("active_params", active_params, 0) * require("flop_per_param_per_token", flop_per_param_per_token, 0)
    rate = require("gpu_flop_per_s", gpu_flop_per_s, 0, open_low=True) * require(
        "utilisation", utilisation, 0, 1, open_low=True
    )
    return plain(flop / rate * require("usd_per_gpu_hour", usd_per_gpu_hour, 0) / 3600 * 1e6)


@dataclass(frozen=True)
class StepTimes:
    """Stand-alone accelerator-seconds of one token of each class: what it costs when the class runs by itself.

    A cache write is a prompt token computed and then kept; a cache read is the work that new tokens do over it.
    """

    uncached_input: float
    cache_write: float
    cache_read: float
    output: float

    def __post_init__(self) -> None:
        for name in ("uncached_input", "cache_write", "cache_read", "output"):
            seconds = getattr(self, name)
            if not 0 <= seconds < float("inf"):
                raise TokenCostError(f"{name} takes {seconds} accelerator-seconds a token: give a finite positive time")

    def total(self, usage: TokenUsage) -> float:
        """Accelerator-seconds of a usage when its classes ran one after another."""
        written = usage.cache_write + usage.cache_write_1h
        return (
            usage.uncached_input * self.uncached_input
            + written * self.cache_write
            + usage.cache_read * self.cache_read
            + usage.output * self.output
        )


@dataclass(frozen=True)
class ClassCosts:
    """USD per million tokens by class; class cost x volume sums to `spend_usd`."""

    usd_per_mtoken: Mapping[str, float]
    spend_usd: float
    usage: TokenUsage
    overlap: float

    @property
    def spend_by_class(self) -> dict[str, float]:
        """USD by class, which sum to the spending."""
        return {name: self.usd_per_mtoken[name] * volume / 1e6 for name, volume in volumes(self.usage).items()}


def volumes(usage: TokenUsage) -> dict[str, float]:
    """Tokens by cost class (cache writes of every lifetime together)."""
    return {
        "uncached_input": usage.uncached_input,
        "cache_write": usage.cache_write + usage.cache_write_1h,
        "cache_read": usage.cache_read,
        "output": usage.output,
    }


def class_costs(usage: TokenUsage, times: StepTimes, spend_usd: float) -> ClassCosts:
    """Share spending over token classes by stand-alone time: cost_c = spend x t_c / sum(volume x t).

    `overlap` of the result is stand-alone seconds per dollar: the scale between the two, the same for all classes.

    Raises:
        TokenCostError: when there are no tokens, none that take time, or the spending is negative.

    >>> costs = class_costs(TokenUsage(uncached_input=1e6, output=1e6), StepTimes(1e-5, 1e-5, 1e-6, 3e-5), 4.0)
    >>> {k: round(v, 6) for k, v in costs.usd_per_mtoken.items()}
    {'uncached_input': 1.0, 'cache_write': 1.0, 'cache_read': 0.1, 'output': 3.0}
    """
    if not 0 <= spend_usd < float("inf"):
        raise TokenCostError(f"spending is {spend_usd} USD: give a finite amount that is not negative")
    busy_s = times.total(usage)
    if busy_s <= 0:
        raise TokenCostError("no tokens that take time: a cost per million of nothing is not a number")
    rate = spend_usd / busy_s * 1e6
    by_class = {name: rate * getattr(times, name) for name in volumes(usage)}
    return ClassCosts(by_class, spend_usd, usage, busy_s / spend_usd if spend_usd else float("inf"))


def counted_tokens(usage: TokenUsage, denominator: Denominator, weight: float | None = None) -> float:
    """Tokens of a usage as a denominator counts them.

    >>> counted_tokens(TokenUsage(uncached_input=100, output=10), "weighted")
    140.0
    """
    match denominator:
        case "output":
            return usage.output
        case "input":
            return usage.prompt
        case "total":
            return usage.total
        case "weighted":
            return usage.prompt + usage.output * (output_weight() if weight is None else weight)
    raise TokenCostError(f"denominator {denominator!r}: one of {', '.join(DENOMINATORS)}")


def denominators(usage: TokenUsage, spend_usd: float) -> dict[str, float]:
    """USD per million tokens by every denominator that the usage has tokens in.

    >>> denominators(TokenUsage(uncached_input=8e6, output=1e6), 9.0)["total"]
    1.0
    """
    counted = {name: counted_tokens(usage, name) for name in DENOMINATORS}
    if not any(counted.values()):
        raise TokenCostError("no tokens: a cost per million of nothing is not a number")
    return {name: spend_usd / count * 1e6 for name, count in counted.items() if count}


def cost_over_price(speedup: ArrayLike, price_ratio: ArrayLike) -> Any:
    """Cost per result of a newer accelerator over the older one: price ratio / measured speed-up.

    Below 1 the newer one is worth it. The speed-up is that of the whole workload, never the ratio of peak rates.

    >>> [round(cost_over_price(s, 2.0), 3) for s in (1.2, 1.5)]
    [1.667, 1.333]
    """
    ratio = require("price_ratio", price_ratio, 0, open_low=True)
    return plain(ratio / require("speedup", speedup, 0, open_low=True))
