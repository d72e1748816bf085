"""The written rule that fills `valid_from`, `valid_to` and `known_on` of a fact from what its source row says.

1. `as_of` is a day, a month, a quarter or a year: the span that the value is about, unless rule 2 applies.
2. A quantity that names its target (`..._for_end_2026`, `..._for_Q1_2024`, `..._plan_2028`, `..._2026`) and says
   forecast, plan, target or guide is about that target; `as_of` is then when it was said.
3. `known_on` is the last date printed in brackets in `source`; else the date of a snapshot or commit named there;
   else the end of `as_of`. A value about the future without any printed date is known at the start of `as_of`.
4. `known_on` is never before the start of the span for measured and published values, and never after the day of
   copying.

`date_rule` names what was used (`as_of`, `target`, `source_date`); a trailing `?` says that the rule had to guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

__all__ = ["Dates", "date_fact", "span"]

_FORWARD = re.compile(r"forecast|plan|target|guide|projection|booked|expected", re.I)
_TARGET = re.compile(r"(?:_for)?_(end|mid|start|[qQ][1-4]|[hH][12])?_?(20\d\d)$")
_BRACKET = re.compile(r"\((?:[^()]*?)(20\d\d(?:-\d\d(?:-\d\d)?)?)(?:[^()0-9]*)\)")
_ISO = re.compile(r"(20\d\d-\d\d-\d\d)")


@dataclass(frozen=True, slots=True)
class Dates:
    """The three dates of a fact, and the rule that gave them."""

    valid_from: date
    valid_to: date
    known_on: date
    rule: str


@lru_cache(maxsize=4096)
def span(text: str) -> tuple[date, date]:
    """First and last day of a day, month, quarter or year written as text.

    >>> span("2024-Q1")
    (datetime.date(2024, 1, 1), datetime.date(2024, 3, 31))
    >>> span("2026")[1]
    datetime.date(2026, 12, 31)

    Raises:
        ValueError: when the text is none of these.
    """
    text = text.strip()
    if m := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text):
        day = date(int(m[1]), int(m[2]), int(m[3]))
        return day, day
    if m := re.fullmatch(r"(\d{4})-Q([1-4])", text):
        first = date(int(m[1]), 3 * int(m[2]) - 2, 1)
        return first, _last_day(first.year, first.month + 2)
    if m := re.fullmatch(r"(\d{4})-(\d\d)", text):
        return date(int(m[1]), int(m[2]), 1), _last_day(int(m[1]), int(m[2]))
    if m := re.fullmatch(r"(\d{4})", text):
        return date(int(m[1]), 1, 1), date(int(m[1]), 12, 31)
    raise ValueError(f"{text!r} is not a day (2024-05-01), month (2024-05), quarter (2024-Q2) or year (2024)")


def date_fact(quantity: str, as_of: str, source: str, kind: str, copied_on: date = date.max) -> Dates:
    """Apply the rule of this module to one row, copied on a day.

    >>> d = date_fact("capacity_forecast_for_end_2026", "2025-09", "JPMorgan note (2025-09)", "estimate")
    >>> d.valid_from.isoformat(), d.known_on.isoformat(), d.rule
    ('2026-12-31', '2025-09-30', 'target+source_date')
    """
    first, last = span(as_of)
    valid, rule, guessed = (first, last), "as_of", False
    forward = bool(_FORWARD.search(quantity))
    if forward and (m := _TARGET.search(quantity)):
        valid, rule = _target_span(m[1], int(m[2])), "target"
    known, how = _known(source, first, last, forward)
    guessed = how.endswith("?")
    if kind in ("measured", "published") and not forward and known < valid[0]:
        known, how = valid[1] if valid[1] == valid[0] else valid[0], "clamped?"
        guessed = True
    if known > copied_on:
        known, how, guessed = copied_on, "copied?", True
    return Dates(valid[0], valid[1], known, f"{rule}+{how.rstrip('?')}{'?' if guessed else ''}")


def _known(source: str, first: date, last: date, forward: bool) -> tuple[date, str]:
    stamps = _BRACKET.findall(source) or _ISO.findall(source)
    if stamps:
        return max(span(s)[1] for s in stamps), "source_date"
    if last - first <= timedelta(days=31):
        return last, "as_of"
    return (first, "as_of?") if forward else (last, "as_of?")


def _target_span(part: str | None, year: int) -> tuple[date, date]:
    match (part or "").lower():
        case "end":
            return date(year, 12, 31), date(year, 12, 31)
        case "mid":
            return date(year, 6, 30), date(year, 6, 30)
        case "start":
            return date(year, 1, 1), date(year, 1, 1)
        case q if q.startswith("q"):
            return span(f"{year}-Q{q[1]}")
        case "h1":
            return date(year, 1, 1), date(year, 6, 30)
        case "h2":
            return date(year, 7, 1), date(year, 12, 31)
        case _:
            return date(year, 1, 1), date(year, 12, 31)


def _last_day(year: int, month: int) -> date:
    return (date(year + month // 12, month % 12 + 1, 1)) - timedelta(days=1)
