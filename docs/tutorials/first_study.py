"""Tutorial 1: a first study. How many accelerators can be switched on, what stops more, and how sure is that?

Run it with `python docs/tutorials/first_study.py`; it takes a few seconds. The `# %%` lines make cells in an editor.
"""

from scenarios.breakeven import breakeven
from scenarios.runner import run
from scenarios.sample import sample

YEAR = "2026"


def main() -> dict[str, float]:
    """Solve, question, change, trace, draw and invert one small scenario; returns the numbers printed."""
    # %% 1. Solve a scenario. `small` is `base` with fewer products; `wafer2token run small` does the same.
    base = run("small")
    energised = base.output(f"energised:*@{YEAR}")
    print(f"{base.scenario}: {energised:,.0f} accelerators energised in {YEAR}; every check passed: {base.passed}")

    # %% 2. What stops more? The answer lists the limits that have a price in each period, most valuable first.
    last = base.json()["periods"][-1]
    for limit in last["binding"][:3]:
        hour = limit["price"]["usd_per_gpu_hour"]
        worth = (
            f"{hour:.2f} USD per accelerator-hour of {limit['price']['reference']['sku']}"
            if hour
            else "see native price"
        )
        gain = limit["plus_1_percent"]["energised"]
        print(
            f"{last['period']} {limit['title']} ({limit['stage']}): worth {worth}; 1 % more: {gain:+,.0f} accelerators"
        )

    # %% 3. Change an input. Paths, patterns and groups of the scenario stand left of the edit; nothing else moves.
    more_power = run("small", [("power", {"scale": 1.1, "from": "2026-Q1"})], prices=False)
    gained = more_power.output(f"energised:*@{YEAR}") - energised
    print(f"a tenth more power from {YEAR} on: {gained:+,.0f} accelerators")

    # %% 4. Where does a number come from? Every input names its facts, its kind and its range.
    inputs = base.inputs
    power = inputs[(inputs["path"] == "resources.power_us.capacity") & (inputs["period"] >= f"{YEAR}-Q4")].iloc[0]
    span = f"{power['low']:,.0f} to {power['high']:,.0f}"
    print(f"US power in {power['period']}: {power['value']:,.0f} {power['unit']} ({span})")
    print(f"    {power['kind']}; facts {power['fact_ids'][:70]}")

    # %% 5. How sure is it? Draw all uncertain inputs together and solve the whole chain for each draw.
    draws = sample("small", 40, outputs=[f"energised:*@{YEAR}"])
    spread = draws.summary(f"energised:*@{YEAR}")
    print(f"40 draws: {spread['q05']:,.0f} to {spread['q95']:,.0f} (5 % to 95 %), median {spread['q50']:,.0f}")

    # %% 6. The inverse question: how much power would a fifth more accelerators take?
    answer = breakeven("small", "power", (f"energised:*@{YEAR}", 1.2 * energised))
    print(f"a fifth more accelerators needs power at {answer.scale:.2f} of its path in every quarter")
    return {"energised": energised, "gained": gained, "q05": spread["q05"], "q95": spread["q95"], "scale": answer.scale}


if __name__ == "__main__":
    main()
