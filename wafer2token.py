"""From wafer starts to the price of a token: the public names of the program, loaded on first use.

import wafer2token as w2t
run = w2t.run("base")
w2t.facts["tsmc_cowos_wafer_price_2026_01"].value
"""

from __future__ import annotations

import importlib
from importlib.machinery import PathFinder
from importlib.metadata import version
from pathlib import Path
from typing import Any

#: public name -> "module:attribute"
_PUBLIC = {
    "facts": "supply.facts.catalog:catalog",
    "manufacturing": "supply.manufacturing",
    "Network": "supply.network:Network",
    "build_graph": "supply.graph:build_graph",
    "optimize": "supply.optimizer.compiled:optimize",
    "operating_point": "econ.performance.serving:operating_point",
    "predict_file": "econ.performance.predict:predict_file",
    "load_scenario": "scenarios.load:load_scenario",
    "run": "scenarios.runner:run",
    "check": "scenarios.resolve:check",
    "sample": "scenarios.sample:sample",
    "sensitivity": "scenarios.sensitivity:sensitivity",
    "compare": "scenarios.compare:compare",
    "breakeven": "scenarios.breakeven:breakeven",
    "backtest": "scenarios.backtest:backtest",
    "revision_log": "scenarios.revision:revision_log",
    "card": "reports.cards:card",
    "cards": "reports.cards:register",
}
__all__ = ["__version__", "main", *_PUBLIC]  # noqa: F822


def _guard_against_shadowing() -> None:
    """Another folder named like one of the four rooms would be imported in its place, silently.

    Raises:
        ImportError: naming both folders.
    """
    here = Path(__file__).resolve().parent
    for room in ("supply", "econ", "scenarios", "reports"):
        spec = PathFinder.find_spec(room)
        if spec is None or not spec.submodule_search_locations:
            continue
        found = Path(next(iter(spec.submodule_search_locations))).resolve()
        if found != here / room:
            raise ImportError(
                f"the folder {found} shadows wafer2token's own {here / room}: rename it, or run from another folder"
            )


_guard_against_shadowing()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("wafer2token")
    if name not in _PUBLIC:
        raise AttributeError(f"wafer2token has no {name!r}; public names: {', '.join(_PUBLIC)}")
    module, _, attribute = _PUBLIC[name].partition(":")
    value = importlib.import_module(module)
    if attribute:
        value = getattr(value, attribute)
    if name == "facts":
        catalogue: Any = value
        return catalogue()
    return value


def main() -> None:
    """Console entry: `wafer2token VERB ...`."""
    from reports.cli.app import main as console

    console()


if __name__ == "__main__":
    main()
