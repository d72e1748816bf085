"""Tokens from words, pages, characters and languages, by fertility facts; each answer carries its range."""

from __future__ import annotations

from dataclasses import dataclass

from econ.performance.names import did_you_mean
from supply.facts import catalog

__all__ = [
    "TextError",
    "TokenCount",
    "languages",
    "tokens_for_same_meaning",
    "tokens_from_characters",
    "tokens_from_pages",
    "tokens_from_words",
]

_WORDS = "eng_text_tokens_per_word_llama3_"
_PREMIUM = "eng_text_token_premium_"
_CHARACTERS = "eng_text_tokens_per_1000_characters_"


class TextError(ValueError):
    """An unknown language or tokenizer, or a negative amount of text."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A token count, its range, and the fact that it rests on."""

    tokens: float
    low: float
    high: float
    basis: str


def languages() -> list[str]:
    """Languages whose fertility is known, lower case.

    >>> "english" in languages() and "tamil" in languages()
    True
    """
    return sorted(f.id.removeprefix(_WORDS) for f in catalog() if f.id.startswith(_WORDS))


def tokens_from_words(words: float, language: str = "english", words_per_token: float | None = None) -> TokenCount:
    """Tokens of a text of words: words / (words per token). English uses the 0.75 words a token of the makers' rule.

    The range of English runs from the measured 1.27 tokens a word to that rule; other languages +-20 % (domain).

    >>> tokens_from_words(750).tokens
    1000.0
    >>> round(tokens_from_words(750, "tamil").tokens)
    8438

    Raises:
        TextError: for a negative count, an unknown language, or words per token that are not positive.
    """
    if words < 0:
        raise TextError(f"{words} words: a count must not be negative")
    if words_per_token is not None:
        if words_per_token <= 0:
            raise TextError(f"{words_per_token} words a token must be positive")
        count = words / words_per_token
        return TokenCount(count, count, count, "given words per token")
    key = language.strip().lower()
    if key not in languages():
        raise TextError(
            f"no fertility of {language!r}{did_you_mean(key, languages(), 'known: ' + ', '.join(languages()))}"
        )
    measured = words * catalog()[_WORDS + key].number
    if key == "english":
        rule = catalog()["eng_text_words_per_token_english"]
        return TokenCount(words / rule.number, measured, words / rule.number, rule.id)
    return TokenCount(measured, 0.8 * measured, 1.2 * measured, _WORDS + key)


def tokens_for_same_meaning(english_words: float, language: str) -> TokenCount:
    """Tokens of a translation that says what so many English words say: English tokens x the language's premium.

    Words of different languages are not comparable; the same meaning is.

    >>> round(tokens_for_same_meaning(750, "chinese").tokens)
    2250

    Raises:
        TextError: for a negative count, or a language whose premium is not known.
    """
    english = tokens_from_words(english_words)
    key = language.strip().lower()
    if key == "english":
        return english
    if _PREMIUM + key not in catalog():
        known = sorted(f.id.removeprefix(_PREMIUM) for f in catalog() if f.id.startswith(_PREMIUM))
        raise TextError(f"no token premium of {language!r}{did_you_mean(key, known, 'known: ' + ', '.join(known))}")
    premium = catalog()[_PREMIUM + key]
    low, high = premium.range
    return TokenCount(english.tokens * premium.number, english.low * low, english.high * high, premium.id)


def tokens_from_pages(pages: float, language: str = "english", tokens_per_page: float | None = None) -> TokenCount:
    """Tokens of a document of pages: pages x words a page x tokens a word, or the given tokens a page.

    >>> tokens_from_pages(40).tokens
    20000.0

    Raises:
        TextError: for a negative count or an unknown language.
    """
    if pages < 0:
        raise TextError(f"{pages} pages: a count must not be negative")
    if tokens_per_page is not None:
        count = pages * tokens_per_page
        return TokenCount(count, count, count, "given tokens per page")
    page = catalog()["eng_text_words_per_page"]
    one = tokens_from_words(page.number, language)
    low, high = page.range
    spread = tokens_from_words(low, language).low, tokens_from_words(high, language).high
    return TokenCount(pages * one.tokens, pages * spread[0], pages * spread[1], f"{page.id}, {one.basis}")


def tokens_from_characters(characters: float, tokenizer: str = "cl100k", code: bool = False) -> TokenCount:
    """Tokens of English prose or source code of characters with a tokenizer (cl100k, o200k, claude, llama_4).

    >>> tokens_from_characters(4000).tokens
    1000.0

    Raises:
        TextError: for a negative count or an unknown tokenizer.
    """
    if characters < 0:
        raise TextError(f"{characters} characters: a count must not be negative")
    key = _CHARACTERS + ("code_" if code else "") + tokenizer.strip().lower().replace(" ", "_")
    if key not in catalog():
        names = sorted({f.id.removeprefix(_CHARACTERS) for f in catalog() if f.id.startswith(_CHARACTERS)})
        raise TextError(f"no rate of tokenizer {tokenizer!r}; known: {', '.join(names)}")
    count = characters / 1000 * catalog()[key].number
    return TokenCount(count, 0.9 * count, 1.1 * count, key)
