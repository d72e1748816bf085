"""Sections of the market report, each from the context of a run."""
