"""Problems of a scenario file: where, what, and what to do; all of them raised at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["InfeasibleError", "Position", "Problem", "ScenarioError", "did_you_mean"]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One problem of a scenario.

    >>> print(Problem(Position("a.yaml", 3, 5), "processes.p.yield", "-0.1 is below 0"))
    a.yaml:3:5: processes.p.yield: -0.1 is below 0
    """

    where: Position
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.path}: {self.message}" if self.path else f"{self.where}: {self.message}"


class ScenarioError(ValueError):
    """A scenario that cannot be run; `problems` holds every problem found, in file order."""

    exit_code = 3

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(p) for p in self.problems))


class InfeasibleError(ValueError):
    """The optimum of a scenario does not exist: infeasible or unbounded; the message says what to relax."""

    exit_code = 4


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """A hint with the nearest options, or with all of them when they are few.

    >>> did_you_mean("yeild", ["yield", "cost"])
    '; did you mean yield?'
    >>> did_you_mean("zzz", ["yield", "cost"])
    '; it may be cost, yield'
    """
    known = sorted(set(options))
    near = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    if not known:
        return ""
    return f"; it may be {', '.join(known[:12])}{' ...' if len(known) > 12 else ''}"
