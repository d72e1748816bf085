"""Words and charts of the app: right numbers, nothing executable, nothing hidden from a keyboard or a reader."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reports import app_chart, app_tables, app_view
from reports.app_model import Preview

ATTACK = '<img src=x onerror="alert(1)">'
HOSTILE = f"""title: '{ATTACK}'
note: '{ATTACK}'
horizon: {{start: 2026-Q1, periods: 2}}
objective: units
materials: {{die: {{unit: die, title: '{ATTACK}'}}}}
resources: {{fab: {{stage: fab, title: '{ATTACK}', capacity: 10 die/quarter}}}}
processes: {{make: {{stage: fab, title: '{ATTACK}', output: {{die: 1}}, uses: {{fab: 1 die}}}}}}
demand: {{die: {{price: 1 USD/die}}}}
"""


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [a for a, _ in attrs]


def everything(preview: Preview, moved: dict[str, float]) -> str:
    case = preview.solve(moved)
    pinned = preview.solve({})
    return "".join(
        [
            app_view.title(preview),
            app_view.headline(preview, case),
            app_view.chain(preview, case),
            app_view.pictures(preview, case, pinned),
            app_tables.comparison(preview, [("base", preview.base), ("pinned", pinned), ("current", case)], "", ""),
            app_tables.costs(preview, case, "", ""),
            app_tables.ranking(preview, [(c, -1.0, 2.0) for c in preview.controls.values()]),
            app_view.band_words(preview.bands(moved, draws=2), preview),
            app_view.footing(preview),
            *(app_view.track(c, preview.year) for c in preview.controls.values()),
        ]
    )


@pytest.fixture(scope="module")
def small() -> Preview:
    return Preview.open("small")


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_text(HOSTILE, encoding="utf-8")
    preview = Preview.open(path)
    text = everything(preview, {"resources_fab_capacity": 90})
    tags = Tags()
    tags.feed(text)
    assert "img" not in tags.names and "onerror" not in tags.attributes
    assert text.count("&lt;img") > 5


def test_headline_says_number_change_stage_and_inputs(small: Preview) -> None:
    case = small.solve({"power": 90})
    text = re.sub(r"<[^>]+>", "", app_view.headline(small, case))
    assert f"{case.total('2026') / 1e6:.3f} million accelerators energised in 2026" in text
    change = 100 * (case.total("2026") / small.base.total("2026") - 1)
    assert f"{change:.1f} % against the base of 9." in text
    assert "binds most in 2026" in text and "Energised power, % of base" not in text
    assert "Moved: Energised power 90 % of base" in text
    assert "no evidence supports it" not in text
    outside = app_view.headline(small, small.solve({"power": 50}))
    assert "is outside the sources" in outside


def test_at_the_base_there_is_no_change(small: Preview) -> None:
    text = app_view.headline(small, small.base)
    assert "no change" in text and "All sliders are at the base" in text


def test_the_grid_has_the_shares_of_the_case(small: Preview) -> None:
    grid = app_chart.binding_grid(small.base)
    for stage in small.base.shares("2026-Q4"):
        assert f">{100 * small.base.shares('2026-Q4')[stage]:.0f}</td>" in grid
    rows = re.findall(r"<tr>.*?</tr>", grid)
    assert all(len(re.findall(r"<td", row)) == 12 for row in rows[2:])
    assert "<caption>" in grid and 'scope="row"' in grid


def test_the_chart_adds_up_and_is_described(small: Preview) -> None:
    chart = app_chart.volume_chart(small.base, small.base, None, {}, "energised")
    heights = [float(h) for h in re.findall(r'<rect [^>]*height="([\d.]+)"', chart)]
    top = app_chart._ticks(float(small.base.volume.sum(axis=0).max()))[0]
    scale = (app_chart.HEIGHT - app_chart.TOP - app_chart.BOTTOM) / top
    assert sum(heights) == pytest.approx(float(small.base.volume.sum()) * scale, rel=0.02)
    assert 'role="img"' in chart and 'aria-label="Accelerators energised by period' in chart


def test_side_by_side_compares_the_last_two(small: Preview) -> None:
    pinned, case = small.solve({"power": 90}), small.solve({"power": 80})
    table = app_tables.comparison(
        small, [("base", small.base), ("pinned", pinned), ("current", case)], "deepseek_v3", "chat"
    )
    line = next(r for r in re.findall(r"<tr>.*?</tr>", table) if "Accelerators energised in 2026" in r)
    assert f"{100 * (case.total('2026') / pinned.total('2026') - 1):+.1f} %" in line
    assert "Input: Energised power, % of base" in table and ">80<" in table
    assert "Input: HBM wafer capacity" not in table


def test_costs_show_the_chosen_model(small: Preview) -> None:
    one, other = (app_tables.costs(small, small.base, m, "coding") for m in ("llama_3_1_70b", "deepseek_v3"))
    assert one != other and "Llama-3.1-70B" in one and "DeepSeek-V3" in other and "Task: coding" in one
    row = small.base.cost("h100", "deepseek_v3", "coding")
    assert row is None or row.mtoken is None or f"{row.mtoken:.2f}" in other or row.mtoken < 0.1


def test_a_failed_case_shows_its_reason_only(small: Preview) -> None:
    from dataclasses import replace

    case = replace(small.base, failed="power_us is too small by 3 MW <b>")
    text = app_view.headline(small, case)
    assert (
        "No plan exists" in text and "too small by 3 MW &lt;b&gt;" in text and "accelerators energised in" not in text
    )
    assert app_view.chain(small, case) == "" and app_view.pictures(small, case, None) == ""


def test_every_picture_has_words_and_tables_have_headers(small: Preview) -> None:
    text = everything(small, {"power": 90})
    assert len(re.findall(r"<svg", text)) == len(re.findall(r'<svg[^>]*aria-label="[^"]{20,}"', text))
    for table in re.findall(r"<table.*?</table>", text, flags=re.DOTALL):
        assert 'scope="col"' in table and 'scope="row"' in table
    assert "http://" not in text and "https://" not in text
