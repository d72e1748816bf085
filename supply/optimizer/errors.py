"""What can go wrong in a solve, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Relaxation:
    """One limit that would have to give way: by how much, in which period."""

    row: str
    subject: str
    period: str
    amount: float
    unit: str
    words: str


class SolveError(ValueError):
    """The solver stopped without an optimum; the message says why and what to do."""


class SizeError(SolveError):
    """A network too large for one linear programme; the message gives its size and what to coarsen."""


class InfeasibleError(SolveError):
    """No plan satisfies all limits.

    `relaxations` is the least change that would make one possible; `conflict` names the limits (family, id, period)
    that together rule a plan out.
    """

    def __init__(
        self,
        message: str,
        relaxations: tuple[Relaxation, ...] = (),
        conflict: tuple[tuple[str, str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.relaxations = relaxations
        self.conflict = conflict


class UnboundedError(SolveError):
    """The objective grows without limit: something of value is made without any limit."""
