"""Library scenarios by name, and the loader of any scenario file."""

from scenarios.load import Scenario, load_scenario
from scenarios.locate import names

__all__ = ["Scenario", "load_scenario", "names"]
