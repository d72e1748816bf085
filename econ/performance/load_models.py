"""Load models: closed loop of users, fixed batch, maximum throughput and open arrival, as arrays over set-ups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from econ.performance.setups import Setups
from econ.performance.steps import (
    Constants,
    PrefillTime,
    decode_step,
    kv_bytes_per_sequence,
    prefill,
    weight_bytes_per_rank,
)

Array = NDArray[np.float64]
WORKSPACE_BYTES = 2.0e9
ROUNDS = 14
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
    """Sequences that the cache of one data-parallel rank holds at mean length; at most 0 when the weights do not fit."""
    free = s.memory_bytes * SAFETY_SHARE - weight_bytes_per_rank(s) - WORKSPACE_BYTES
    return np.asarray(c.capacity * free / kv_bytes_per_sequence(s, s.isl + 0.5 * s.osl))


def closed_loop(s: Setups, c: Constants) -> Served:
    """Closed loop of ``concurrency`` users, each sending its next request when the last one ends.

    Fixed point of the running batch B: TPOT = step(B) + interference (B - 1) prefill / OSL;
    TTFT = fixed + prefill alone + waits x step(B) + burst (B - 1) prefill; B = C OSL TPOT / (OSL TPOT + TTFT), at most what
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
        tpot = step / s.tokens_per_step + c.interference * extra * pre.work_s / s.osl
        ttft = c.first_token_s + pre.alone_s + c.waits * step + c.burst * extra * queue
        busy = s.osl * tpot
        running = 0.4 * running + 0.6 * np.minimum(users * busy / (busy + ttft), limit)
    queued = SOFT * np.logaddexp(0.0, (users / limit - 1.0) / SOFT)
    queued = np.where(users > 0.75 * limit, queued, 0.0)
    wait = queued * (s.osl * tpot + ttft) * c.overload
    ttft = ttft + wait
    output = s.dp * users * s.osl / (s.osl * tpot + ttft)
    return Served(ttft, tpot, running, limit, output, queued, step, pre)


def maximum_throughput(s: Setups, c: Constants, most: float = 2048.0) -> Served:
    """Rate with as many sequences as the cache holds: B OSL / (OSL step(B) + B prefill), over all replicas of the set-up."""
    limit = np.maximum(batch_limit(s, c), 1.0)
    running = np.minimum(limit, most)
    pre = prefill(s, c)
    # Pipeline stages work on different micro-batches at once, so each sees its share of the running sequences.
    step = decode_step(s, c, running / s.pp, s.isl + s.osl / 2).total_s
    tpot = step / s.tokens_per_step + running / s.pp * pre.work_s / s.osl
    rate = s.dp * running / tpot
    ttft = c.first_token_s + pre.alone_s + c.waits * step
    return Served(ttft, tpot, running, limit, rate, np.zeros(len(s)), step, pre)
