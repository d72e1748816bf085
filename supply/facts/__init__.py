"""Sourced, dated facts: loading, units, look-up, the rule for sources that disagree, and traces."""

from supply.facts.catalog import Catalog, catalog
from supply.facts.record import Fact, FactError, Kind, SeriesPoint
from supply.facts.series import Series

__all__ = ["Catalog", "Fact", "FactError", "Kind", "Series", "SeriesPoint", "catalog"]
