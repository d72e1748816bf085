"""Small hand-made networks with known optima: the course case and a two-accelerator chain with power."""

from __future__ import annotations

from supply.network import (
    Demand,
    FleetSku,
    Horizon,
    Material,
    Network,
    Objective,
    Process,
    Region,
    Resource,
)


def course_11_1(dies: float = 15000.0, packaging: float = 10000.0) -> Network:
    """Course part 11.1: two capacities in a row, one period; the smaller one is the answer.

    >>> course_11_1().values["resources.fab.capacity"][0]
    np.float64(15000.0)
    """
    return Network.build(
        Horizon("2026-Q1", 1),
        [Material("die", "die"), Material("accelerator", "accelerator")],
        [
            Process("make_die", ("die",), uses=("fab",), stage="fab"),
            Process("package", ("accelerator",), ("die",), ("cowos",), stage="packaging"),
        ],
        [Resource("fab", "fab", "die"), Resource("cowos", "packaging", "accelerator")],
        {
            "processes.make_die.output.die": 1,
            "processes.make_die.uses.fab": 1,
            "processes.package.input.die": 1,
            "processes.package.output.accelerator": 1,
            "processes.package.uses.cowos": 1,
            "resources.fab.capacity": dies,
            "resources.cowos.capacity": packaging,
            "demand.accelerator.price": 1,
        },
        demand=[Demand("accelerator")],
        objective=Objective("units"),
        title="Course 11.1",
    )


def power_chain(
    periods: int = 8, tail: int = 0, mw: tuple[float, ...] = (), life_years: float | None = None
) -> Network:
    """Two accelerators of one fab compete for the growing MW of one region (life-long power use).

    >>> sorted(power_chain().fleet)
    ['big', 'small']
    """
    values: dict[str, object] = {
        "discount_rate": 0.0,
        "resources.fab.capacity": 1e6,
        "resources.power_us.capacity": list(mw) if mw else [100.0 * (t + 1) for t in range(periods)],
        "materials.wafer.holding_cost": 1.0,
    }
    for sku, wafers, kw, usd_per_hour, cost in (("big", 0.05, 2.0, 3.0, 20000.0), ("small", 0.02, 1.2, 1.5, 9000.0)):
        values |= {
            f"processes.make_{sku}.output.{sku}": 1,
            f"processes.make_{sku}.uses.fab": wafers,
            f"processes.make_{sku}.cost": cost,
            f"materials.{sku}.holding_cost": 100.0,
            f"fleet.{sku}.kw_planning": kw,
            f"fleet.{sku}.survival": 1.0,
            f"fleet.{sku}.value": usd_per_hour,
            f"fleet.{sku}.h100e": usd_per_hour,
        }
    if life_years is not None:
        values["costs.life"] = life_years
    del values["materials.wafer.holding_cost"]
    return Network.build(
        Horizon("2026-Q1", periods, tail=tail),
        [Material("big", "accelerator"), Material("small", "accelerator")],
        [Process(f"make_{sku}", (sku,), uses=("fab",), stage="fab") for sku in ("big", "small")],
        [Resource("fab", "fab", "wafer"), Resource("power_us", "power", "MW", region="us")],
        values,  # type: ignore[arg-type]
        fleet=[FleetSku(sku, sku, ("us",), designer="one") for sku in ("big", "small")],
        regions=[Region("us", "United States")],
        title="Two accelerators and one grid",
    )
