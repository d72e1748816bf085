"""API bills: vendor rules as golden bills, the price book, and the traps of published trackers."""

import csv
from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from econ.api_bill import PricedCall, api_bill, bill_calls, bill_usd, fold_writes, in_usd_of_year, usage_inflation
from econ.price_book import PriceBook, PriceEntry, PriceError, TokenPrices, price_book
from econ.price_list import build
from econ.usage import CONVENTIONS, TokenUsage, UsageError, from_report
from supply.facts import catalog
from supply.facts.record import Fact
from supply.paths import data_file

COUNT = st.integers(0, 10**7)
PRICE = st.floats(0, 100)


def fact(**changes: object) -> Fact:
    base = next(f for f in catalog() if f.id == "anthropic_claude_opus_4_1_input_2026_11")
    values = {name: getattr(base, name) for name in base.__slots__} | changes
    return Fact(**values)  # type: ignore[arg-type]


# --- user cases -------------------------------------------------------------------------------------------------------


def test_case_bill_cached_twice() -> None:
    usage = from_report("openai", 20212, 931, cache_read_tokens=16298)
    prices = TokenPrices(0.50, 3.00, 0.05)
    right = api_bill(usage, prices).total
    assert right == pytest.approx(0.0055649, rel=0.001)
    twice = bill_usd(20212, 931, 0.50, 3.00, cache_read_tokens=16298, usd_per_mtoken_cache_read=0.05)
    assert twice / right == pytest.approx(2.46, abs=0.01)


def test_case_bill_negative() -> None:
    prices = TokenPrices(1.0, 5.0, 0.1)
    with pytest.raises(UsageError, match=r"exceed the 56322 input tokens.*must exclude them"):
        from_report("openai", 56322, 87, cache_read_tokens=72960)
    usage = from_report("anthropic", 56322, 87, cache_read_tokens=72960)
    assert api_bill(usage, prices).total == pytest.approx(0.064053, rel=1e-4)


def test_case_bill_input_clamped_to_zero() -> None:
    with pytest.raises(UsageError, match="Clamping to zero would drop cost"):
        from_report("openai", 212117, 23679, cache_read_tokens=1833984)
    bill = api_bill(from_report("anthropic", 212117, 23679, cache_read_tokens=1833984), TokenPrices(2.5, 15.0, 0.25))
    assert bill.total == pytest.approx(1.34397, rel=5e-4)
    assert 1 - 0.8137 / bill.total == pytest.approx(0.39, abs=0.01)


def test_case_bill_classes_must_sum() -> None:
    counts = {"input_tokens": 88, "output_tokens": 4156, "cache_write_tokens": 21002, "cache_read_tokens": 120269}
    assert from_report("anthropic", **counts, total_tokens=145515).total == 145515
    with pytest.raises(UsageError, match="classes sum to 145515 tokens but the report's total is 124513"):
        from_report("anthropic", **counts, total_tokens=124513)


def test_case_bill_thinking_tokens() -> None:
    usage = from_report("google", 7477, 2060, thinking_tokens=1939, total_tokens=11476)
    assert api_bill(usage, TokenPrices(1.25, 10.0)).total == pytest.approx(0.0493362, rel=0.001)
    with pytest.raises(UsageError, match="classes sum to 9537"):  # a convention that holds thinking in output
        from_report("openai", 7477, 2060, thinking_tokens=1939, total_tokens=11476)


def test_case_bill_one_hour_writes() -> None:
    prices = TokenPrices(10.0, 50.0, 1.0, cache_write=12.5, cache_write_1h=20.0)
    assert api_bill(TokenUsage(cache_write_1h=100_000), prices).total == pytest.approx(2.0, rel=1e-9)
    assert api_bill(TokenUsage(cache_write=100_000), prices).total == pytest.approx(1.25, rel=1e-9)
    shown, right = 305.30, 355.66
    assert 1 - shown / right == pytest.approx(0.142, abs=5e-4)
    assert right / shown - 1 == pytest.approx(0.165, abs=5e-4)
    listed = price_book().prices("claude-opus-5", date(2026, 11, 15))
    assert listed.cache_write is not None and listed.cache_write_1h is not None and listed.uncached_input is not None
    assert (listed.cache_write / listed.uncached_input, listed.cache_write_1h / listed.uncached_input) == (1.25, 2.0)


def test_case_bill_cache_write_at_zero() -> None:
    usage = from_report("anthropic", 3, 0, cache_write_tokens=1313)
    with pytest.raises(PriceError, match=r"1313 cache_write tokens have no price.*not taken as zero"):
        api_bill(usage, TokenPrices(0.20, 1.0))
    right = api_bill(usage, TokenPrices(0.20, 1.0, cache_write=0.25)).input_total
    assert right == pytest.approx(0.00032885, rel=0.001)
    assert right / 6e-7 == pytest.approx(548, abs=0.5)
    assert api_bill(usage, TokenPrices(0.20, 1.0, cache_write=0.0)).input_total == pytest.approx(6e-7)  # a stated zero


def test_case_bill_unknown_model() -> None:
    book = PriceBook((PriceEntry("claude-opus-4-1", "anthropic", TokenPrices(15.0, 75.0), date(2025, 8, 5)),))
    with pytest.raises(PriceError, match=r"claude-opus-4\.1.*did you mean claude-opus-4-1\?.*zero or at a default"):
        book.prices("claude-opus-4.1", date(2026, 9, 1))
    shipped = price_book().prices("llama-3.3-70b-versatile", date(2026, 1, 1), "groq")
    assert shipped.output is not None
    assert 10.0 / shipped.output == pytest.approx(12.6582, rel=0.01)


def test_case_bill_usage_semantics_file() -> None:
    prices = TokenPrices(1.0, 5.0, 0.1, 1.25)
    with data_file("checks", "files", "usage_log_two_clients.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    bills = []
    for row in rows:
        rule = "anthropic" if row["client"] == "native" else "openai"
        counts = (row["input_field_value"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"])
        usage = from_report(rule, *(int(c) for c in counts))
        assert usage.prompt == 17111
        bills.append(api_bill(usage, prices).total)
    assert bills == pytest.approx([0.017131, 0.0214065, 0.0017592, 0.017151, 0.0017392, 0.0017592], rel=5e-4)


def test_case_agent_replayed_history() -> None:
    assert usage_inflation(11830, 3441) == pytest.approx(3.43795, rel=0.001)


# --- the price book ---------------------------------------------------------------------------------------------------


def test_every_shipped_price_is_in_the_book() -> None:
    quantities = ("price_input", "price_output", "price_cached_input", "price_cache_write", "price_cache_write_1h")
    facts = {f.id for f in catalog() if f.quantity in quantities}
    assert facts == {i for e in price_book().entries for i in e.prices.fact_ids}


def test_every_band_and_hour_of_the_facts_has_a_term() -> None:
    entries = price_book().entries
    scoped = {i for e in entries if e.prompt_above or e.hours or e.other_hours for i in e.prices.fact_ids}
    for f in catalog():
        if f.quantity.startswith("price_") and ("Long-context tier" in f.note or " UTC" in f.subject):
            assert f.id in scoped, f.id


@pytest.mark.parametrize(
    ("model", "vendor", "on", "prompt", "expected"),
    [
        ("gpt-5.5", None, date(2026, 9, 1), 272_000, 5.0),  # at the edge: the short band
        ("gpt-5.5", None, date(2026, 9, 1), 272_001, 10.0),
        ("claude-haiku-5.5", None, date(2026, 11, 1), 100_001, 0.5),
        ("deepseek-v4-flash", "deepseek", date(2026, 8, 15), 0, 0.14),
        ("claude-4.5-haiku", None, date(2026, 11, 1), 0, 1.0),  # an older spelling of claude-haiku-4.5
    ],
)
def test_band_and_alias(model: str, vendor: str | None, on: date, prompt: int, expected: float) -> None:
    prices = price_book().prices(model, on, vendor, prompt_tokens=prompt)
    assert prices.uncached_input == pytest.approx(expected)
    assert all(i in catalog() for i in prices.fact_ids)


def test_long_prompt_reprices_everything_not_the_part_above_the_edge() -> None:
    book, on = price_book(), date(2026, 9, 1)
    short = bill_calls([PricedCall(on, TokenUsage(272_000, output=1000))], book, "gpt-5.5")
    long = bill_calls([PricedCall(on, TokenUsage(272_001, output=1000))], book, "gpt-5.5")
    assert long.by_class["uncached_input"] == pytest.approx(2 * short.by_class["uncached_input"], rel=1e-5)
    assert long.by_class["output"] == pytest.approx(1.5 * short.by_class["output"], rel=1e-9)


def test_hour_of_day() -> None:
    book = price_book()
    peak = book.prices("deepseek-v4-flash", datetime(2026, 9, 1, 2, 30), "deepseek")
    off = book.prices("deepseek-v4-flash", datetime(2026, 9, 1, 12), "deepseek")
    weekend = book.prices("deepseek-v4-flash", datetime(2026, 9, 5, 2, 30), "deepseek")
    assert peak == off.scaled(2.0)
    assert weekend == off
    with pytest.raises(PriceError, match="depends on the hour: give a UTC datetime"):
        book.prices("deepseek-v4-flash", date(2026, 9, 1), "deepseek")
    night = book.prices("deepseek-reasoner", datetime(2025, 6, 1, 0, 10), "deepseek")
    day = book.prices("deepseek-reasoner", datetime(2025, 6, 1, 0, 40), "deepseek")
    assert night.output is not None and day.output is not None and night.output < day.output


def test_introductory_price_ends() -> None:
    book = price_book()
    assert book.prices("gemini-3.8-flash", date(2026, 12, 31)).uncached_input == 0.75
    with pytest.raises(PriceError, match="announced to end on 2026-12-31 and no later list"):
        book.prices("gemini-3.8-flash", date(2027, 1, 1))
    with pytest.raises(
        PriceError, match=r"no price of gpt-5\.5 on 2026-01-01: the first list on record is of 2026-04-23"
    ):
        book.prices("gpt-5.5", date(2026, 1, 1))


def test_tiers() -> None:
    book, on = price_book(), date(2026, 11, 10)
    standard = book.prices("claude-opus-5", on)
    batch = book.prices("claude-opus-5", on, tier="batch")
    assert batch.output == standard.scaled(0.5).output
    assert "anthropic_batch_api_batch_discount_2026_11" in batch.fact_ids
    assert book.prices("claude-opus-4.7", on, tier="fast").output == 150.0
    with pytest.raises(PriceError, match=r"no 'priority' tier of claude-opus-5 from anthropic: the book has batch"):
        book.prices("claude-opus-5", on, tier="priority")


def test_unpriced_band_is_refused() -> None:
    with pytest.raises(PriceError, match=r"40000 prompt tokens exceed the largest priced band of GLM-5 \(32000"):
        price_book().prices("GLM-5", date(2026, 9, 1), prompt_tokens=40_000)


def test_placeholder_price_is_refused() -> None:
    with pytest.raises(PriceError, match="is a placeholder"):
        build([fact(kind="placeholder")])


def test_two_lists_that_disagree_are_refused() -> None:
    with pytest.raises(PriceError, match=r"price uncached_input of claude-opus-4\.1 at 15\.0 and 16\.0"):
        terms = [{"subject": "b (anthropic)", "model": "claude-opus-4.1", "valid_from": "", "tier": "standard"}]
        terms[0] |= {"prompt_above": "", "utc_hours": ""}
        build([fact(), fact(id="x", subject="b (anthropic)", value=16.0)], terms)


def test_missing_price_is_not_zero() -> None:
    for name in ("uncached_input", "output", "cache_read", "cache_write_1h"):
        with pytest.raises(PriceError, match=f"{name} tokens have no price"):
            api_bill(TokenUsage(**{name: 1}), TokenPrices(None, None))


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_bad_prices_are_refused(price: float) -> None:
    with pytest.raises(PriceError, match="finite and not negative"):
        TokenPrices(price, 1.0)


@pytest.mark.parametrize("count", [-1.0, float("nan"), float("inf")])
def test_bad_counts_are_refused(count: float) -> None:
    with pytest.raises(UsageError, match="finite and not negative"):
        TokenUsage(output=count)


def test_unknown_convention_and_empty_log() -> None:
    with pytest.raises(UsageError, match="one of anthropic, openai, google, disjoint"):
        from_report("azure", 1, 1)
    with pytest.raises(PriceError, match="no calls"):
        bill_calls([], price_book(), "gpt-5.5")
    with pytest.raises(UsageError, match="thinking tokens exceed"):
        from_report("openai", 1, 1, thinking_tokens=5)


# --- properties -------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(COUNT, COUNT, COUNT, COUNT, PRICE, PRICE, PRICE, PRICE)
def test_bill_is_the_sum_of_its_classes(
    a: int, b: int, c: int, d: int, pa: float, pb: float, pc: float, pd: float
) -> None:
    bill = api_bill(TokenUsage(a, b, c, d), TokenPrices(pa, pd, pc, pb), 1.5)
    assert bill.total == pytest.approx((a * pa + b * pb + c * pc + d * pd) / 1e6 + 1.5, rel=1e-12)
    assert bill.total - bill.other - bill.by_class["output"] == pytest.approx(bill.input_total, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(CONVENTIONS)), COUNT, COUNT, COUNT, COUNT, COUNT)
def test_conventions_describe_the_same_tokens(
    name: str, fresh: int, write: int, read: int, answer: int, thought: int
) -> None:
    rule = CONVENTIONS[name]
    reported = fresh + rule.input_includes_cached * read + rule.input_includes_cache_write * write
    output = answer + rule.output_includes_thinking * thought
    usage = from_report(name, reported, output, read, write, thinking_tokens=thought)
    assert usage == TokenUsage(fresh, write, read, answer + thought)


@settings(max_examples=40, deadline=None)
@given(COUNT, COUNT, COUNT)
def test_folding_writes_keeps_the_prompt(fresh: int, write: int, read: int) -> None:
    usage = TokenUsage(fresh, write, read, 7)
    for prices in (TokenPrices(1.0, 1.0), TokenPrices(1.0, 1.0, 0.1), TokenPrices(1.0, 1.0, 0.1, 1.25)):
        folded = fold_writes(usage, prices)
        assert folded.total == usage.total
        api_bill(folded, prices)  # every class that is left has a price


def test_money_of_another_year() -> None:
    assert in_usd_of_year(in_usd_of_year(10.0, 2022, 2025), 2025, 2022) == pytest.approx(10.0)
    assert in_usd_of_year(1.0, 2022, 2025) > 1
    with pytest.raises(ValueError, match="us_cpi_u_1999"):
        in_usd_of_year(1.0, 1999, 2025)
