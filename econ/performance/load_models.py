"""Load models: closed loop of users, fixed batch, maximum throughput and open arrival, as arrays over set-ups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from econ.performance.ideal import ideal_parameters
from econ.performance.setups import Setups
from econ.performance.steps import (
    Constants,
    PrefillTime,
    constants,
    decode_step,
    kv_bytes_per_sequence,
    prefill,
    weight_bytes_per_rank,
)

Array = NDArray[np.float64]
WORKSPACE_BYTES = 2.0e9
ROUNDS = 10
SEPARATE_ROUNDS = 16
SAFETY_SHARE = 0.92
#: Width of the smooth start of queueing around a full cache, as a share of its capacity.
SOFT = 0.04


@dataclass(frozen=True)
class Served:
    """Steady state of a server: times in seconds, rates per second over the whole deployment."""

    ttft_s: Array
    tpot_s: Array
    running: Array
    batch_limit: Array
    output_per_s: Array
    overload: Array
    step_s: Array
    prefill: PrefillTime


def batch_limit(s: Setups, c: Constants) -> Array:
    """Sequences that the cache of one data-parallel rank holds at mean length; at most 0 when the weights do not."""
    left = weight_bytes_per_rank(s) + WORKSPACE_BYTES
    margin = s.memory_bytes * SAFETY_SHARE - left
    free = np.where(s.share_of_free > 0, s.share_of_free * (s.memory_bytes - left), margin)
    return np.asarray(c.capacity * free / kv_bytes_per_sequence(s, s.isl + 0.5 * s.osl))


def rank_factor(s: Setups, c: Constants) -> Array:
    """Slow-down of data-parallel attention: ranks step together and wait while another prefills; 1 for one rank."""
    return np.asarray(1.0 + c.rank_wait * (1.0 - 1.0 / s.dp))


def closed_loop(s: Setups, c: Constants) -> Served:
    """Closed loop of ``concurrency`` users, each sending its next request when the last one ends.

    Fixed point of the running batch B: TPOT = step(B) + interference (B - 1) prefill / OSL;
    TTFT = fixed + prefill alone + waits x step(B) + burst (B - 1) prefill; B = C OSL TPOT / (OSL TPOT + TTFT), at
    most what
    the cache holds. Above that, users wait in turn.
    """
    users = s.concurrency / s.dp
    limit = np.maximum(batch_limit(s, c), 1.0)
    context = s.isl + s.osl / 2
    pre = prefill(s, c)
    queue = pre.work_s + c.floor_share * np.maximum(pre.alone_s - pre.work_s, 0.0)
    running = np.minimum(users, limit)
    tpot = ttft = step = running
    for _ in range(ROUNDS):
        step = decode_step(s, c, np.maximum(running, 1.0), context).total_s
        extra = np.maximum(running - 1.0, 0.0)
        tpot = (step / s.tokens_per_step + c.interference * extra * pre.work_s / s.osl) * rank_factor(s, c)
        ttft = c.first_token_s + pre.alone_s + c.waits * step + c.burst * extra * queue
        busy = s.osl * tpot
        running = 0.4 * running + 0.6 * np.minimum(users * busy / (busy + ttft), limit)
    queued = SOFT * np.logaddexp(0.0, (users / limit - 1.0) / SOFT)
    queued = np.where(users > 0.75 * limit, queued, 0.0)
    wait = queued * (s.osl * tpot + ttft) * c.overload
    ttft = ttft + wait
    # However requests overlap, a round of all users takes the time of their work at the physical limits.
    most = maximum_throughput(s, constants(ideal_parameters(), s), users).output_per_s
    least = s.dp * users * s.osl / most - s.osl * tpot
    # Prompts are read one after another on each rank, whether or not decode runs beside them.
    least = np.maximum(least, c.interference * users * pre.work_s * rank_factor(s, c) - s.osl * tpot)
    # And a server that took its users one by one would need no longer than this.
    alone = decode_step(s, c, np.ones(len(s)), context).total_s
    first = c.first_token_s + pre.alone_s
    single = first + (c.waits + s.osl / s.tokens_per_step) * alone
    longest = np.maximum(np.maximum(users, 1.0) * single * rank_factor(s, c) - s.osl * tpot, first)
    ttft = np.maximum(np.minimum(ttft, longest), least)
    output = s.dp * users * s.osl / (s.osl * tpot + ttft)
    return Served(ttft, tpot, running, limit, output, queued, step, pre)


def maximum_throughput(s: Setups, c: Constants, most: float | Array = 2048.0) -> Served:
    """Rate with as many sequences as the cache holds: B OSL / (OSL step(B) + B prefill), over all replicas."""
    limit = np.maximum(batch_limit(s, c), 1.0)
    running = np.minimum(limit, most)
    pre = prefill(s, c)
    # Pipeline stages work on different micro-batches at once, so each sees its share of the running sequences.
    step = decode_step(s, c, running / s.pp, s.isl + s.osl / 2).total_s
    tpot = (step / s.tokens_per_step + running / s.pp * pre.work_s / s.osl) * rank_factor(s, c)
    rate = c.release_rate * s.dp * running / tpot
    ttft = c.first_token_s + pre.alone_s + c.waits * step
    return Served(ttft, tpot, running, limit, rate, np.zeros(len(s)), step, pre)


def throughput_within(s: Setups, c: Constants, tpot_limit_s: Array, most: float = 2048.0) -> Served:
    """Best rate whose mean time per output token stays within a limit (infinite: `maximum_throughput`).

    TPOT rises with the batch, so the batch is found by bisection between one sequence and what the cache holds.
    """
    free = maximum_throughput(s, c, most)
    pre = free.prefill
    context = s.isl + s.osl / 2

    def time_per_token(running: Array) -> Array:
        step = decode_step(s, c, running / s.pp, context).total_s
        return np.asarray((step / s.tokens_per_step + running / s.pp * pre.work_s / s.osl) * rank_factor(s, c))

    low, high = np.log(np.minimum(free.running, 1.0)), np.log(free.running)
    for _ in range(8):
        middle = (low + high) / 2
        inside = time_per_token(np.exp(middle)) <= tpot_limit_s
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    bound = free.tpot_s > tpot_limit_s
    running = np.where(bound, np.exp(low), free.running)
    tpot = np.where(bound, time_per_token(running), free.tpot_s)
    rate = np.where(bound, c.release_rate * s.dp * running / tpot, free.output_per_s)
    return Served(free.ttft_s, tpot, running, free.batch_limit, rate, free.overload, free.step_s, pre)


#: Share of the closed-loop first-token constant that a lone arrival pays, and decode steps that it waits.
LONE_FIRST, LONE_WAIT = 0.4, 1.0
#: Largest share of time that steady prefill takes from decode before the run counts as prefill first.
MOST_PREFILL = 0.5


def arrivals(s: Setups, c: Constants, rate_per_s: Array, requests: float = 500.0) -> Served:
    """Open arrival of ``rate_per_s`` requests per second and copy of the layout; infinite for all at once.

    Users in the system follow Little's law, rate x OSL x TPOT, at most the ``requests`` of a run. Prefill goes
    first, so
    TPOT = step(B) / (1 - rate x prefill), and a first token waits for the prefill queue (half the backlog of the
    run when
    prefill alone is overloaded) and for the cache.
    """
    most = maximum_throughput(s, c, requests)
    capacity = most.output_per_s / np.maximum(s.osl, 1.0)
    offered = np.where(~np.isfinite(rate_per_s) | (rate_per_s <= 0), capacity * 1e3, rate_per_s)
    pre = prefill(s, c)
    load = offered * pre.work_s / s.dp
    slowed = 1.0 / (1.0 - np.where(load < 1.0, np.minimum(load, MOST_PREFILL), 0.0))
    limit = np.maximum(batch_limit(s, c), 1.0)
    context = s.isl + s.osl / 2
    step = decode_step(s, c, np.ones(len(s)), context).total_s
    users = running = tpot = step
    for _ in range(ROUNDS):
        tpot = step / s.tokens_per_step * slowed
        users = np.minimum(offered * s.osl * tpot, requests) / s.dp
        running = np.minimum(users, limit)
        step = decode_step(s, c, np.maximum(running, 1.0), context).total_s
    steady = np.minimum(load, 0.9)
    queue = pre.work_s * steady / (2 * (1 - steady))
    backlog = 0.5 * requests * np.maximum(pre.work_s / s.dp - 1 / offered, 0.0)
    full = np.maximum(users / limit - 1.0, 0.0)
    wait = 0.5 * full * s.osl * tpot * c.overload
    ttft = LONE_FIRST * c.first_token_s + pre.alone_s + LONE_WAIT * step + queue + backlog + wait
    # A finite run ends with the last request, which sees the server half empty.
    drained = requests / (requests / offered + 0.5 * s.osl * tpot)
    rate = np.minimum(capacity, drained) * s.osl
    return Served(ttft, tpot, running, limit, rate, full, step, pre)


def disaggregated(
    pre: Setups, pre_c: Constants, dec: Setups, dec_c: Constants, prefill_workers: Array, decode_workers: Array
) -> tuple[Served, Setups]:
    """Separate prefill and decode workers under closed-loop users, with the cache sent between them.

    Prefill workers form a queue whose load is the request rate x prefill time / (workers x ranks); decode runs without
    interference. Users wait in turn when either side is full.
    """
    users = dec.concurrency
    work = prefill(pre, pre_c)
    slots = prefill_workers * pre.dp
    d = dec.replaced(concurrency=users / decode_workers)
    limit = np.maximum(batch_limit(d, dec_c), 1.0)
    sent = kv_bytes_per_sequence(dec, dec.isl) * dec.pp
    transfer = sent / np.maximum(pre.internode_bytes_per_s, 1.0)
    context = dec.isl + dec.osl / 2
    running = np.minimum(d.concurrency / d.dp, limit)
    ttft, tpot, step = running, running, running
    for _ in range(SEPARATE_ROUNDS):
        step = decode_step(d, dec_c, np.maximum(running, 1.0), context).total_s
        tpot = dec_c.separate_step * step / d.tokens_per_step
        busy = np.maximum(work.work_s, 1e-9)
        decode_rate = running * d.dp * decode_workers / (d.osl * tpot)
        rate = np.minimum(decode_rate, slots / busy)
        # Closed loop: users that are not decoding are at prefill; at least one service time each.
        waiting = np.maximum(users - rate * d.osl * tpot, 0.0) / np.maximum(rate, 1e-12)
        alone = pre_c.first_token_s + pre_c.separate_first_s + work.alone_s + transfer + step
        burst = pre_c.separate_burst * users / slots * busy
        load = np.minimum(decode_rate * busy / slots, 0.95)
        ttft = alone + burst + np.where(decode_rate > slots / busy, waiting, busy * load / (2 * (1 - load)))
        share = d.concurrency / d.dp * d.osl * tpot / (d.osl * tpot + ttft)
        running = 0.65 * running + 0.35 * np.minimum(share, limit)
    queued = np.maximum(d.concurrency / d.dp / limit - 1.0, 0.0)
    ttft = ttft + queued * (d.osl * tpot + ttft) * dec_c.overload
    output = users * d.osl / (d.osl * tpot + ttft)
    return Served(ttft, tpot, running, limit, output, queued, step, work), d
