"""Speed of the optimum as ratios to direct highspy in the same run: `python tests/benchmarks/optimizer.py [--large]`.

Every figure is CPU time of this process (machines are shared); ratios compare what was measured one after the other.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from supply.network import Demand, Horizon, Material, Network, Process, Resource
from supply.network_random import random_industry
from supply.optimizer.compiled import Compiled
from supply.optimizer.engine import Engine
from supply.optimizer.errors import SizeError
from supply.optimizer.formulation import formulate
from supply.optimizer.matrix import compile_matrix

SIZES: dict[str, dict[str, Any]] = {
    "small": {"skus": 5, "suppliers": 2, "regions": 2, "periods": 12, "tail": 4},
    "base": {"skus": 12, "suppliers": 3, "regions": 3, "periods": 20, "tail": 12},
    "medium": {"skus": 20, "suppliers": 3, "regions": 4, "periods": 60, "tail": 12},
}
LARGE: dict[str, Any] = {"skus": 56, "suppliers": 3, "regions": 6, "periods": 228, "tail": 12, "step": "month"}


def cpu(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Least CPU seconds of a call, and its last result."""
    best, result = np.inf, None
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return float(best), result


def draws(network: Network, count: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Yields with 3 % and capacities with 10 % standard deviation, all at once."""
    v = network.values
    yields = [p for p in v if p.endswith(".yield")]
    capacities = [p for p in v if p.endswith(".capacity")]
    return [
        {p: np.minimum(v[p] * np.exp(0.03 * rng.standard_normal()), 1.0) for p in yields}
        | {p: v[p] * np.exp(0.10 * rng.standard_normal()) for p in capacities}
        for _ in range(count)
    ]


def measure(name: str, network: Network, count: int) -> None:
    """Print build, compile, cold solve, re-solve and draws of one size."""
    rng = np.random.default_rng(1)
    build, context = cpu(lambda: formulate(network))
    compile_time, matrix = cpu(lambda: compile_matrix(context))
    theta = context.table.theta()
    direct, engine = cpu(lambda: Engine(matrix, theta), repeat=3)
    solve, _ = cpu(lambda: engine.run(warm=False))
    print(f"\n{name}: {len(matrix.rows):,} rows, {len(matrix.columns):,} columns, {len(matrix.index):,} nonzeros")
    print(f"  direct highspy: pass {1e3 * direct:.1f} ms, cold solve {solve:.3f} s")
    print(f"  build + compile {build + compile_time:.2f} s = {(build + compile_time) / direct:.0f} x direct pass")
    compiled = Compiled(network)
    compiled.solve()
    sample = draws(network, count, rng)
    raw = 0.0
    start = time.process_time()
    for changes in sample:
        compiled.update(changes)
        compiled.engine.restore_basis()
        begun = time.process_time()
        compiled.engine.run()
        raw += time.process_time() - begun
        compiled.solve(quick=True, chain=True)
    del start
    total, _ = cpu(lambda: [compiled.update(changes).solve(quick=True) for changes in sample])
    print(f"  re-solve after a draw {1e3 * total / count:.1f} ms = {total / raw:.2f} x raw highspy run")
    rebuild, _ = cpu(lambda: Compiled(network.with_values(sample[0]), check=False).solve())
    print(
        f"  {count / total:.0f} draws per CPU-second; with a rebuild per draw {rebuild * count / total:.0f} x as long"
    )


def long_line(stages: int = 32, months: int = 240) -> Network:
    """A chain of stages over months, each with its own growing capacity and lead time."""
    rng = np.random.default_rng(3)
    names = [f"s{i}" for i in range(stages)]
    values: dict[str, Any] = {f"demand.{names[-1]}.price": 1000.0, "discount_rate": 0.1}
    processes = []
    for i, made in enumerate(names):
        inputs = (names[i - 1],) if i else ()
        processes.append(Process(made, (made,), inputs, (f"r{i}",)))
        values |= {
            f"processes.{made}.output.{made}": 1.0,
            f"processes.{made}.uses.r{i}": 1.0,
            f"processes.{made}.cost": 5.0,
        }
        values |= {f"processes.{made}.input.{m}": 1.0 for m in inputs}
        values |= {f"processes.{made}.yield": rng.uniform(0.9, 1.0), f"processes.{made}.lead_time": rng.uniform(0, 2.5)}
        values |= {f"materials.{made}.holding_cost": 0.5 + 0.1 * i}
        growth = rng.uniform(0.002, 0.02)
        values[f"resources.r{i}.capacity"] = 1e4 * rng.uniform(0.9, 2) * (1 + growth) ** np.arange(months)
    return Network.build(
        Horizon("2024-01", months, "month"),
        [Material(m) for m in names],
        processes,
        [Resource(f"r{i}") for i in range(stages)],
        values,
        demand=[Demand(names[-1])],
    )


def main() -> None:
    """Run the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also build and compile about 200,000 rows")
    parser.add_argument("--sizes", default="small,base")
    arguments = parser.parse_args()
    for name in arguments.sizes.split(","):
        measure(name, random_industry(**SIZES[name]), 200 if name == "small" else 8)
    seconds, solution = cpu(lambda: Compiled(long_line()).solve())
    proof = solution.evidence
    print(f"\n32 stages x 240 months: {proof.rows:,} rows, {seconds:.1f} s from network to proof, gap {proof.gap:.1e}")
    if arguments.large:
        network = random_industry(**LARGE)
        try:
            Compiled(network)
        except SizeError as error:
            print(f"\nlarge: refused: {error}")
        seconds, compiled = cpu(lambda: Compiled(network, most_rows=10**6))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"\nlarge: {compiled.rows:,} rows compiled in {seconds:.1f} s, peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
