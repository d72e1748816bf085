"""What a report reads from a finished run: its tables with titles, periods and years, nothing computed anew."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from reports.catalogue import say
from scenarios.horizon import nearest_period
from scenarios.runs import main_limit

if TYPE_CHECKING:
    from scenarios.runs import Run

__all__ = ["Context", "PlaceholderError", "StageSpan"]

_MODELS = {"llama_3_1_70b": "Llama-3.1-70B", "gpt_oss_120b": "gpt-oss-120b", "deepseek_v3": "DeepSeek-V3"}
REFERENCE_SKU = "h100"
REFERENCE_TASK = "coding"


class PlaceholderError(ValueError):
    """A run whose inputs hold placeholders: it may be looked at, never published."""


@dataclass(frozen=True)
class StageSpan:
    """Consecutive periods in which one stage carries the largest rent."""

    stage: str
    first: str
    last: str


@dataclass
class Context:
    """One run as a report sees it. Every figure, table and sentence of a report reads from here.

    Raises:
        PlaceholderError: when an input or a fact of the run is a placeholder.
    """

    run: Run

    def __post_init__(self) -> None:
        held = self.run.inputs
        bad = sorted(set(held.loc[held["kind"] == "placeholder", "path"]))
        bad += sorted(k for k, f in self.run.manifest.get("facts", {}).items() if f["kind"] == "placeholder")
        if bad:
            raise PlaceholderError(
                f"run {self.run.id} rests on {len(bad)} placeholder(s): {', '.join(bad[:5])}; "
                "replace each by a fact or by an illustrative value with its reason, then run again"
            )

    # ---- tables

    @cached_property
    def results(self) -> pd.DataFrame:
        """Results with a column `year`."""
        table = self.run.results
        return table.assign(year=table["period"].str[:4])

    def quantity(self, name: str) -> pd.DataFrame:
        """Rows of one quantity."""
        return self.results[self.results["quantity"] == name]

    def table(self, name: str) -> pd.DataFrame | None:
        """A table of `scenarios.report_tables`, None where the run has none."""
        try:
            found = self.run.table(name)
        except KeyError:
            return None
        return found if len(found) else None

    @cached_property
    def binding(self) -> pd.DataFrame:
        """Every limit with a price, contracts included, with a column `year`."""
        found = self.table("binding")
        if found is None:
            columns = ["period", "subject", "title", "kind", "stage", "region", "unit", "price", "limit", "rent"]
            found = pd.DataFrame({c: pd.Series(dtype=float if c in columns[7:] else str) for c in columns})
        return found.assign(year=found["period"].str[:4])

    @cached_property
    def _titles(self) -> dict[str, str]:
        names = self.table("names")
        return {} if names is None else dict(zip(names["id"], names["title"], strict=True))

    def title(self, name: str) -> str:
        """Readable name of a product, limit, process or region."""
        return self._titles.get(name) or _MODELS.get(name) or name.replace("_", " ")

    def short(self, sku: str) -> str:
        """Name of a product without its alternatives, for labels.

        The first of "NVIDIA B200 / GB200" or "NVIDIA H20 (China)".
        """
        return self.title(sku).split(" / ")[0].split(" (")[0]

    @cached_property
    def designers(self) -> dict[str, str]:
        """Designer of each product."""
        names = self.table("names")
        if names is None:
            return {}
        skus = names[names["kind"] == "sku"]
        return dict(zip(skus["id"], skus["designer"], strict=True))

    # ---- time

    @property
    def answer(self) -> dict[str, Any]:
        """The object of `run --json`."""
        return self.run.answer

    @cached_property
    def periods(self) -> list[str]:
        """Labels of the reported periods."""
        return [p["period"] for p in self.answer["periods"]]

    @cached_property
    def years(self) -> list[str]:
        """Years of the horizon."""
        return list(dict.fromkeys(p[:4] for p in self.periods))

    @property
    def as_of(self) -> str:
        """The day on which the newest fact of the run became known."""
        return str(self.run.manifest["as_of"])

    @property
    def known_words(self) -> str:
        """How far the facts reach, in words."""
        return say("fixed.known", day=self.as_of) if self.facts else say("fixed.known_none")

    @cached_property
    def now(self) -> str:
        """The reported period of the as-of date, or the nearest one."""
        return nearest_period(self.periods, self.as_of)

    @property
    def this_year(self) -> str:
        """Year of `now`."""
        return self.now[:4]

    @property
    def next_year(self) -> str | None:
        """The year after, where the horizon reports it."""
        year = str(int(self.this_year) + 1)
        return year if year in self.years else None

    @property
    def a_year_on(self) -> str | None:
        """The period one year after `now`, where the horizon reports it."""
        period = f"{int(self.now[:4]) + 1}{self.now[4:]}"
        return period if period in self.periods else None

    # ---- kinds of runs

    @property
    def has_money(self) -> bool:
        """Whether prices are money (objective `value`)."""
        return bool(self.answer["objective"]["kind"] == "value")

    @property
    def has_fleet(self) -> bool:
        """Whether accelerators are energised, not only finished."""
        return bool(len(self.quantity("energised")))

    # ---- what it says

    def total(self, quantity: str, year: str) -> float:
        """Sum of a flow over a year (or over one period, where a period is given)."""
        rows = self.quantity(quantity)
        return float(rows.loc[rows["period"].str.startswith(year), "value"].sum())

    @cached_property
    def stage_spans(self) -> list[StageSpan]:
        """The stage with the largest rent by period, equal neighbours joined; empty where nothing has a price."""
        rent = self.binding.groupby(["period", "stage"], as_index=False)["rent"].sum()
        spans: list[StageSpan] = []
        for period in self.periods:
            here = rent[rent["period"] == period].set_index("stage")["rent"]
            stage = str(here.idxmax()) if len(here) and here.max() > 0 else ""
            if spans and spans[-1].stage == stage:
                spans[-1] = StageSpan(stage, spans[-1].first, period)
            else:
                spans.append(StageSpan(stage, period, period))
        return spans

    @property
    def leaders(self) -> list[str]:
        """The stage with the largest rent in each period, empty where nothing has a price."""
        return [s.stage for p in self.periods for s in self.stage_spans if s.first <= p <= s.last]

    def stage_shares(self, when: str) -> pd.Series[float]:
        """Share of the scarcity rent of a year (or of one period) by stage, largest first."""
        here = self.binding[self.binding["period"].str.startswith(when)]
        rent = here.groupby("stage")["rent"].sum().sort_values(ascending=False)
        return rent / rent.sum() if rent.sum() > 0 else rent

    def limits_of(self, year: str) -> pd.DataFrame:
        """Limits of a year by rent: columns subject, title, stage, rent."""
        here = self.binding[self.binding["year"] == year]
        sums: pd.DataFrame = here.groupby(["subject", "title", "stage"], as_index=False).agg(rent=("rent", "sum"))
        return sums.sort_values("rent", ascending=False)

    def bindings(self, period: str) -> list[dict[str, Any]]:
        """Binding capacities of a period as the answer holds them, largest rent first."""
        return next((p["binding"] for p in self.answer["periods"] if p["period"] == period), [])

    @cached_property
    def main_limit(self) -> dict[str, Any] | None:
        """The binding capacity with the largest rent now, or in the last period that has one."""
        return main_limit(self.answer, self.now)

    def value_at(self, quantity: str, subject: str, period: str) -> pd.Series[Any] | None:
        """One row of the results."""
        rows = self.quantity(quantity)
        found = rows[(rows["subject"] == subject) & (rows["period"] == period)]
        return None if found.empty else found.iloc[0]

    @cached_property
    def reference_sku(self) -> str | None:
        """The H100 where it is priced now, else the product with most of the fleet."""
        rows = self.quantity("owner_usd_per_gpu_hour")
        here = list(rows.loc[rows["period"] == self.now, "subject"])
        if REFERENCE_SKU in here:
            return REFERENCE_SKU
        fleet = self.quantity("fleet")
        order = fleet[fleet["period"] == self.now].groupby("sku")["value"].sum().sort_values(ascending=False)
        return next((s for s in order.index if s in here), None)

    @cached_property
    def newest_sku(self) -> str | None:
        """The product of which most is energised in the next year."""
        rows = self.quantity("energised")
        here = rows[rows["year"] == self.next_year].groupby("subject")["value"].sum()
        return str(here.idxmax()) if len(here) and here.max() > 0 else None

    def h100_equivalents(self, sku: str) -> float | None:
        """H100-equivalents of one accelerator, as the run counts them."""
        sums = [
            float(rows.loc[rows["subject"] == sku, "value"].sum())
            for rows in (self.quantity("energised_h100e"), self.quantity("energised"))
        ]
        return sums[0] / sums[1] if min(sums) > 0 else None

    @cached_property
    def illustrative(self) -> tuple[int, int]:
        """Input numbers that rest on an illustrative assumption, and all input numbers."""
        held = self.run.inputs
        weak = held.loc[held["kind"] == "illustrative", "path"].nunique()
        return int(weak), int(held["path"].nunique())

    @cached_property
    def facts(self) -> dict[str, dict[str, Any]]:
        """Facts of the run with value, unit, kind, source, url and the day they became known."""
        return dict(self.run.manifest.get("facts", {}))

    @cached_property
    def skus_by_size(self) -> list[str]:
        """Products by what is energised (or finished) over the horizon, largest first; never-made ones left out."""
        rows = self.quantity("energised" if self.has_fleet else "finished")
        order = rows.groupby("subject")["value"].sum().sort_values(ascending=False)
        return [str(s) for s, v in order.items() if v > 1]
