"""Numbers and names as readers see them: digits follow the width of the band, every amount carries its unit.

Every number keeps its unrounded value (`reports.spans.Number`); the words around it come from the catalogue.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reports.catalogue import say, spoken
from reports.spans import Number, Words, join

__all__ = [
    "band",
    "brief",
    "brief_limit",
    "count",
    "digits_for",
    "in_sentence",
    "leader_since",
    "listing",
    "money",
    "percent",
    "plain",
    "span_words",
    "stage_head",
    "stage_title",
]

WIDE = 0.1
#: First words of titles that are not names.
_COMMON = frozenset(
    (
        "Cash",
        "Demand",
        "Discount",
        "Energised",
        "Everything",
        "Holding",
        "Mean",
        "Opening",
        "Power",
        "Rental",
        "Share",
        "Test",
        "Value",
        "Watts",
    )
)


def stage_title(stage: str) -> str:
    """A stage in a sentence.

    >>> stage_title("hbm")
    'HBM memory'
    """
    return spoken().words.get(f"stages.{stage}") or stage.replace("_", " ")


def stage_head(stage: str) -> str:
    """A stage at the head of a row or a sentence.

    >>> stage_head("packaging"), stage_head("cooling_water")
    ('Packaging', 'Cooling water')
    """
    return spoken().words.get(f"stage_heads.{stage}") or stage.replace("_", " ").capitalize()


def digits_for(value: float, low: float | None = None, high: float | None = None) -> int:
    """Significant digits: two where the band exceeds 10 % of the value, else three.

    >>> digits_for(6.13, 5.2, 7.3), digits_for(6.13, 6.1, 6.2), digits_for(6.13)
    (2, 3, 3)
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)) or value == 0:
        return 3
    return 2 if high - low > WIDE * abs(value) else 3


def plain(value: float, digits: int = 3) -> str:
    """A number at so many significant digits, with thousands separators and without exponent.

    >>> plain(8817436, 2), plain(0.00026, 2), plain(1.6186), plain(0)
    ('8,800,000', '0.00026', '1.62', '0')
    """
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return Number("0", 0)
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    if rounded != 0:  # 9.99 may have become 10.0: one place fewer
        places = digits - 1 - math.floor(math.log10(abs(rounded)))
    return Number(f"{rounded:,.{max(0, places)}f}", value)


def brief(value: float, digits: int = 3) -> str:
    """A number as an input is written: no zeros at its end.

    >>> brief(0.85), brief(13183.6), brief(1.0)
    ('0.85', '13,200', '1')
    """
    text = plain(value, digits)
    return Number(text.rstrip("0").rstrip("."), value) if "." in text else text


def in_sentence(title: str) -> str:
    """A title inside a sentence.

    >>> in_sentence("Energised AI power in United States"), in_sentence("SK hynix HBM wafers")
    ('energised AI power in the United States', 'SK hynix HBM wafers')
    """
    text = _swapped(title, "articles")
    first = text.partition(" ")[0]
    return f"{text[:1].lower()}{text[1:]}" if first in _COMMON else text


def brief_limit(title: str) -> str:
    """A limit inside a sentence of the first page.

    >>> brief_limit("Energised AI power in United States"), brief_limit("SK hynix HBM wafers")
    ('US AI power', 'SK hynix HBM wafers')
    """
    return _swapped(in_sentence(title), "short_limits")


def _swapped(text: str, group: str) -> str:
    """A text with the words of a group of the catalogue ("this | that") put for one another."""
    for pair in spoken().group(group).values():
        before, _, after = pair.partition(" | ")
        text = text.replace(before, after)
    return text


def count(value: float, digits: int = 3) -> str:
    """A number of things.

    >>> count(8817436), count(345922, 2), count(10000), count(-184.5)
    ('8.82 million', '350 thousand', '10,000', '-184')
    """
    size = abs(value)
    if size >= 999_500_000:
        return _counted("billion", value / 1e9, value, digits)
    if size >= 999_500:
        return _counted("million", value / 1e6, value, digits)
    if size >= 99_950:
        return _counted("thousand", value / 1e3, value, digits)
    if size >= 10_000:
        return plain(value, max(digits, 5))
    return Number(f"{value:,.0f}", value) if size >= 10 else plain(value, digits)


def _counted(unit: str, shown: float, value: float, digits: int) -> Number:
    return Number(say(f"numbers.{unit}", n=plain(shown, digits)), value)


def money(value: float, digits: int = 3) -> str:
    """An amount of US dollars, in words above a million.

    >>> money(1.1917), money(18543434, 2), money(0.00026), money(9.4e10)
    ('USD 1.19', 'USD 19 million', 'USD 0.000260', 'USD 94.0 billion')
    """
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 999_500:
        return Number(f"USD {count(value, digits)}", value)
    return Number(f"USD {plain(value, digits)}", value)


def band(low: float, high: float, digits: int = 2) -> str:
    """A range in numbers, the unit said once by the caller.

    >>> band(5.2e6, 7.3e6), band(1.75, 3.18)
    ('5.2 to 7.3 million', '1.8 to 3.2')
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return "-"
    while digits < 5 and low != high and plain(low, digits) == plain(high, digits):
        digits += 1
    size = max(abs(low), abs(high))
    for unit, word in ((1e9, "billion"), (1e6, "million")):
        if size >= 0.9995 * unit:
            ends = say("phrases.range", low=plain(low / unit, digits), high=plain(high / unit, digits))
            return say(f"numbers.{word}", n=ends)
    return say("phrases.range", low=plain(low, digits), high=plain(high, digits))


def percent(fraction: float, digits: int = 2) -> str:
    r"""A share as percent, number and sign kept on one line.

    >>> percent(0.876), percent(0.004)
    ('88\xa0%', '0.40\xa0%')
    """
    return Number(f"{plain(100 * fraction, digits)}\N{NO-BREAK SPACE}%", fraction)


def listing(words: Sequence[str]) -> Words:
    """Words as a list in a sentence.

    >>> listing(["a"]), listing(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    if len(words) < 2:
        return join("", words)
    return say("phrases.listing", first=join(", ", words[:-1]), last=words[-1])


def leader_since(leaders: list[str], gap: int = 2) -> tuple[int, list[int]]:
    """Where the last leader's time starts, short breaks allowed, and the places of the breaks.

    A break is at most `gap` places of another leader (or none) with the last leader on both sides.

    >>> leader_since(["a", "b", "b", "a", "b"])
    (1, [3])
    """
    last = leaders[-1]
    start, breaks, k = len(leaders) - 1, [], len(leaders) - 1
    while k >= 0:
        if leaders[k] == last:
            start, k = k, k - 1
            continue
        run = k
        while run >= 0 and leaders[run] != last:
            run -= 1
        if run < 0 or k - run > gap:
            break
        breaks += list(range(run + 1, k + 1))
        k = run
    return start, sorted(breaks)


def span_words(first: str, last: str, end: str) -> str:
    """A span of periods in words; up to the end of the horizon it is open.

    >>> span_words("2024-Q1", "2024-Q1", "2028-Q4"), span_words("2025-Q4", "2028-Q4", "2028-Q4")
    ('in 2024-Q1', 'from 2025-Q4 on')
    """
    if first == last:
        return say("times.one", first=first)
    return say("times.open", first=first) if last == end else say("times.span", first=first, last=last)
