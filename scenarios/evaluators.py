"""Draws through the whole chain: one small protocol, in this process or in several, with the same numbers.

A worker compiles the network once, solves the nominal case, and starts every draw from that basis (large programmes:
from nothing, by interior point); so a draw's
numbers do not depend on its neighbours or on how many workers there are.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from scenarios.costing import CostModel
from scenarios.extract import Extractor, Reading
from scenarios.nodes import Array, Draw, Node
from scenarios.structure import network_path
from supply.network import Network

if TYPE_CHECKING:
    from scenarios.resolve import Resolved
    from supply.optimizer.compiled import Compiled

__all__ = ["Chunk", "ChunkResult", "DrawEvaluator", "InProcess", "Processes", "Study", "Worker"]


@dataclass(frozen=True)
class Chunk:
    """Some draws: their number, and ranks by driver or arrays that replace the numbers of paths (rows are draws)."""

    index: int
    first: int
    ranks: Mapping[str, Array] = field(default_factory=dict)
    replaced: Mapping[str, Array] = field(default_factory=dict)
    size: int = 0


@dataclass(frozen=True)
class ChunkResult:
    """Outputs of a chunk: rows are draws, columns outputs; `control` the nominal Lagrangian; what failed and why."""

    index: int
    first: int
    values: Array
    control: Array
    failed: dict[int, str]


@dataclass
class Study:
    """Everything a worker needs, small enough to send: network, uncertain nodes, cost model, outputs wanted."""

    network: Network
    nodes: dict[str, Node]
    model: CostModel
    outputs: list[str] | None = None

    @classmethod
    def of(cls, resolved: Resolved, model: CostModel, outputs: list[str] | None = None) -> Study:
        """The study of a resolved scenario."""
        return cls(resolved.network, dict(resolved.nodes), model, outputs)


class Worker:
    """Compiles a study once and evaluates chunks of draws."""

    def __init__(self, study: Study) -> None:
        from supply.optimizer.compiled import Compiled

        self.study = study
        self.compiled: Compiled = Compiled(study.network)
        self._touched: set[str] = set()
        self._bind()
        self.names = self.extractor.names if study.outputs is None else study.outputs
        self._pick = None if study.outputs is None else _positions(self.extractor.names, study.outputs)

    def _bind(self) -> None:
        """Find positions in the compiled programme and its nominal optimum; again after every new compile."""
        self.compiled.solve(tidy=False)
        self._engine = self.compiled.engine
        self._engine.whole = not len(self._engine.matrix.integer)  # a draw moves most numbers, and restores the basis
        self.extractor = Extractor(self.compiled, self.study.model)
        self.nominal = Reading.of(self.compiled)
        self._nominal_cost = self._engine.cost.copy()
        self._entry_rows = self._engine.matrix.index
        self._entry_columns = self._engine.column_of_entry

    def evaluate(self, chunk: Chunk) -> ChunkResult:
        """Outputs of every draw of a chunk."""
        arrays = self._arrays(chunk)
        size = chunk.size or next((len(a) for a in [*chunk.ranks.values(), *chunk.replaced.values()]), 1)
        values = np.full((size, len(self.names)), np.nan)
        control = np.full(size, np.nan)
        failed: dict[int, str] = {}
        for k in range(size):
            changes = {path: a[k if len(a) > 1 else 0] for path, a in arrays.items()}
            problem = self._try(changes)
            if problem:
                failed[chunk.first + k] = problem
                continue
            control[k] = self._predicted
            read = self.extractor.read(Reading.of(self.compiled))
            values[k] = read if self._pick is None else self._pick @ read
        return ChunkResult(chunk.index, chunk.first, values, control, failed)

    def _arrays(self, chunk: Chunk) -> dict[str, Array]:
        drawn = set(chunk.ranks)
        draw = Draw(chunk.ranks, chunk.replaced)
        moved = {
            path
            for path, node in self.study.nodes.items()
            if path in chunk.replaced or drawn & node.drivers() or _refers(node, chunk.replaced)
        }
        out = {}
        for path in sorted(moved):
            held = chunk.replaced.get(path)
            array = np.atleast_2d(held) if held is not None else self.study.nodes[path].at(draw)
            out[network_path(path)] = array
        return out

    def _set(self, changes: dict[str, Array]) -> None:
        """New numbers; what the draw before had changed and this one does not goes back to its nominal value."""
        back = {p: self.study.network.values[p] for p in self._touched - set(changes)}
        self.compiled.update({**back, **changes})
        self._touched = set(changes)
        if self.compiled.engine is not self._engine:  # a lead time or life moved: the programme was compiled anew
            self._bind()

    def _try(self, changes: dict[str, Array]) -> str:
        """Set the numbers of a draw and solve; returns what went wrong, empty where nothing did."""
        from supply.optimizer.errors import SolveError

        try:
            self._set(changes)
        except SolveError as exc:  # the case that was compiled anew has no optimum
            return str(exc).splitlines()[0]
        self._predicted = self.lagrangian()
        return self._solve()

    def _solve(self) -> str:
        from supply.optimizer.engine import SIMPLEX_ROWS
        from supply.optimizer.errors import SolveError

        engine = self.compiled.engine
        if len(engine.matrix.integer):
            try:
                self.compiled.solve(tidy=False)
            except SolveError as exc:
                return str(exc).splitlines()[0]
            return ""
        if self.compiled.rows > SIMPLEX_ROWS:  # wide draws: interior point from nothing beats a far basis threefold
            status = engine.run(warm=False)
        else:
            engine.restore_basis()
            status = engine.run(far=not np.array_equal(engine.cost, self._nominal_cost))
        return "" if status.name == "kOptimal" else f"the optimum does not exist ({status.name})"

    def lagrangian(self) -> float:
        """c x0 + y0 (b - A x0) of the current numbers at the nominal plan x0 and prices y0: first order."""
        engine, x, y = self.compiled.engine, self.nominal.x, self.nominal.y
        product = engine.data * y[self._entry_rows] * x[self._entry_columns]
        return float(engine.cost @ x + y @ engine.rhs - product.sum())


def _refers(node: Node, replaced: Mapping[str, Array]) -> bool:
    if not replaced:
        return False
    inner = [getattr(node, "part", None), *getattr(node, "parts", ())]
    if getattr(node, "path", None) in replaced:
        return True
    return any(_refers(part, replaced) for part in inner if part is not None)


def _positions(names: list[str], wanted: list[str]) -> Array:
    """Matrix that turns the full vector into the wanted outputs, sums over subjects and periods included."""
    from scenarios.draw_outputs import selection

    return selection(names, wanted)


class DrawEvaluator(Protocol):
    """Evaluates chunks; results may come in any order and carry their number."""

    def __enter__(self) -> DrawEvaluator: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def map(self, chunks: Iterable[Chunk]) -> Iterator[ChunkResult]:
        """Results of the chunks."""
        ...


class InProcess:
    """All draws in this process."""

    def __init__(self, study: Study, worker: Worker | None = None) -> None:
        self.worker = worker or Worker(study)

    def __enter__(self) -> InProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def map(self, chunks: Iterable[Chunk]) -> Iterator[ChunkResult]:
        """Results in the order of the chunks."""
        return map(self.worker.evaluate, chunks)


_WORKER: Worker | None = None


def _start(study: Study) -> None:
    global _WORKER
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    _WORKER = Worker(study)


def _end_with(parent: int) -> None:
    """End this worker when the process that started it was killed: nobody else would."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _evaluate(chunk: Chunk) -> ChunkResult:
    assert _WORKER is not None
    return _WORKER.evaluate(chunk)


class Processes:
    """Draws in several processes; at most two chunks a worker are under way, so that memory stays bounded."""

    def __init__(self, study: Study, workers: int) -> None:
        self.study = study
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Processes:
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self.workers, context, initializer=_start, initargs=(self.study,))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=error is None, cancel_futures=True)

    def map(self, chunks: Iterable[Chunk]) -> Iterator[ChunkResult]:
        """Results as they come."""
        assert self._pool is not None, "use `with Processes(...) as evaluator`"
        waiting = set()
        for chunk in chunks:
            waiting.add(self._pool.submit(_evaluate, chunk))
            if len(waiting) >= 2 * self.workers:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
