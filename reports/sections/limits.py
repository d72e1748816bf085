"""Sections: what binds, and what each limit is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from reports.answer_money import money_price
from reports.blocks import Section, Table
from reports.catalogue import columns, say
from reports.context import Context
from reports.figures import supply
from reports.spans import join
from reports.tables import records
from reports.wording import count, percent, plain, span_words, stage_title

__all__ = ["binding_figure", "limits_section", "prices_section", "scope", "where"]

#: One-period prices below this share of the lasting price are dust of the solver: the limit binds later, not now.
DUST = 1e-6


def binding_figure(c: Context) -> Any:
    """The first figure: which stage is scarce, quarter by quarter."""
    return supply.binding_timeline(c.binding, c.periods, scope(c))


def scope(c: Context) -> str:
    """Scenario, where its units are, regime and horizon, for subtitles."""
    return say(
        "limits.scope",
        scenario=c.run.scenario,
        where=where(c),
        regime=c.answer["regime"],
        first=c.periods[0],
        last=c.periods[-1],
    )


def where(c: Context) -> str:
    """The world, or the regions in which a scenario energises where none of them is the rest of the world."""
    titles = [c.title(str(r)) for r in c.quantity("energised")["region"].unique() if r]
    world = not titles or any(name.lower().endswith("world") for name in titles)
    return say("limits.world") if world else join(", ", titles)


def limits_section(c: Context) -> Section:
    """What binds by quarter and year, with use of every limit."""
    s = Section("binds")
    spans = [x for x in c.stage_spans if x.stage]
    if spans:
        words = join(
            "; ",
            (
                say("limits.span", stage=stage_title(x.stage), span=span_words(x.first, x.last, c.periods[-1]))
                for x in spans
            ),
        )
        s.paragraphs.append(say("limits.by_quarter", spans=words))
    s.paragraphs.append(say("limits.meaning"))
    if utilisation := _utilisation(c):
        s.figures.append(utilisation)
    s.tables.append(_rent_table(c))
    return s


def _utilisation(c: Context) -> Any:
    use = c.quantity("utilisation")
    capacity = c.quantity("capacity").set_index(["subject", "period"])["value"]
    if use.empty:
        return None
    have = np.array([float(capacity.get((r.subject, r.period), 0.0)) > 0 for r in records(use)])
    own = set(zip(c.binding["subject"], c.binding["period"], strict=True))
    priced = {(r.subject, r.period) for r in records(c.quantity("price")) if r.value > 0 and _shown(c, r)}
    table = pd.DataFrame(
        {
            "resource": use["subject"].to_numpy(),
            "title": [c.title(x) for x in use["subject"]],
            "stage": use["stage"].to_numpy(),
            "period": use["period"].to_numpy(),
            "utilisation": np.where(have, use["value"], np.nan),
            "binds": [
                "full" if key in own else "share" if key in priced else ""
                for key in zip(use["subject"], use["period"], strict=True)
            ],
        }
    )
    return supply.utilisation_map(table, c.periods, c.now, scope(c))


def _shown(c: Context, price: Any) -> bool:
    """Whether a price stands in the answer: prices of idle limits and of less than 1 % of the largest rent do not."""
    return any(b["resource"] == price.subject for b in c.bindings(price.period))


def _rent_table(c: Context) -> Table:
    rent = (
        c.binding.groupby(["title", "stage", "year"])["rent"]
        .sum()
        .unstack(fill_value=0)
        .reindex(columns=c.years, fill_value=0.0)
    )
    rent = rent.loc[rent.sum(axis=1).sort_values(ascending=False).index]
    unit = "million USD" if c.has_money else str(c.answer["objective"]["unit"])
    scale = 1e6 if c.has_money else 1.0
    rows = [
        [title, stage_title(stage), *[(f"{v / scale:,.0f}" if v / scale >= 0.5 else "-", v / scale) for v in line]]
        for (title, stage), line in zip(rent.index, rent.to_numpy(), strict=True)
    ]
    return Table.named("rents", rows, unit=unit, years=[f"#{y}" for y in c.years])


def prices_section(c: Context) -> Section:
    """What one more unit of each limit is worth, in its own unit and in hours, tokens and tasks."""
    s = Section("prices")
    rows = [(p["period"], b) for p in c.answer["periods"] for b in p["binding"]]
    if not rows:
        s.paragraphs.append(say("limits.no_price"))
        return s
    s.paragraphs.append(say("limits.prices_meaning"))
    if c.has_money:
        table = _money_table(c, rows)
        if len(table):
            s.figures.append(supply.bottleneck_prices(table, c.periods, scope(c)))
    now = c.main_limit["period"] if c.main_limit else c.now
    s.tables.append(_price_table(c, [r for r in rows if r[0] == now], "prices_now", period=now))
    if (contracts := _contract_table(c)) is not None:
        s.tables.append(contracts)
    if len(c.periods) > 1:
        s.tables.append(_price_table(c, rows, "prices", folded=True))
    return s


def _contract_table(c: Context) -> Table | None:
    """Prices of shares held by contract: mean over the periods of a year in which they bind."""
    held = c.binding[c.binding["kind"] == "contract"]
    if held.empty:
        return None
    sums = held.groupby(["title", "unit", "year"], as_index=False).agg(
        price=("price", "mean"), periods=("period", "count")
    )
    rows = [
        [r.title, r.year, (f"{r.periods}", float(r.periods)), (plain(r.price), r.price), r.unit]
        for r in records(sums.sort_values(["year", "price"], ascending=[True, False]))
    ]
    money_name = "USD" if c.has_money else str(c.answer["objective"]["unit"])
    return Table.named("contract_prices", rows, unit=money_name)


def _money_table(c: Context, rows: list[tuple[str, dict[str, Any]]]) -> pd.DataFrame:
    found = []
    for period, b in rows:
        usd = money_price(b["price"], "usd_per_gpu_hour")
        if usd is not None:
            sku = b["price"]["reference"]["sku"]
            found.append((period, b["resource"], b["title"], b["stage"], usd, c.short(sku) if sku else ""))
    return pd.DataFrame(found, columns=["period", "resource", "title", "stage", "usd_per_gpu_hour", "reference"])


def _price_table(
    c: Context, rows: list[tuple[str, dict[str, Any]]], short: str, folded: bool = False, **fields: str
) -> Table:
    many = len({p for p, _ in rows}) > 1
    money = columns("price_in_money") if c.has_money else []
    body = [_price_row(c, p, b, many) for p, b in rows]
    period = columns("price_period") if many else []
    return Table.named(short, body, folded=folded, periods=period, money=money, money_note=_money_note(c), **fields)


def _money_note(c: Context) -> str:
    if not c.has_money:
        return ""
    models = sorted(
        {
            c.title(b["price"]["reference"]["model"])
            for p in c.answer["periods"]
            for b in p["binding"]
            if b["price"]["reference"]["model"]
        }
    )
    tasks = sorted(
        {
            b["price"]["reference"]["task"]
            for p in c.answer["periods"]
            for b in p["binding"]
            if b["price"]["reference"]["task"]
        }
    )
    return say("limits.money_note", models=join(", ", models), tasks=join(", ", tasks))


def _price_row(c: Context, period: str, b: dict[str, Any], many: bool) -> list[Any]:
    price, (low, high) = b["price"], b["price_range"]
    wide = high - low > 0.01 * max(abs(price["native"]), abs(high))
    native = price["native"] if price["native"] > DUST * abs(price["lasting"]) else 0.0
    shown = plain(native) + (say("limits.price_range", low=plain(low), high=plain(high)) if wide else "")
    row: list[Any] = [period] if many else []
    row += [
        b["title"],
        (shown, price["native"]),
        (plain(price["lasting"]), price["lasting"]),
        price["unit"].removeprefix("USD/"),
    ]
    if c.has_money:
        for key in ("usd_per_gpu_hour", "usd_per_mtoken", "usd_per_task"):
            value = money_price(price, key)
            row.append(("-" if value is None else plain(value, 2), value))
        ref = price["reference"]
        row.append(c.short(ref["sku"]) if ref["sku"] else "-")
    gains = b["plus_1_percent"] or {}
    row += [(count(gains[k], 3) if k in gains else "-", gains.get(k)) for k in ("finished", "energised", "h100e")]
    after = b["next_binding"]
    named = c.title(after["resource"]) if after["resource"] else ""
    row.append(
        say("limits.next", limit=named, rise=percent(after["at_capacity_change"]))
        if named and after["at_capacity_change"] is not None
        else "-"
    )
    return row
