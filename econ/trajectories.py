"""Agent logs (CSV or JSON lines of calls): read, cleaned of replays and unmetered runs, summed with child calls.

Columns (others are ignored): `event_id, task, attempt, input_tokens, output_tokens` are required; `parent` (agent that
made a child call), `started` (ISO time), `cache_read_tokens, cache_write_tokens, cache_write_1h_tokens,
thinking_tokens, tool_s, tool_usd, cost_usd, verified` are optional. `verified` (true/false) may stand on any row of an
attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from econ.agent_calls import AgentError
from econ.agent_price import TaskPrice
from econ.usage import TokenUsage, UsageConvention, UsageError, from_report
from supply.input_files import InputFileError, read_utf8
from supply.input_table import InputTableError, numbered_rows, slips
from supply.input_text import InputTextError, parse_json

__all__ = ["CallEvent", "CleanLog", "Run", "clean", "read_trajectories", "runs"]

REQUIRED = ("event_id", "task", "attempt", "input_tokens", "output_tokens")
NUMBERS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_1h_tokens",
    "thinking_tokens",
    "tool_s",
    "tool_usd",
    "cost_usd",
)


@dataclass(frozen=True)
class CallEvent:
    """One model call of a log; `cost_usd` and `verified` are None where the log does not say."""

    event_id: str
    task: str
    attempt: str
    usage: TokenUsage
    parent: str = ""
    started: datetime | None = None
    tool_s: float = 0.0
    tool_usd: float = 0.0
    cost_usd: float | None = None
    verified: bool | None = None

    @property
    def metered(self) -> bool:
        """True when the row shows any token or dollar."""
        return self.usage.total > 0 or bool(self.cost_usd)


@dataclass(frozen=True)
class CleanLog:
    """Events by distinct id; what was replayed, and the attempts that show no tokens and no cost at all.

    Unmetered attempts are left out and counted, never averaged in as zeros.
    """

    events: tuple[CallEvent, ...]
    replayed: int
    unmetered: tuple[tuple[str, str], ...]

    @property
    def inflation(self) -> float:
        """Factor by which summing the raw rows would count these events too often."""
        return (len(self.events) + self.replayed) / len(self.events)


@dataclass(frozen=True)
class Run:
    """One attempt at one task: its own calls in order and those of its children."""

    task: str
    attempt: str
    calls: tuple[CallEvent, ...]
    child_calls: tuple[CallEvent, ...]
    verified: bool | None

    @property
    def usage(self) -> TokenUsage:
        """Tokens, child calls included."""
        return TokenUsage.sum(e.usage for e in (*self.calls, *self.child_calls))

    def usd(self, price: TaskPrice | None = None) -> float:
        """Spending, child calls and paid tools included: by `price`, else by the log's own costs.

        Raises:
            AgentError: when a call has no logged cost and no price was given.
        """
        total = 0.0
        for event in (*self.calls, *self.child_calls):
            if price is not None:
                total += sum(price.by_class(event.usage).values()) + event.tool_usd
            elif event.cost_usd is None:
                raise AgentError(
                    f"call {event.event_id} of task {event.task} has no cost in the log: give a price, it is not free"
                )
            else:
                total += event.cost_usd + event.tool_usd
        return total


def read_trajectories(
    path: Path | str,
    convention: str | UsageConvention,
    columns: Mapping[str, str] | None = None,
    cumulative_cost: bool = False,
) -> list[CallEvent]:
    """Read a log. `columns` maps this module's names to the file's; `convention` says what its input counts hold.

    `cumulative_cost` is for logs whose `cost_usd` is a running total over the file: it is differenced.

    Raises:
        AgentError: with every bad row as `file:line: column: problem`.
    """
    path = Path(path)
    wanted = _their_names(columns or {})
    events: list[CallEvent] = []
    problems: list[str] = []
    before = 0.0
    for line, row in _rows(path, list(wanted.values())):
        try:
            event = _event({k: row.get(theirs) for k, theirs in wanted.items()}, convention)
            if cumulative_cost:
                event, before = _difference(event, before)
            events.append(event)
        except (AgentError, UsageError) as exc:
            problems.append(f"{path.name}:{line}: {exc}")
    if problems:
        more = f"\n... and {len(problems) - 20} more" if len(problems) > 20 else ""
        raise AgentError("\n".join([f"{len(problems)} bad row(s):", *problems[:20]]) + more)
    if not events:
        raise AgentError(f"{path.name}: no calls in the log")
    if len({e.started.tzinfo is None for e in events if e.started is not None}) > 1:
        raise AgentError(f"{path.name}: started: some times have a time zone and some have none: write it for all")
    return events


_TEXT = ("parent", "started", "verified")


def _their_names(columns: Mapping[str, str]) -> dict[str, str]:
    """This module's names -> the file's."""
    known = list(dict.fromkeys((*REQUIRED, *NUMBERS, *_TEXT)))
    unknown = [k for k in columns if k not in known]
    if unknown:
        raise AgentError(f"columns: {unknown[0]!r} is not a column of this log; they are {', '.join(known)}")
    return {k: columns.get(k, k) for k in known}


def _rows(path: Path, names: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        try:
            yield from numbered_rows(path, names, names, "agent log")[1]
        except InputTableError as exc:
            raise AgentError(str(exc)) from exc
        return
    try:
        text = read_utf8(path, "agent log")
    except (OSError, InputFileError) as exc:
        raise AgentError(f"{path}: cannot be read: {exc}") from exc
    for line, part in enumerate(text.split("\n"), start=1):
        if part.strip():
            row = _json(part, f"{path.name}:{line}")
            if wrong := slips(row, names):
                raise AgentError(f"{path.name}:{line}: no such column {', '.join(wrong)}")
            yield line, row


def _json(text: str, where: str) -> Mapping[str, Any]:
    try:
        row = parse_json(text)
    except InputTextError as exc:
        raise AgentError(f"{where}: {exc}") from exc
    if not isinstance(row, dict):
        raise AgentError(f"{where}: expected one JSON object a line, got {type(row).__name__}")
    return row


def _event(row: Mapping[str, Any], convention: str | UsageConvention) -> CallEvent:
    missing = [k for k in REQUIRED if row[k] in (None, "")]
    if missing:
        raise AgentError(f"{missing[0]}: missing; required columns are {', '.join(REQUIRED)}")
    number = {k: _number(k, row[k]) for k in NUMBERS}
    usage = from_report(
        convention,
        number["input_tokens"] or 0,
        number["output_tokens"] or 0,
        number["cache_read_tokens"] or 0,
        number["cache_write_tokens"] or 0,
        number["cache_write_1h_tokens"] or 0,
        number["thinking_tokens"] or 0,
    )
    return CallEvent(
        str(row["event_id"]),
        str(row["task"]),
        str(row["attempt"]),
        usage,
        str(row["parent"] or ""),
        _time(row["started"]),
        number["tool_s"] or 0.0,
        number["tool_usd"] or 0.0,
        number["cost_usd"],
        _truth(row["verified"]),
    )


def _number(column: str, value: Any) -> float | None:
    if value in (None, ""):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise AgentError(f"{column}: {value!r:.80} is not a number") from None
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise AgentError(f"{column}: {value!r:.80} must be a finite number and not negative")
    return number


def _time(value: Any) -> datetime | None:
    if value in (None, ""):
        return None
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        raise AgentError(f"started: {value!r} is not an ISO time such as 2026-11-30T21:00:00Z") from None


def _truth(value: Any) -> bool | None:
    if value in (None, ""):
        return None
    text = str(value).strip().lower()
    if text not in ("true", "false", "1", "0", "yes", "no"):
        raise AgentError(f"verified: {value!r} is not true or false")
    return text in ("true", "1", "yes")


def _difference(event: CallEvent, before: float) -> tuple[CallEvent, float]:
    now = event.cost_usd
    if now is None or now < before - 1e-12:
        raise AgentError(f"cost_usd: {now} after {before}: a running total never falls; is it a cost per call?")
    return replace(event, cost_usd=now - before), now


def clean(events: Iterable[CallEvent]) -> CleanLog:
    """Drop replays of one event id and set unmetered attempts apart.

    Raises:
        AgentError: when two rows of one id differ in tokens (a streaming snapshot: keep the last of each id first), or
            when no attempt is metered.
    """
    distinct: dict[str, CallEvent] = {}
    replayed = 0
    for event in events:
        if event.event_id not in distinct:
            distinct[event.event_id] = event
            continue
        first = distinct[event.event_id]
        replayed += 1
        if first.usage != event.usage:
            raise AgentError(
                f"event {event.event_id} is logged with {first.usage.total:g} and with {event.usage.total:g} tokens: "
                "streaming snapshots; keep only the last row of each id"
            )
    by_attempt: dict[tuple[str, str], list[CallEvent]] = {}
    for event in distinct.values():
        by_attempt.setdefault((event.task, event.attempt), []).append(event)
    silent = tuple(key for key, group in by_attempt.items() if not any(e.metered for e in group))
    kept = tuple(e for e in distinct.values() if (e.task, e.attempt) not in set(silent))
    if not kept:
        raise AgentError(
            f"all {len(silent)} attempts show no tokens and no cost: take the gateway's figures; zeros are not costs"
        )
    return CleanLog(kept, replayed, silent)


def runs(log: CleanLog) -> list[Run]:
    """Attempts in log order, child calls joined to the attempt they belong to."""
    grouped: dict[tuple[str, str], list[CallEvent]] = {}
    for event in log.events:
        grouped.setdefault((event.task, event.attempt), []).append(event)
    return [_run(key, group) for key, group in grouped.items()]


def _run(key: tuple[str, str], group: Sequence[CallEvent]) -> Run:
    marks = {e.verified for e in group if e.verified is not None}
    if len(marks) > 1:
        raise AgentError(f"attempt {key[1]} of task {key[0]} is marked both verified and not verified")
    own = [e for e in group if not e.parent]
    if own and all(e.started is not None for e in own):
        own.sort(key=lambda e: e.started or datetime.min)
    children = tuple(e for e in group if e.parent)
    return Run(key[0], key[1], tuple(own), children, marks.pop() if marks else None)
