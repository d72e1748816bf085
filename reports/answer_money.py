"""What one more unit of the main limit is worth and what an hour, a million tokens and a task cost, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports.catalogue import say
from reports.context import REFERENCE_TASK, Context
from reports.ranges import Span, ranged, study_span, times, widest
from reports.spans import join
from reports.wording import brief, brief_limit, listing, money, plain, stage_title

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SEEN",
    "cost_words",
    "later_words",
    "market_words",
    "money_price",
    "price_words",
    "value_words",
]

#: Least share that the figure of the first page prints.
SEEN = 0.005
#: Stages whose rents stand in an hour.
_IN_AN_HOUR = ("rack", "power")
#: A cost of which so much is one assumed amount is told without it.
_ASSUMED = 0.9


def price_words(c: Context) -> str:
    """What one more unit of the main limit is worth, in its own unit and in hours, tokens and tasks."""
    main = c.main_limit
    if main is None:
        return say("answer.no_price")
    price, title = main["price"], brief_limit(main["title"])
    amount, _, per = str(price["unit"]).partition("/")
    fields = {"per": per or say("answer.unit"), "limit": title, "period": main["period"]}
    if not c.has_money:
        gained = amount.removesuffix("s") if price["native"] == 1 else amount
        return say("answer.gives", **fields, amount=brief(price["native"]), unit=gained)
    power = main["stage"] == "power"
    native = price["lasting"] if power else price["native"]
    study = study_span(c, "price", native) if _watched(c, main) else None
    interval = None if power else _interval(main)
    worth = ranged(native, widest(study, interval), money, digits=2)
    words = say("answer.worth_period", **fields, worth=worth)
    if power:
        words = say("answer.worth_kept", **fields, worth=worth, last=_plan_end(c)[:4])
    spread = _scarcity_parts(c) if _hour_follows(c, main) else _spread(c, main, study)
    return join(" ", [words, spread]) if spread else words


def _plan_end(c: Context) -> str:
    """Last period of the plan, its tail included: up to it a lasting price counts."""
    return max([c.periods[-1], *(str(p) for p in c.run.inputs["to"].dropna())])


def value_words(c: Context) -> str:
    """What a marginal value says, the rents that it rests on, and what a unit of the limit costs to build."""
    if not c.has_money or c.main_limit is None:
        return ""
    return join(" ", [t for t in (say("page.values", rents=_rents(c)), _build_words(c)) if t])


def _rents(c: Context) -> str:
    """The rental path now and in the last period, where the scenario has one."""
    held = c.run.inputs
    path = held[held["path"] == "costs.rental"]
    ends = [path[(path["period"] <= p) & (path["to"] >= p)] for p in (c.now, c.periods[-1])]
    if any(e.empty for e in ends) or c.now == c.periods[-1]:
        return ""
    now, last = (e.iloc[0] for e in ends)
    span = (float(last["low"]), float(last["high"])) if last["low"] < last["high"] else None
    fields = {"now": money(float(now["value"]), 2), "last": ranged(float(last["value"]), span, money, digits=2)}
    return say("page.rents", **fields, end=c.periods[-1])


def _build_words(c: Context) -> str:
    """What a unit of the main limit costs to build, where a fact of the run says so."""
    table, main = c.table("yardsticks"), c.main_limit
    if table is None or main is None or main["stage"] != "power":
        return ""
    here = table[table["stage"] == main["stage"]]
    if here.empty:
        return ""
    r = here.iloc[0]
    cost = ranged(float(r["value"]), (float(r["low"]), float(r["high"])), money)
    return say("page.build_power", unit=r["unit"], cost=cost, origin=str(r["origin"]), year=str(r["year"]))


def _hour_follows(c: Context, main: dict[str, Any]) -> bool:
    """Whether the scarcity in an hour of the reference product is that of the main limit: power, priced now."""
    return main["stage"] == "power" and main["period"] == c.now and c.reference_sku is not None


def _watched(c: Context, main: dict[str, Any]) -> bool:
    """Whether the study followed the price of this limit in this period."""
    table = c.table("headline")
    if table is None or "limit" not in table:
        return False
    return (str(table["limit"].iloc[0]), str(table["period"].iloc[0])) == (main["resource"], main["period"])


def _interval(main: dict[str, Any]) -> Span:
    """The interval of the check by re-solving where it is wider than 1 %: at a kink every price in it is right."""
    low, high = main["price_range"]
    return (low, high) if high - low > 0.01 * max(abs(main["price"]["native"]), abs(high)) else None


def _spread(c: Context, main: dict[str, Any], study: Span) -> str:
    """The price of a limit for each accelerator-hour, million tokens and task of its reference product."""
    price = main["price"]
    reference = price["reference"]
    ratio: Span = None
    table = c.table("headline")
    if study is not None and table is not None:
        base = float(table["unit_price_base"].iloc[0])
        held = widest(
            *((v / base, v / base) for end in ("low", "base", "high") for v in table[f"unit_price_{end}"].dropna())
        )
        ratio = held if base > 0 else None
    engine = _engine(c, reference["sku"], reference["model"], main["period"])
    found: list[str] = []
    names = {"sku": c.short(reference["sku"] or ""), "model": c.title(reference["model"] or "")}
    for name in ("usd_per_gpu_hour", "usd_per_mtoken", "usd_per_task"):
        if (usd := money_price(price, name)) is None:
            continue
        span = times(usd, ratio if name == "usd_per_gpu_hour" else widest(ratio, engine))
        task = _task(reference["task"] or "")
        found.append(say(f"answer.{name}", usd=ranged(usd, span, money, digits=2), **names, task=task))
    return say("answer.spread", parts=listing(found)) if found else ""


def _scarcity_parts(c: Context) -> str:
    """The scarcity in an hour, a million tokens and a task of the reference product."""
    hour = _hour(c, c.reference_sku or "", c.now)
    if hour is None:
        return ""
    names: dict[str, Any] = {"sku": c.short(hour.sku)}
    usd = ranged(hour.scarcity, hour.rents, money, digits=2)
    found = [say("answer.usd_per_gpu_hour", usd=usd, **names)]
    row = _token_row(c, hour.sku)
    if row is None:
        return say("answer.spread", parts=listing(found))
    share = hour.scarcity / hour.full
    ratio = None if hour.rents is None else times(1 / hour.scarcity, hour.rents)
    span = widest(ratio, _engine(c, hour.sku, str(row["model"]), c.now))
    names["model"] = c.title(row["model"])
    value = float(row["value"]) * share
    found.append(say("answer.usd_per_mtoken", usd=ranged(value, times(value, span), money, digits=2), **names))
    if (task := _task_row(c, str(row["model"]), hour.sku)) is not None:
        value = (task["usd_per_verified_task"] - task.get("review_usd", 0.0)) * share
        words = ranged(value, times(value, span), money, digits=2)
        found.append(say("answer.usd_per_task", usd=words, task=_task(REFERENCE_TASK)))
    return say("answer.spread", parts=listing(found))


def _engine(c: Context, sku: str | None, model: str | None, period: str) -> Span:
    """Band of the per-token engine as multiples of a token cost, None where the run holds none."""
    for row in c.answer["costs"]:
        if (row["sku"], row["model"], row["period"]) == (sku, model, period) and row.get("engine_low"):
            return float(row["engine_low"]), float(row["engine_high"])
    return None


def money_price(price: dict[str, Any], name: str) -> float | None:
    """A price in a money unit: the lasting one where the answer holds it (power), else that of the period."""
    lasting = price.get(f"lasting_{name}")
    value = price[name] if lasting is None else lasting
    return None if value is None else float(value)


def _task(name: str) -> str:
    return say("answer.chat") if name == "chat" else say("answer.task", task=name)


class _Hour:
    """Owner cost, scarcity and both together of an hour of a product in a period, with their ranges, USD."""

    def __init__(self, c: Context, sku: str, period: str, owner: Any, full: Any) -> None:
        self.sku, self.period = sku, period
        self.owner, self.owner_span = float(owner["value"]), (float(owner["low"]), float(owner["high"]))
        self.full = float(full["value"])
        self.scarcity = self.full - self.owner
        self.rents = self._studied(c)
        low, high = float(full["low"]), float(full["high"])
        moved = None if self.rents is None else (self.owner + self.rents[0], self.owner + self.rents[1])
        self.moved = moved
        self.full_span = widest((low, high), moved)

    def _studied(self, c: Context) -> Span:
        """Range of the scarcity where the study followed it."""
        table = c.table("headline")
        if table is None or "sku" not in table or str(table["period"].iloc[0]) != self.period:
            return None
        for column, measure in (("sku", "scarcity"), ("newest", "newest_scarcity")):
            if column in table and str(table[column].iloc[0]) == self.sku:
                return study_span(c, measure, self.scarcity)
        return None


def _hour(c: Context, sku: str, period: str) -> _Hour | None:
    owner, full = (c.value_at(q, sku, period) for q in ("owner_usd_per_gpu_hour", "usd_per_gpu_hour"))
    return None if owner is None or full is None else _Hour(c, sku, period, owner, full)


def cost_words(c: Context) -> str:
    """An hour of the reference product, a million output tokens on it, and a task."""
    sku = c.reference_sku
    hour = None if sku is None else _hour(c, sku, c.now)
    if sku is None or hour is None:
        return say("answer.no_costs")
    parts: list[str] = [
        say(
            "answer.hour",
            owner=ranged(hour.owner, hour.owner_span, money),
            sku=c.short(sku),
            period=c.now,
            stages=_scarce_stages(c),
            scarcity=ranged(hour.scarcity, hour.rents, money, digits=2),
            full=ranged(hour.full, hour.full_span, money),
        ),
    ]
    row = _token_row(c, sku)
    if row is not None:
        rate = None if hour.moved is None else times(float(row["value"]) / hour.full, hour.moved)
        usd = ranged(float(row["value"]), widest((float(row["low"]), float(row["high"])), rate), money)
        parts.append(say("answer.tokens", model=c.title(row["model"]), usd=usd))
        parts += _task_words(c, str(row["model"]), sku)
    return join(" ", parts)


def market_words(c: Context) -> str:
    """The contract price of the reference product beside its owner cost: the form with most quotes."""
    table, sku = c.table("market"), c.reference_sku
    hour = None if sku is None else _hour(c, sku, c.now)
    if table is None or hour is None:
        return ""
    held = table[(table["price_kind"] == "contract") & (table["quotes"] > 0)]
    held = held[[c.short(hour.sku).endswith(f" {chip}") for chip in held["chip"]]]
    if held.empty:
        return ""
    r = held.sort_values("quotes", ascending=False).iloc[0]
    price, quotes = float(r["usd_per_gpu_hour"]), int(r["quotes"])
    span = (float(r["low"]), float(r["high"])) if quotes > 1 else None
    case = "below" if price < hour.owner else "between" if price < hour.full else "above"
    words = say("page.quotes_one" if quotes == 1 else "page.quotes", quotes=quotes)
    return say(f"page.market_{case}", price=ranged(price, span, money, digits=2), quotes=words)


def _scarce_stages(c: Context) -> str:
    """The stages in an hour that are scarce now, as the figure of the first page shows them."""
    shares = c.stage_shares(c.now)
    shown = [s for s in _IN_AN_HOUR if shares.get(s, 0.0) > SEEN]
    return listing([stage_title(s) for s in shown or _IN_AN_HOUR[-1:]])


def _later(c: Context, sku: str) -> list[str]:
    """The same hour a year on, or that none is run."""
    period = c.a_year_on
    if period is None:
        return []
    hour = _hour(c, sku, period)
    if hour is None:
        return [_gone(c, sku, period)]
    return [say("answer.hour_later", sku=c.short(sku), period=period, full=ranged(hour.full, hour.full_span, money))]


def _gone(c: Context, sku: str, period: str) -> str:
    """Why no hour of a product is run: retired early, for power where power is the scarcest by then."""
    rows = c.quantity("fleet")
    fleet = rows[(rows["subject"] == sku) & (rows["period"] == c.now)]["value"].sum()
    if fleet <= 1:
        return say("answer.hour_gone", sku=c.short(sku), period=period)
    leaders = dict(zip(c.periods, c.leaders, strict=True))
    key = "answer.retired_for_power" if leaders.get(period) == "power" else "answer.retired"
    return say(key, sku=c.short(sku), period=period)


def later_words(c: Context) -> list[str]:
    """The hour of the reference product a year on, and of the product of which most is energised next year."""
    reference, sku = c.reference_sku, c.newest_sku
    if reference is None:
        return []
    held = _later(c, reference)
    hour = _hour(c, sku, c.now) if sku is not None and sku != reference else None
    if sku is None or hour is None:
        return held
    full = ranged(hour.full, hour.full_span, money)
    fields = {"sku": c.short(sku), "year": c.next_year, "full": full, "period": c.now, "later": ""}
    rate = c.h100_equivalents(sku)
    counts = say("answer.counts_as", rate=plain(rate, 2)) if rate is not None else ""
    later = _hour(c, sku, c.a_year_on) if c.a_year_on is not None else None
    if later is not None:
        full = ranged(later.full, later.full_span, money)
        fields["later"] = say("answer.newest_later", full=full, period=c.a_year_on)
    return [*held, say("answer.newest", **fields, counts=counts)]


def _token_row(c: Context, sku: str) -> pd.Series[Any] | None:
    """Cost of a million output tokens of the first model on a product now."""
    tokens = c.quantity("usd_per_mtoken_output")
    tokens = tokens[(tokens["sku"] == sku) & (tokens["period"] == c.now)]
    return None if tokens.empty else tokens.iloc[0]


def _task_row(c: Context, model: str, sku: str) -> dict[str, Any] | None:
    key = (REFERENCE_TASK, model, sku, c.now)
    return next((t for t in c.answer["tasks"] if (t["task"], t["model"], t["sku"], t["period"]) == key), None)


def _task_words(c: Context, model: str, sku: str) -> list[str]:
    """A task: the agent's part with its range; review by people beside it where it is most of the whole."""
    row = _task_row(c, model, sku)
    if row is None:
        return []
    value, span = row["usd_per_verified_task"], (row["low"], row["high"])
    review = row.get("review_usd", 0.0)
    if review < _ASSUMED * value:
        return [say("answer.task_cost", task=_task(REFERENCE_TASK), usd=ranged(value, span, money))]
    work = ranged(value - review, (span[0] - review, span[1] - review), money)
    return [say("answer.task_parts", task=_task(REFERENCE_TASK), work=work, review=money(review, 2))]
