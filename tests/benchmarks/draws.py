"""Draws per CPU-second of a library scenario, by part of a draw: `python tests/benchmarks/draws.py small 60`.

The machine is shared: compare the parts with each other, not with another day.
"""

from __future__ import annotations

import sys
import time

from scenarios.evaluators import Chunk
from scenarios.extract import Reading
from scenarios.sampling import factors, ranks_by_driver
from scenarios.study import prepare
from supply.optimizer.compiled import Compiled


def main(name: str, draws: int) -> None:
    resolved, _, worker = prepare(name)
    chosen = factors(resolved)
    ranks = ranks_by_driver(resolved, chosen, draws)
    clock = time.process_time
    spent = dict.fromkeys(("inputs", "edit", "solve", "read"), 0.0)
    start = clock()
    arrays = worker._arrays(Chunk(0, 0, ranks, size=draws))
    spent["inputs"] = clock() - start
    for k in range(draws):
        start = clock()
        worker._set({path: a[k if len(a) > 1 else 0] for path, a in arrays.items()})
        spent["edit"] += clock() - start
        start = clock()
        worker._solve()
        spent["solve"] += clock() - start
        start = clock()
        worker.extractor.read(Reading.of(worker.compiled))
        spent["read"] += clock() - start
    start = clock()
    network = resolved.network.with_values({p: a[0] for p, a in arrays.items()})
    Compiled(network).solve()
    rebuild = clock() - start
    each = sum(spent.values()) / draws
    print(f"{name}: {worker.compiled.rows} rows, {len(chosen)} drivers, {len(worker.names)} outputs")
    print("ms a draw:", {part: round(1e3 * seconds / draws, 2) for part, seconds in spent.items()})
    ratio = rebuild / each
    print(f"{1 / each:.1f} draws per CPU-second; a rebuild takes {1e3 * rebuild:.0f} ms, {ratio:.1f} times a draw")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "small", int(sys.argv[2]) if len(sys.argv) > 2 else 60)
