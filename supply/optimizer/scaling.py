"""How far apart the numbers of a compiled programme lie, which decides how far its prices can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supply.consistency import LARGEST
from supply.network import Array

if TYPE_CHECKING:
    from supply.optimizer.compiled import Compiled

__all__ = ["SizeRange", "scaling_report"]


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Smallest and largest size (without zeros) of one part of a programme, in model units, and where they stand."""

    part: str
    numbers: int
    smallest: float
    largest: float
    smallest_at: str
    largest_at: str

    @property
    def apart(self) -> float:
        """Largest over smallest."""
        return self.largest / self.smallest

    @property
    def wide(self) -> bool:
        """Whether the ends are too far apart to be told together."""
        return self.apart > LARGEST


def scaling_report(compiled: Compiled) -> list[SizeRange]:
    """Ranges of the coefficients, the right-hand sides and the objective, as they are handed to the solver.

    Model units are those that the formulation chose (`supply.optimizer.parameters`), before the solver scales rows and
    columns itself. A part without numbers is left out.

    >>> from supply.network_examples import course_11_1
    >>> from supply.optimizer.compiled import Compiled
    >>> [(r.part, r.numbers, round(r.apart, 1)) for r in scaling_report(Compiled(course_11_1()))]
    [('coefficients', 8, 1.0), ('right-hand sides', 2, 1.5), ('objective', 1, 1.0)]
    """
    engine, matrix = compiled.engine, compiled.engine.matrix
    rows = [_name(row) for row in matrix.rows]
    columns = [_name(column) for column in matrix.columns]
    cells = [f"{columns[c]} in {rows[r]}" for r, c in zip(matrix.index, engine.column_of_entry, strict=True)]
    parts = (
        ("coefficients", np.asarray(engine.data), cells),
        ("right-hand sides", np.asarray(engine.rhs), rows),
        ("objective", np.asarray(engine.cost), columns),
    )
    return [_range(part, numbers, names) for part, numbers, names in parts if np.any(numbers)]


def _range(part: str, numbers: Array, names: list[str]) -> SizeRange:
    at = np.flatnonzero(numbers)
    sizes = np.abs(numbers[at])
    least, most = int(at[sizes.argmin()]), int(at[sizes.argmax()])
    return SizeRange(part, len(at), float(sizes.min()), float(sizes.max()), names[least], names[most])


def _name(entry: tuple[str, Any]) -> str:
    """A row or variable as `name[key, ...]`."""
    name, key = entry
    inner = ", ".join(str(k) for k in key) if isinstance(key, tuple) else str(key)
    return f"{name}[{inner}]" if inner and inner != "None" else name
