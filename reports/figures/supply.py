"""Figures of the supply side: what binds, how full, how many, and what a limit is worth."""

from __future__ import annotations

import pandas as pd

from reports.figures.style import STAGE_COLOURS, STAGE_ORDER, STAGE_TITLES, FigureCard, colour_of, drawing, svg_text

__all__ = ["accelerator_stack", "binding_timeline", "bottleneck_prices", "power_limits", "utilisation_map"]


def binding_timeline(binding: pd.DataFrame, periods: list[str], subtitle: str) -> FigureCard:
    """Stages in chain order x periods; a filled cell binds, the figure in it is its share of all rent in the period.

    `binding`: columns period, stage, resource, rent (price x limit, any one money unit).
    """
    rent = (
        binding.groupby(["stage", "period"])["rent"]
        .sum()
        .unstack(fill_value=0.0)
        .reindex(columns=periods, fill_value=0.0)
    )
    stages = [s for s in STAGE_ORDER if s in STAGE_TITLES and s != "datacenter"]
    share = (rent / rent.sum().where(rent.sum() > 0)).reindex(stages).fillna(0.0)
    with drawing(9.2, 2.9) as (figure, axes):
        for row, stage in enumerate(stages):
            for column, period in enumerate(periods):
                value = share.loc[stage, period]
                face = STAGE_COLOURS[stage] if value > 0.005 else "#f2f2f2"
                axes.add_patch(_cell(column, row, face, 0.35 + 0.65 * value if value > 0.005 else 1.0))
                if value > 0.005:
                    axes.text(
                        column + 0.5,
                        row + 0.5,
                        f"{100 * value:.0f}",
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="white" if value > 0.35 else "#1a1a1a",
                    )
        _grid_axes(axes, periods, [STAGE_TITLES[s] for s in stages])
        svg = svg_text(figure)
    leaders = [(str(share[p].idxmax()), p) for p in periods if share[p].max() > 0]
    headline = _leaders_in_words(leaders)
    data = share.T.reset_index().melt("period", var_name="stage", value_name="share_of_rent")
    return FigureCard(
        "binding_timeline",
        headline,
        f"Share of all scarcity rent by stage, percent; {subtitle}",
        f"Grid of stages by period. {headline}.",
        svg,
        data,
    )


def _cell(column: int, row: int, face: str, alpha: float) -> object:
    from matplotlib.patches import Rectangle

    return Rectangle(
        (column + 0.03, row + 0.05), 0.94, 0.9, facecolor=face, alpha=alpha, edgecolor="#666666", linewidth=0.4
    )


def _grid_axes(axes: object, periods: list[str], names: list[str]) -> None:
    a: object = axes
    a.set_xlim(0, len(periods))  # type: ignore[attr-defined]
    a.set_ylim(len(names), 0)  # type: ignore[attr-defined]
    a.set_xticks([i + 0.5 for i in range(len(periods))], _short(periods), fontsize=7)  # type: ignore[attr-defined]
    a.set_yticks([i + 0.5 for i in range(len(names))], names, fontsize=8)  # type: ignore[attr-defined]
    a.tick_params(length=0)  # type: ignore[attr-defined]
    for side in ("left", "bottom"):
        a.spines[side].set_visible(False)  # type: ignore[attr-defined]


def _short(periods: list[str]) -> list[str]:
    """2024-Q1 as Q1 with the year under the first quarter.

    >>> _short(["2024-Q4", "2025-Q1"])
    ['Q4\\n2024', 'Q1\\n2025']
    """
    out, year = [], ""
    for period in periods:
        head, _, tail = period.partition("-")
        out.append(f"{tail}\n{head}" if head != year else tail)
        year = head
    return out


def _leaders_in_words(leaders: list[tuple[str, str]]) -> str:
    """[("hbm", "2024-Q1"), ("hbm", "2024-Q2"), ("power", "2024-Q3")] as a sentence."""
    if not leaders:
        return "Nothing binds"
    runs: list[list[str]] = []
    for stage, period in leaders:
        if runs and runs[-1][0] == stage:
            runs[-1][2] = period
        else:
            runs.append([stage, period, period])
    runs.sort(key=lambda r: r[1])
    words = [f"{STAGE_TITLES.get(s, s)} {a}" + (f" to {b}" if a != b else "") for s, a, b in runs]
    return "Costliest limit: " + ", then ".join(words[:4])


def utilisation_map(table: pd.DataFrame, periods: list[str], subtitle: str) -> FigureCard:
    """Resources x periods, 0-100 % of stated capacity; binding cells are outlined.

    `table`: columns resource, title, stage, period, utilisation (fraction or missing), binds (bool).
    """
    order = {s: i for i, s in enumerate(STAGE_ORDER)}
    names = (
        table.drop_duplicates("resource").assign(rank=lambda d: d["stage"].map(order)).sort_values(["rank", "resource"])
    )
    grid = table.pivot_table(index="resource", columns="period", values="utilisation").reindex(
        index=names["resource"], columns=periods
    )
    binds = set(zip(table.loc[table["binds"], "resource"], table.loc[table["binds"], "period"], strict=True))
    with drawing(9.2, 0.9 + 0.27 * len(grid)) as (figure, axes):
        import matplotlib as mpl
        from matplotlib.patches import Rectangle

        shades = mpl.colormaps["cividis_r"]
        for row, resource in enumerate(grid.index):
            for column, period in enumerate(periods):
                value = grid.loc[resource, period]
                missing = pd.isna(value)
                face = "#ffffff" if missing else shades(0.05 + 0.85 * min(1.0, float(value)))
                axes.add_patch(
                    Rectangle(
                        (column + 0.03, row + 0.05),
                        0.94,
                        0.9,
                        facecolor=face,
                        hatch="////" if missing else None,
                        edgecolor="#cccccc" if missing else "none",
                    )
                )
                if not missing:
                    dark = 0.05 + 0.85 * float(value) > 0.55
                    axes.text(
                        column + 0.5,
                        row + 0.5,
                        f"{100 * value:.0f}",
                        ha="center",
                        va="center",
                        fontsize=6.5,
                        color="white" if dark else "#1a1a1a",
                    )
                if (resource, period) in binds:
                    axes.add_patch(
                        Rectangle(
                            (column + 0.06, row + 0.08), 0.88, 0.84, fill=False, edgecolor="#CC3311", linewidth=1.6
                        )
                    )
        _grid_axes(axes, periods, list(names["title"]))
        svg = svg_text(figure)
    full = grid.mean(axis=1).idxmax()
    headline = f"{dict(zip(names['resource'], names['title'], strict=True))[full]} is fullest on average"
    return FigureCard(
        "utilisation",
        headline,
        f"Use of each limit, percent of capacity; red outline: the limit has a price; hatched: no capacity; {subtitle}",
        f"Heat map of utilisation by resource and period. {headline}.",
        svg,
        table[["resource", "stage", "period", "utilisation", "binds"]],
    )


def accelerator_stack(table: pd.DataFrame, periods: list[str], subtitle: str, top: int = 6) -> FigureCard:
    """Finished and energised accelerators by product in two panels, thousands a period.

    `table`: columns period, sku, quantity ("finished" or "energised"), value (accelerators).
    """
    total = table[table["quantity"] == "finished"].groupby("sku")["value"].sum().sort_values(ascending=False)
    kept = list(total.index[:top])
    data = table.assign(sku=table["sku"].where(table["sku"].isin(kept), "other"))
    data = data.groupby(["quantity", "period", "sku"], as_index=False)["value"].sum()
    order = [*kept, "other"] if (data["sku"] == "other").any() else kept
    with drawing(9.2, 3.6, nrows=1, ncols=2, sharey=True) as (figure, panels):
        for panel, quantity in zip(panels, ("finished", "energised"), strict=True):
            wide = (
                data[data["quantity"] == quantity]
                .pivot_table(index="period", columns="sku", values="value")
                .reindex(index=periods, columns=order)
                .fillna(0.0)
                / 1e3
            )
            base = pd.Series(0.0, index=periods)
            for sku in order:
                panel.bar(
                    range(len(periods)),
                    wide[sku],
                    bottom=base,
                    width=0.85,
                    color=colour_of(sku),
                    label=sku,
                    edgecolor="white",
                    linewidth=0.3,
                )
                base = base + wide[sku]
            panel.set_title(quantity.capitalize())
            panel.set_xticks(range(0, len(periods), 2), _short(periods[::2]), fontsize=7)
        panels[0].set_ylabel("thousand accelerators a period")
        panels[1].legend(fontsize=7, frameon=False, loc="upper left", ncols=2)
        svg = svg_text(figure)
    yearly = (
        data[data["quantity"] == "energised"].assign(year=lambda d: d["period"].str[:4]).groupby("year")["value"].sum()
        / 1e6
    )
    first, last = yearly.index[0], yearly.index[-1]
    headline = f"Energised: {yearly[first]:.1f} million in {first}, {yearly[last]:.1f} million in {last}"
    return FigureCard(
        "accelerators",
        headline,
        f"Accelerators by product, thousand a period; {subtitle}",
        f"Stacked columns of finished and energised accelerators. {headline}.",
        svg,
        data,
    )


def bottleneck_prices(table: pd.DataFrame, periods: list[str], subtitle: str, top: int = 6) -> FigureCard:
    """Price of each limit in USD per GPU-hour of the reference product, small multiples on one scale.

    `table`: columns period, resource, title, stage, usd_per_gpu_hour.
    """
    rank = table.groupby("resource")["usd_per_gpu_hour"].sum().sort_values(ascending=False)
    kept = list(rank.index[:top])
    titles = dict(zip(table["resource"], table["title"], strict=True))
    stage = dict(zip(table["resource"], table["stage"], strict=True))
    columns = min(3, max(1, len(kept)))
    rows = -(-max(1, len(kept)) // columns)
    with drawing(9.2, 0.6 + 1.7 * rows, nrows=rows, ncols=columns, sharey=True, squeeze=False) as (figure, panels):
        for index, panel in enumerate(panels.flat):
            if index >= len(kept):
                panel.set_visible(False)
                continue
            one = (
                table[table["resource"] == kept[index]]
                .set_index("period")["usd_per_gpu_hour"]
                .reindex(periods)
                .fillna(0.0)
            )
            panel.bar(range(len(periods)), one, color=colour_of(stage[kept[index]]), width=0.85)
            panel.set_title(titles[kept[index]], fontsize=8)
            panel.set_xticks(range(0, len(periods), 4), _short(periods[::4]), fontsize=7)
        panels[0, 0].set_ylabel("USD per GPU-hour")
        svg = svg_text(figure)
    headline = f"{titles[kept[0]]} carries the highest price" if kept else "No limit has a price"
    return FigureCard(
        "bottleneck_prices",
        headline,
        f"Value of one more unit to the marginal user at fixed product values, USD per sold GPU-hour; {subtitle}",
        f"Small bar charts of prices by limit. {headline}.",
        svg,
        table,
    )


def power_limits(table: pd.DataFrame, periods: list[str], subtitle: str) -> FigureCard:
    """Planning power of the fleet against energised power, GW.

    `table`: columns period, used_mw, capacity_mw, low_mw, high_mw (summed over regions).
    """
    t = table.set_index("period").reindex(periods)
    with drawing(9.2, 2.9) as (figure, axes):
        x = range(len(periods))
        axes.fill_between(x, t["low_mw"] / 1e3, t["high_mw"] / 1e3, color="#882255", alpha=0.15, linewidth=0)
        axes.plot(x, t["capacity_mw"] / 1e3, color="#882255", linewidth=2)
        axes.plot(x, t["used_mw"] / 1e3, color="#332288", linewidth=2, linestyle="--")
        axes.set_ylabel("GW, facility watts")
        axes.set_ylim(bottom=0)
        axes.set_xticks(list(x), _short(periods), fontsize=7)
        last = len(periods) - 1
        axes.annotate(
            "energised power (band: its sources)",
            (last * 0.52, t["capacity_mw"].iloc[int(last * 0.52)] / 1e3),
            xytext=(-8, 14),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color="#882255",
        )
        axes.annotate(
            "planned for the fleet",
            (last * 0.7, t["used_mw"].iloc[int(last * 0.7)] / 1e3),
            xytext=(6, -16),
            textcoords="offset points",
            fontsize=8,
            color="#332288",
        )
        svg = svg_text(figure)
    share = (t["used_mw"] / t["capacity_mw"]).iloc[-1]
    headline = f"The fleet plans for {100 * share:.0f} % of energised power at the end"
    return FigureCard(
        "power",
        headline,
        f"Energised AI power and planning power of the fleet; {subtitle}",
        f"Two lines over time. {headline}.",
        svg,
        table,
    )
