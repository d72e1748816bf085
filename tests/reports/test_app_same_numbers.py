"""The base answer of the app against what the report of the same run displays, number by number as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reports import app_tables, app_view
from reports.app_model import Preview
from reports.context import Context
from reports.wording import count
from scenarios.runner import run


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Preview, Context]:
    stored = run("small", out=tmp_path_factory.mktemp("runs"))
    return Preview.open("small"), Context(stored)


def test_accelerators_of_every_year_are_printed_alike(pair: tuple[Preview, Context]) -> None:
    preview, context = pair
    table = re.sub(r"<[^>]+>", " ", app_tables.comparison(preview, [("base", preview.base)], "", ""))
    for year in context.years:
        for digits in (2, 3, 4):
            assert count(preview.base.total(year), digits) == count(context.total("energised", year), digits)
        assert count(context.total("energised", year), 4) in table
    assert preview.years == context.years


def test_stages_and_their_shares_are_the_same(pair: tuple[Preview, Context]) -> None:
    preview, context = pair
    for year in context.years:
        shares = context.stage_shares(year)
        shown = preview.base.shares(year)
        assert {s: round(float(v), 6) for s, v in shares.items() if v > 0.005} == {
            str(s): round(v, 6) for s, v in shown.items()
        }


def test_costs_are_the_same(pair: tuple[Preview, Context]) -> None:
    preview, context = pair
    rows = [c for c in context.answer["costs"] if c["period"] == preview.base.costs[0].period]
    assert len(rows) > 5
    page = app_tables.costs(preview, preview.base, preview.costing.models()[0], preview.costing.tasks()[0])
    for row in rows:
        shown = next((c for c in preview.base.costs if (c.sku, c.model) == (row["sku"], row["model"])), None)
        assert shown is not None and shown.mtoken is not None
        assert f"{shown.hour:.4g}" == f"{row['usd_per_gpu_hour']:.4g}"
        assert f"{shown.mtoken:.4g}" == f"{row['usd_per_mtoken']['output']:.4g}"
    first = next(r for r in rows if r["model"] == preview.costing.models()[0])
    assert f"{first['usd_per_gpu_hour']:.2f}"[:4] in page


def test_the_headline_of_the_app_is_in_the_page_of_the_report(pair: tuple[Preview, Context], tmp_path: Path) -> None:
    """All formats are written from one context; the page stands for them here (they are compared with it elsewhere)."""
    from reports.market_report import write_report

    preview, context = pair
    headline = re.sub(r"<[^>]+>", " ", app_view.headline(preview, preview.base))
    written = write_report([context.run], tmp_path)
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", Path(written).read_text(encoding="utf-8")))
    year = preview.year
    assert count(preview.base.total(year), 4) in headline
    assert count(preview.base.total(year), 2) in page
