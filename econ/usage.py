"""Token usage in four disjoint billing classes, and the ways in which vendors report it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

__all__ = ["CONVENTIONS", "TokenUsage", "UsageConvention", "UsageError", "from_report"]


_INFINITE = float("inf")


class UsageError(ValueError):
    """Reported token counts contradict each other or the convention that they are read by."""


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one call (or a sum of calls) by billing class; every token is in exactly one class.

    Cache writes are split by lifetime (5 minutes and 1 hour), because vendors price them apart. `output` holds
    thinking tokens. Counts may be means, so they need not be whole.

    >>> TokenUsage(uncached_input=88, cache_write=21002, cache_read=120269, output=4156).total
    145515
    """

    uncached_input: float = 0
    cache_write: float = 0
    cache_read: float = 0
    output: float = 0
    cache_write_1h: float = 0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            count = getattr(self, name)
            if not 0 <= count < _INFINITE:
                raise UsageError(
                    f"{name} is {count} tokens: counts are finite and not negative; where input already excludes "
                    "the cached tokens, read the log by a convention with input_includes_cached=False"
                )

    @property
    def prompt(self) -> float:
        """All tokens that the model read, cached or not."""
        return self.uncached_input + self.cache_write + self.cache_write_1h + self.cache_read

    @property
    def total(self) -> float:
        """Sum of all classes."""
        return self.prompt + self.output

    @property
    def cache_hit_share(self) -> float:
        """Cache reads over prompt tokens.

        Raises:
            UsageError: when there are no prompt tokens.

        >>> round(TokenUsage(uncached_input=266e9, cache_read=342e9).cache_hit_share, 4)
        0.5625
        """
        if self.prompt == 0:
            raise UsageError("no prompt tokens, so no share of them was cached")
        return self.cache_read / self.prompt

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def scaled(self, factor: float) -> TokenUsage:
        """Every class times a factor, e.g. calls per task."""
        return TokenUsage(*(getattr(self, f.name) * factor for f in fields(self)))

    @classmethod
    def sum(cls, parts: Iterable[TokenUsage]) -> TokenUsage:
        """Class-wise sum."""
        total = cls()
        for part in parts:
            total = total + part
        return total


@dataclass(frozen=True)
class UsageConvention:
    """What a vendor's usage report means.

    `input_includes_cached`: the input count holds cache reads; `input_includes_cache_write`: it holds cache writes;
    `output_includes_thinking`: the output count holds thinking tokens. `basis` says how it is known.
    """

    name: str
    input_includes_cached: bool
    input_includes_cache_write: bool
    output_includes_thinking: bool
    basis: str


#: Reporting conventions by name. One rule for all vendors bills cached or thinking tokens twice, or not at all.
CONVENTIONS: Mapping[str, UsageConvention] = {
    c.name: c
    for c in (
        UsageConvention(
            "anthropic",
            False,
            False,
            True,
            "input_tokens excludes cache_creation_input_tokens and cache_read_input_tokens; measured in "
            "cacheeconomics evidence (native client), 2026-08-03",
        ),
        UsageConvention(
            "openai",
            True,
            True,
            True,
            "prompt_tokens holds cached tokens and completion_tokens holds reasoning tokens; fact "
            "usage_accounting_cached_tokens_inside_input_total_2026",
        ),
        UsageConvention(
            "google",
            True,
            True,
            False,
            "promptTokenCount includes cachedContentTokenCount; thoughtsTokenCount stands beside candidatesTokenCount "
            "(Gemini API reference, UsageMetadata)",
        ),
        UsageConvention("disjoint", False, False, False, "every count is its own class and thinking is apart"),
    )
}


def from_report(
    convention: str | UsageConvention,
    input_tokens: float,
    output_tokens: float,
    cache_read_tokens: float = 0,
    cache_write_tokens: float = 0,
    cache_write_1h_tokens: float = 0,
    thinking_tokens: float = 0,
    total_tokens: float | None = None,
) -> TokenUsage:
    """Turn one reported usage record into disjoint classes.

    `cache_write_tokens` are the five-minute (or only) writes and exclude `cache_write_1h_tokens`.

    Raises:
        UsageError: unknown convention; more cached tokens than the input that is said to hold them (so the input
            excludes them); more thinking than output; or a reported total that is not the sum of the classes.

    >>> from_report("google", 7477, 2060, thinking_tokens=1939, total_tokens=11476).output
    3999
    >>> from_report("openai", 20212, 931, cache_read_tokens=16298).uncached_input
    3914
    """
    rule = convention if isinstance(convention, UsageConvention) else _convention(convention)
    fresh = input_tokens
    if rule.input_includes_cached:
        fresh -= cache_read_tokens
    if rule.input_includes_cache_write:
        fresh -= cache_write_tokens + cache_write_1h_tokens
    if fresh < 0:
        raise UsageError(
            f"cached tokens (read {cache_read_tokens:g}, written {cache_write_tokens + cache_write_1h_tokens:g}) "
            f"exceed the {input_tokens:g} input tokens that hold them by convention {rule.name!r}: this report's input "
            "must exclude them, so read it by a convention such as 'anthropic'. Clamping to zero would drop cost"
        )
    if rule.output_includes_thinking and thinking_tokens > output_tokens:
        raise UsageError(
            f"{thinking_tokens:g} thinking tokens exceed the {output_tokens:g} output tokens that hold them by "
            f"convention {rule.name!r}: use a convention that reports thinking apart, such as 'google'"
        )
    output = output_tokens if rule.output_includes_thinking else output_tokens + thinking_tokens
    usage = TokenUsage(fresh, cache_write_tokens, cache_read_tokens, output, cache_write_1h_tokens)
    if total_tokens is not None and usage.total != total_tokens:
        raise UsageError(
            f"the classes sum to {usage.total:g} tokens but the report's total is {total_tokens:g}: a class is "
            f"left out or counted twice by convention {rule.name!r}"
        )
    return usage


def _convention(name: str) -> UsageConvention:
    if name not in CONVENTIONS:
        raise UsageError(f"unknown usage convention {name!r}: one of {', '.join(CONVENTIONS)}, or a UsageConvention")
    return CONVENTIONS[name]
