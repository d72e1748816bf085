"""Scenarios: named cases, overrides, draws, sensitivity, comparison."""
