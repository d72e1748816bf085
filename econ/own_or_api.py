"""Own accelerators or an API, for one workload: the same tokens priced both ways, and the volume where they meet."""

from __future__ import annotations

from dataclasses import dataclass

from econ.api_bill import api_bill, fold_writes
from econ.fleet_load import BreakEven, self_host_break_even
from econ.price_book import TokenPrices
from econ.token_cost import TokenCost
from econ.tokens import Denominator, counted_tokens

__all__ = ["OwnOrApi", "own_or_api"]


@dataclass(frozen=True)
class OwnOrApi:
    """Both sides per million tokens of one denominator, and the break-even at the engine's best estimate and band ends.

    `slow` and `fast` are the break-evens at the low and the high end of the engine's throughput.
    """

    denominator: Denominator
    own_usd_per_mtoken: float
    api_usd_per_mtoken: float
    break_even: BreakEven
    slow: BreakEven
    fast: BreakEven

    @property
    def own_is_cheaper_when_full(self) -> bool:
        """True when a full own fleet beats the API."""
        return self.own_usd_per_mtoken < self.api_usd_per_mtoken


def own_or_api(
    cost: TokenCost,
    prices: TokenPrices,
    accelerators: int | None = None,
    extra_usd_per_day: float = 0.0,
    denominator: Denominator = "total",
) -> OwnOrApi:
    """Compare a token cost with an API's price list on the workload of the cost.

    `accelerators` is the fleet (default: one replica of the operating point). Both sides bill the workload's own mix of
    classes; cached tokens bill as input where the API lists no price of them.

    Raises:
        FleetError: when the fleet is smaller than one replica or a price is not positive.
        PriceError: when the API has no price for a class of the workload.
    """
    usage = cost.workload.usage
    counted = counted_tokens(usage, denominator)
    count = cost.point.accelerators if accelerators is None else accelerators
    api = api_bill(fold_writes(usage, prices), prices).total / counted * 1e6
    busy = float(cost.use.computing_share_of_sold)

    def at(tokens_per_s: float) -> BreakEven:
        mtokens_per_day = tokens_per_s * count * busy * 86_400 * counted / usage.output / 1e6
        return self_host_break_even(count, cost.usd_per_gpu_hour, mtokens_per_day, api, extra_usd_per_day)

    best = at(cost.rate.tokens_per_s)
    return OwnOrApi(denominator, best.full_usd_per_mtoken, api, best, at(cost.rate.low), at(cost.rate.high))
