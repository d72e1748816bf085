"""Colours of the figures: told apart in grey and under the three colour-vision deficiencies, or by a second cue."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from reports.figures.econ import cost_front, cost_waterfall, headline_tornado
from reports.figures.making import wafer_map_figure
from reports.figures.style import (
    _FILLS,
    _SPARE,
    INK,
    STAGE_COLOURS,
    STAGE_ORDER,
    Drawn,
    FigureCard,
    dark_colour,
    fills,
    on,
)
from reports.figures.supply import accelerator_stack
from reports.figures.training import training_scaling
from reports.figures.vision import VISIONS, contrast, distance, lab

#: Distances in CIE Lab: without a second cue (hatch, dash, marker) colours must differ by the first in every vision and
#: in grey; known products by the second in every vision of colour, whatever their hatches.
ALONE, WITH_CUE = 15.0, 10.0
LIGHT, DARK = "#ffffff", dark_colour("#ffffff")
PERIODS = [f"{y}-Q{q}" for y in (2026, 2027) for q in (1, 2, 3, 4)]

Look = tuple[str, str]


def coloured(one: str, other: str) -> float:
    """Least distance over the visions that see colour."""
    return min(float(np.linalg.norm(lab(one, v) - lab(other, v))) for v in VISIONS if v != "grey")


def told_apart(looks: dict[str, Look]) -> None:
    """Every two looks (colour, cue) of a key can be told apart."""
    for (a, (one, cue)), (b, (other, second)) in combinations(looks.items(), 2):
        if cue == second:
            assert distance(one, other) >= ALONE, (a, one, b, other, cue, distance(one, other))


def looks_of(card: FigureCard) -> dict[str, Look]:
    """What a drawing's key tells apart: label to colour and hatch, or to colour, dash and marker."""
    assert isinstance(card.svg, Drawn)
    found: dict[str, Look] = {}
    for axes in card.svg.figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            patch = handle[0] if hasattr(handle, "patches") else handle
            if hasattr(patch, "get_hatch"):
                found[label] = (to_hex(patch.get_facecolor()), patch.get_hatch() or "")
            else:
                found[label] = (to_hex(patch.get_color()), f"{patch.get_linestyle()} {patch.get_marker()}")
    return found


def stack(skus: list[str]) -> FigureCard:
    rows = [(p, s, q, 1000.0 * (k + 1)) for p in PERIODS for k, s in enumerate(skus) for q in ("finished", "energised")]
    return accelerator_stack(pd.DataFrame(rows, columns=["period", "sku", "quantity", "value"]), PERIODS, "test")


# ---- the palette


def test_simulations_keep_white_and_grey_as_they_are() -> None:
    """Rows of every matrix sum to one: what has no hue looks the same to every eye."""
    for name in VISIONS:
        assert lab("#777777", name) == pytest.approx(lab("#777777"), abs=0.5), name
    # an independent pair: pure red and green of one lightness fall together for red-blind eyes, not in full vision
    assert np.linalg.norm(lab("#a04000", "deuteranopia") - lab("#5a6a00", "deuteranopia")) < 15
    assert np.linalg.norm(lab("#a04000") - lab("#5a6a00")) > 40


def test_known_products_are_told_apart_whichever_stand_together() -> None:
    told_apart(_FILLS)


def test_the_dark_page_keeps_products_apart() -> None:
    dark = {name: (dark_colour(colour), hatch) for name, (colour, hatch) in _FILLS.items()}
    for (a, (one, cue)), (b, (other, second)) in combinations(dark.items(), 2):
        assert cue != second or distance(one, other) >= 0.85 * ALONE, (a, b, distance(one, other))


def test_hatches_are_no_excuse_known_products_differ_in_colour_too() -> None:
    nearest = min(coloured(a[0], b[0]) for a, b in combinations(_FILLS.values(), 2))
    assert nearest >= WITH_CUE


def test_spare_fills_are_told_apart_from_one_another() -> None:
    told_apart({str(k): look for k, look in enumerate(_SPARE)})


def test_stage_colours_are_apart_and_neighbours_differ_in_lightness() -> None:
    for a, b in combinations(STAGE_COLOURS, 2):
        assert coloured(STAGE_COLOURS[a], STAGE_COLOURS[b]) >= ALONE, (a, b)
    for a, b in pairwise(STAGE_ORDER):
        assert distance(STAGE_COLOURS[a], STAGE_COLOURS[b]) >= 14, (a, b)


@pytest.mark.parametrize("colour", [*STAGE_COLOURS.values(), *(c for k, (c, _) in _FILLS.items() if k != "other")])
def test_marks_and_the_text_on_them_have_contrast(colour: str) -> None:
    assert contrast(colour, LIGHT) >= 3.0 and contrast(dark_colour(colour), DARK) >= 3.0
    text = {"white": "#ffffff", "black": "#000000"}[on(colour)]
    assert contrast(colour, text) >= 4.5
    assert contrast(dark_colour(colour), dark_colour(text)) >= 4.4


def test_outline_and_inks_read_on_both_pages() -> None:
    for ink in (INK, "#333333", "#444444", "#555555"):
        assert contrast(ink, LIGHT) >= 4.5 and contrast(dark_colour(ink), DARK) >= 4.5
    assert contrast("#8c8c8c", LIGHT) >= 3.0 and contrast(dark_colour("#8c8c8c"), DARK) >= 3.0


# ---- what is drawn


@pytest.mark.parametrize(
    "skus",
    [
        ["tpu_v7", "rubin", "b300", "tpu_v6e", "h200", "trainium3", "b200", "h100"],
        ["h20", "h100", "h200", "mi300x", "mi355x", "tpu_v5p", "trainium2"],
        [f"part_{k:02d}" for k in range(20)],
        ["own_chip"],
    ],
)
def test_segments_of_a_stack_are_told_apart(skus: list[str]) -> None:
    card = stack(skus)
    looks = looks_of(card)
    assert len(looks) == min(len(skus), 7) and (len(skus) <= 6) == ("other" not in looks)
    told_apart(looks)
    assert isinstance(card.svg, Drawn)
    bars = [b for axes in card.svg.figure.axes for group in axes.containers for b in group]
    assert bars and all(contrast(to_hex(b.get_edgecolor()), LIGHT) >= 3 for b in bars)
    assert all(contrast(to_hex(b.get_facecolor()), to_hex(b.get_hatchcolor())) >= 3 for b in bars if b.get_hatch())


def test_adjacent_segments_differ_in_lightness_or_hatch() -> None:
    looks = list(looks_of(stack(["rubin", "tpu_v7", "b300", "tpu_v6e", "h200", "trainium3"])).values())
    for (one, hatch), (other, second) in pairwise(looks):
        grey = abs(lab(one, "grey")[0] - lab(other, "grey")[0])
        assert hatch != second or grey >= ALONE


def test_unknown_products_never_share_a_fill() -> None:
    names = [f"chip{k}" for k in range(20)]
    assert len(set(fills(names).values())) == 20
    assert fills(["h100", "chip1"])["h100"] == _FILLS["h100"]


def test_curves_of_the_cost_front_differ_in_dash_and_marker() -> None:
    skus = ["h100", "tpu_v6e", "b300", "h200"]
    rows = [("m", s, 10.0 * n, (k + 1) / n, 0.5 / n, 6.0 / n) for k, s in enumerate(skus) for n in (1, 2, 4)]
    columns = ["model", "sku", "tokens_per_s_per_user", "usd_per_mtoken", "low", "high"]
    looks = looks_of(cost_front(pd.DataFrame(rows, columns=columns), "test"))
    assert len({cue for _, cue in looks.values()}) == 4
    told_apart(looks)


def test_shares_of_training_time_are_told_apart() -> None:
    shares = {"goodput": 0.7, "checkpoint": 0.1, "lost_work": 0.1, "down": 0.1}
    money = {
        "rental_usd": 2e6,
        "rental_low": 1e6,
        "rental_high": 3e6,
        "days": 20.0,
        "days_low": 15.0,
        "days_high": 25.0,
    }
    runs = pd.DataFrame([{"accelerators": n, **money, **shares} for n in (2048, 4096)])
    looks = looks_of(training_scaling(runs, "test"))
    assert len(looks) == 4
    told_apart(looks)


def test_bins_of_the_wafer_map_are_told_apart() -> None:
    head = {"width_mm": 20.0, "height_mm": 20.0, "radius_mm": 150.0, "usable_radius_mm": 147.0, "seed": 1}
    more = {"defects_per_cm2": 0.1, "serving_share": 0.8}
    kinds = ("full", "cut", "scrap", "edge", "defect")
    sites = pd.DataFrame([{"kind": n, "x_mm": 25.0 * k, "y_mm": 0.0, **head, **more} for k, n in enumerate(kinds)])
    card = wafer_map_figure(sites, "test")
    assert isinstance(card.svg, Drawn)
    legend = card.svg.figure.axes[0].get_legend()
    looks = {
        str(text.get_text()): (to_hex(patch.get_facecolor()), patch.get_hatch() or "")
        for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=False)
    }
    assert len(looks) == 4
    told_apart(looks)


def test_ends_of_the_tornado_and_scarce_parts_differ_in_hatch() -> None:
    bars = pd.DataFrame([{"title": "a", "at_low": 1.0, "at_high": 3.0, "low_input": 1.0, "high_input": 2.0}])
    drawn = headline_tornado(bars, 2.0, "million", "test").svg
    assert isinstance(drawn, Drawn)
    assert {p.get_hatch() or "" for p in drawn.figure.axes[0].patches} == {"", "////"}
    parts = pd.DataFrame(
        [("Server", 1.0, "part"), ("Owner cost", 1.0, "subtotal"), ("Scarcity of racks", 0.5, "part")],
        columns=["part", "value", "kind"],
    )
    drawn = cost_waterfall(parts, "Cost", "test").svg
    assert isinstance(drawn, Drawn)
    assert [p.get_hatch() or "" for p in drawn.figure.axes[0].patches] == ["", "", "////", ""]
