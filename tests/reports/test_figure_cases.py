"""Figures of comparison: curve of one input, scenarios side by side, scoreboard; words agree with the drawn data."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib.image import imread

from reports.figures.cases import headline_curve, row_of, scenario_panels, scoreboard
from reports.figures.style import Drawn

PERIODS = ["2026-Q1", "2026-Q2"]
HEAD = ["origin", "title", "period", "outcome", "outcome_low", "outcome_high", "value", "low", "high", "inside"]


def curve(outputs: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"input": [1.0, 2.0, 3.0, 4.0], "output": outputs, "binding": ["a", "a", "b", ""]})


def test_every_crossing_of_the_target_is_marked_and_named() -> None:
    card = headline_curve(curve([1e6, 3e6, 1e6, 1e6]), ("GW", "accelerators"), "test", base=2.0, target=2e6)
    assert card.headline == "2.0 million is reached at 1.50 and 2.50"
    assert isinstance(card.svg, Drawn)
    crosses = [line for line in card.svg.figure.axes[0].lines if line.get_marker() == "X"]
    assert [float(c.get_xdata()[0]) for c in crosses] == pytest.approx([1.5, 2.5])


def test_a_target_that_is_not_reached_is_said() -> None:
    card = headline_curve(curve([1e6, 2e6, 2e6, 2e6]), ("GW", "accelerators"), "test", target=9e6)
    assert card.headline == "9.0 million is never reached here"


def test_a_curve_of_two_points_is_refused() -> None:
    with pytest.raises(ValueError, match="2 solved points"):
        headline_curve(curve([1.0, 2.0, 3.0, 4.0]).head(2), ("x", "y"), "test")


def test_the_row_of_a_map_is_the_one_nearest_to_base() -> None:
    binding = [["p", "q"], ["r", "s"]]
    table, at = row_of(
        {"x_scale": [1, 2], "y_scale": [0.5, 1.1], "outputs": {"o": [[1, 2], [3, 4]]}, "binding": binding}, "o"
    )
    assert (table["output"].tolist(), table["binding"].tolist(), at) == ([3, 4], ["r", "s"], 1.1)


def cases(values: dict[str, list[float]]) -> pd.DataFrame:
    rows = [(s, f"Case {s}", p, v) for s, line in values.items() for p, v in zip(PERIODS, line, strict=True)]
    return pd.DataFrame(rows, columns=["scenario", "title", "period", "value"])


def test_the_headline_names_the_case_furthest_from_base() -> None:
    table = cases({"base": [1e6, 1e6], "up": [1.1e6, 1.1e6], "down": [1e6, 0.5e6]})
    card = scenario_panels(table, PERIODS, "base", "accelerators", "test")
    assert card.headline == "Case down: -25.0 % against base"
    assert isinstance(card.svg, Drawn)
    shown = [t.get_text() for axes in card.svg.figure.axes for t in axes.texts]
    assert shown == ["+10.0 %", "-25.0 %"]
    assert len({axes.get_ylim() for axes in card.svg.figure.axes}) == 1 and card.svg.figure.axes[0].get_ylim()[0] == 0


def test_cases_that_miss_a_period_or_the_base_are_refused() -> None:
    table = cases({"base": [1.0, 2.0], "up": [1.0, 2.0]})
    with pytest.raises(ValueError, match="no value in some period for up"):
        scenario_panels(table.iloc[:3], PERIODS, "base", "x", "test")
    with pytest.raises(ValueError, match="'other' is not among the cases base, up"):
        scenario_panels(table, PERIODS, "other", "x", "test")


def scores() -> pd.DataFrame:
    rows = [
        ("2024-01-01", "A", "2025", 3e6, 2e6, 4e6, 2e6, 1e6, 3.5e6, True),
        ("2025-01-01", "A", "2025", 3e6, 2e6, 4e6, 1e6, 0.5e6, 2e6, False),
    ]
    return pd.DataFrame(rows, columns=HEAD).assign(naive_last=[1e6, float("nan")], score=[2.0, 9.0])


def test_the_scoreboard_counts_hits_and_compares_only_where_there_is_a_rival() -> None:
    card = scoreboard(scores().assign(score_last=[4.0, float("nan")]), "test")
    assert card.headline == "1 of 2 inside the band; score 0.50 times naive"
    assert isinstance(card.svg, Drawn)
    words = [t.get_text() for axes in card.svg.figure.axes for t in axes.texts]
    assert words == ["hit, 0.50 times naive", "miss"]


def test_an_empty_scoreboard_is_refused() -> None:
    with pytest.raises(ValueError, match="run a backtest first"):
        scoreboard(scores().head(0), "test")


@pytest.mark.parametrize("style", ["light", "dark"])
def test_saved_files_carry_headline_subtitle_and_source(tmp_path: Path, style: str) -> None:
    card = scoreboard(scores().assign(score_last=[4.0, float("nan")]), "test & <b>scope</b>")
    source = "Source: wafer2token run x; inputs: <three> sources. Illustrative inputs: 3 of 9."
    bare = {p.suffix: p for p in card.save(tmp_path / "bare", style)}
    files = {p.suffix: p for p in card.save(tmp_path / "full", style, source)}
    tree = ElementTree.fromstring(files[".svg"].read_text(encoding="utf-8"))
    words = " ".join(t.text or "" for t in tree.iter("{http://www.w3.org/2000/svg}text"))
    assert card.headline in words and "test & <b>scope</b>" in words and source in words
    assert (tree[0].text or "") == card.alt
    high = [imread(io.BytesIO(f[".png"].read_bytes())).shape[0] for f in (bare, files)]
    assert high[1] > high[0]
