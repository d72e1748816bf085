"""Figures: functions on tidy tables that return a `Figure` (drawing, data, headline, alternative text)."""
