"""Rows of a pandas table as named tuples whose fields have no static type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["records"]


def records(table: pd.DataFrame) -> Iterator[Any]:
    """Named tuples of a table, in row order."""
    return iter(table.itertuples())
