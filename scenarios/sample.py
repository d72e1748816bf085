"""`sample`: the distribution of every output over draws of the uncertain inputs, stored so that a killed run resumes.

Chunks of draws are written one by one, each whole or not at all, below `.part-<run>`; when all are there the folder
is renamed. A second call with the same content reads what is there and computes only what is missing.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.evaluators import Chunk, ChunkResult, DrawEvaluator, InProcess, Processes, Worker
from scenarios.load import Scenario, load_scenario
from scenarios.nodes import Array
from scenarios.run_store import (
    RunFolderError,
    check_complete,
    file_digest,
    find_complete,
    hold,
    put_in_place,
    read_table,
    write_manifest,
    write_table,
)
from scenarios.runner import run_hash
from scenarios.sampling import Factor, factors, ranks_by_driver
from scenarios.study import prepare
from supply.files import release, sweep, sync

if TYPE_CHECKING:
    import pandas as pd

    from scenarios.resolve import Resolved

__all__ = ["Sample", "sample"]

CHUNK = 128
#: How often killed workers are replaced before a sample gives up (it can still be resumed).
RESTARTS = 3
#: Numbers held in memory at most (outputs and ranks of all draws): 400 MB.
MOST_NUMBERS = 50_000_000
Progress = Callable[[str], None]


@dataclass
class Sample:
    """Draws of a scenario: `values` rows are draws, columns `names`; `ranks` the draw of each driver."""

    scenario: str
    hash: str
    names: list[str]
    values: Array
    ranks: dict[str, Array]
    control: Array
    failed: dict[int, str] = field(default_factory=dict)
    control_mean: float | None = None
    control_error: float = 0.0
    folder: Path | None = None

    @property
    def draws(self) -> int:
        """Number of draws, failed ones included."""
        return len(self.values)

    def column(self, name: str) -> Array:
        """Values of an output over the draws that have an optimum; names as in `outputs`, sums included."""
        from scenarios.draw_outputs import selection

        if name in self.names:
            found = self.values[:, self.names.index(name)]
        else:
            found = self.values @ selection(self.names, [name])[0]
        return np.asarray(found[~np.isnan(found)])

    def json(self, outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Mean, sd, quantiles and Monte Carlo error of outputs, and how often each resource binds hardest by period."""
        chosen = list(outputs) if outputs is not None else self.names
        return {
            "scenario": self.scenario,
            "hash": self.hash,
            "draws": self.draws,
            "failed": len(self.failed),
            "outputs": {name: self.summary(name) for name in chosen},
            "binding_share": self.binding_share(),
        }

    def summary(self, name: str) -> dict[str, float]:
        """mean, sd, q05, q50, q95, mc_error of one output; with the control variate where there is one.

        mc_error is the standard error of the mean of independent draws, sd / sqrt(n): an upper bound for stratified
        ones.
        """
        values = self.column(name)
        if not len(values):
            return dict.fromkeys(("mean", "sd", "q05", "q50", "q95", "mc_error"), float("nan"))
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        low, middle, high = (float(q) for q in np.quantile(values, [0.05, 0.5, 0.95]))
        out = {"mean": float(values.mean()), "sd": spread, "q05": low, "q50": middle, "q95": high}
        out["mc_error"] = spread / float(np.sqrt(len(values)))
        return out | self._controlled(values)

    def _controlled(self, values: Array) -> dict[str, float]:
        if self.control_mean is None or len(values) != self.draws or self.draws < 8:
            return {}
        control = self.control - self.control.mean()
        power = float(control @ control)
        slope = float(control @ values) / power if power > 0 else 0.0
        rest = values - values.mean() - slope * control
        error = float(np.sqrt(rest.var(ddof=2) / self.draws + (slope * self.control_error) ** 2))
        return {
            "mean_controlled": float(values.mean() + slope * (self.control_mean - self.control.mean())),
            "mc_error_controlled": error,
        }

    def binding_share(self) -> dict[str, dict[str, float]]:
        """period -> resource -> share of draws in which its rent is the largest (and positive)."""
        rents: dict[str, list[tuple[str, int]]] = {}
        for k, name in enumerate(self.names):
            if name.startswith("rent:"):
                resource, period = name[5:].split("@")
                rents.setdefault(period, []).append((resource, k))
        good = ~np.isnan(self.values).any(axis=1) if len(self.values) else np.zeros(0, dtype=bool)
        out: dict[str, dict[str, float]] = {}
        for period, entries in rents.items():
            table = self.values[good][:, [k for _, k in entries]]
            if not len(table):
                continue
            winner = np.argmax(table, axis=1)
            positive = table[np.arange(len(table)), winner] > 0
            shares = np.bincount(winner[positive], minlength=len(entries)) / len(table)
            out[period] = {r: float(s) for (r, _), s in zip(entries, shares, strict=True) if s > 0}
        return out

    def convergence(self, name: str, steps: int = 8) -> list[dict[str, float]]:
        """How the mean and its error settle: draws, mean, error, at growing numbers of draws."""
        values = self.column(name)
        sizes = sorted({int(n) for n in np.geomspace(min(16, len(values)), len(values), steps)})
        return [
            {"draws": n, "mean": float(values[:n].mean()), "mc_error": float(values[:n].std(ddof=1) / np.sqrt(n))}
            for n in sizes
            if n > 1
        ]

    def draws_needed(self, name: str, relative_error: float = 0.01) -> int:
        """Independent draws that bring the standard error of the mean below a share of the mean."""
        values = self.column(name)
        return int(np.ceil((values.std(ddof=1) / (relative_error * max(abs(values.mean()), 1e-300))) ** 2))

    @property
    def results(self) -> pd.DataFrame:
        """The tidy table of `results`, one block a draw."""
        import pandas as pd

        from scenarios.outputs import parse_output
        from scenarios.results import results_frame

        parsed = [parse_output(n) for n in self.names]
        keys = [{"quantity": p.quantity, "subject": p.subject, "period": p.period} for p in parsed]
        frame = pd.concat(
            [pd.DataFrame(keys).assign(value=row, draw=k) for k, row in enumerate(self.values)], ignore_index=True
        )
        draw = frame.pop("draw")
        rows: list[dict[str, Any]] = [{str(k): v for k, v in r.items()} for r in frame.to_dict("records")]
        out = results_frame(rows, f"{self.scenario}-{self.hash[:12]}", self.scenario)
        return out.assign(draw=draw.to_numpy())

    def query(self, sql: str) -> pd.DataFrame:
        """Ask the draws in SQL; `draws` has one row a draw and one column an output or driver."""
        import duckdb

        with duckdb.connect() as connection:
            connection.register("draws", _frame(self.names, self.values, self.ranks, self.control, 0))
            frame: pd.DataFrame = connection.execute(sql).df()
        return frame


def sample(
    scenario: str | Path | Scenario,
    draws: int = 1000,
    sets: Sequence[tuple[str, Any]] = (),
    *,
    seed: int = 0,
    method: str = "lhs",
    workers: int = 1,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    out: str | Path | None = None,
    control: int = 0,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Sample:
    """Draw the uncertain inputs of a scenario and solve the whole chain for each.

    `control` > 0 adds a control variate: that many further input draws, without a solve, give the mean of the
    first-order prediction from the nominal prices. The same seed gives the same numbers for any `workers`, and for any
    `cluster` (a Dask scheduler as `tcp://HOST:PORT`, or `local`; see `scenarios.cluster`) with the same libraries.

    Raises:
        ScenarioError: wrong scenario, unknown input or output. InfeasibleError: no optimum in the nominal case.
    """
    if draws < 1:
        raise ValueError(f"draws = {draws}: give at least 1")
    if cluster is not None:
        from scenarios.cluster import parse_address

        parse_address(cluster)
    loaded = scenario if isinstance(scenario, Scenario) else load_scenario(scenario, sets)
    options = {"draws": draws, "seed": seed, "method": method, "inputs": inputs, "outputs": outputs, "control": control}
    digest = run_hash(loaded, {"sample": options, "chunk": CHUNK})
    name = f"{loaded.name}-draws-{digest[:12]}"
    if out is not None and (done := find_complete(Path(out), name)) is not None:
        sweep(done.parent, f".part-{name}.lock")  # of a process killed at its last step
        return open_sample(done)
    resolved, _, worker = prepare(loaded, outputs=outputs)
    chosen = factors(resolved, inputs)
    if draws * (len(worker.names) + len(chosen)) > MOST_NUMBERS:
        most = MOST_NUMBERS // (len(worker.names) + len(chosen))
        raise ValueError(f"{draws} draws of {len(worker.names)} outputs do not fit: name fewer outputs, or draw {most}")
    ranks = ranks_by_driver(resolved, chosen, draws, seed, method)
    store = None
    if out is not None:
        store = _Store(Path(out), name, worker.names, sorted(ranks), progress)
        if (done := find_complete(Path(out), name)) is not None:  # another process has just finished it
            store.close()
            return open_sample(done)
    try:
        values, controls = np.full((draws, len(worker.names)), np.nan), np.full(draws, np.nan)
        failed: dict[int, str] = {}
        todo = _to_do(ranks, draws, store, (values, controls, failed))
        if todo:
            _evaluate(worker, workers, todo, store, (values, controls, failed), progress, draws, cluster)
        mean, error = _control_mean(worker, resolved, chosen, seed, control) if control else (None, 0.0)
        result = Sample(loaded.name, digest, list(worker.names), values, ranks, controls, failed, mean, error)
        if store is not None:
            result.folder = store.finish(result, options)
        return result
    finally:
        if store is not None:
            store.close()


def _chunks(ranks: dict[str, Array], draws: int) -> Iterator[Chunk]:
    for index, first in enumerate(range(0, draws, CHUNK)):
        last = min(draws, first + CHUNK)
        yield Chunk(index, first, {d: r[first:last] for d, r in ranks.items()}, size=last - first)


def _to_do(
    ranks: dict[str, Array], draws: int, store: _Store | None, into: tuple[Array, Array, dict[int, str]]
) -> list[Chunk]:
    """Chunks that are not stored yet; those that are go into the arrays."""
    todo = []
    for chunk in _chunks(ranks, draws):
        held = store.load(chunk) if store else None
        if held is None:
            todo.append(chunk)
        else:
            _place(held, *into)
    return todo


def _evaluate(
    worker: Worker,
    workers: int,
    todo: list[Chunk],
    store: _Store | None,
    into: tuple[Array, Array, dict[int, str]],
    progress: Progress | None,
    draws: int,
    cluster: str | None = None,
) -> None:
    started, done, whole = time.monotonic(), 0, sum(c.size for c in todo)
    by_index = {chunk.index: chunk for chunk in todo}
    for attempt in range(RESTARTS + 1):
        try:
            with _evaluator(worker, workers, len(by_index), cluster) as evaluator:
                for result in evaluator.map(list(by_index.values())):
                    _place(result, *into)
                    chunk = by_index.pop(result.index)
                    if store is not None:
                        store.save(result, chunk)
                    done += len(result.values)
                    if progress is not None:
                        left = (time.monotonic() - started) / done * (whole - done)
                        progress(f"{draws - whole + done} of {draws} draws, about {left:.0f} s left")
            return
        except BrokenProcessPool:  # a worker was killed: its chunks are computed again by new workers
            if attempt == RESTARTS:
                raise


def _evaluator(worker: Worker, workers: int, chunks: int, cluster: str | None) -> DrawEvaluator:
    if cluster is not None:
        from scenarios.cluster import Cluster

        return Cluster(worker.study, cluster, min(workers, chunks))
    if workers > 1 and chunks > 1:
        return Processes(worker.study, min(workers, chunks))
    return InProcess(worker.study, worker)


def _place(result: ChunkResult, values: Array, controls: Array, failed: dict[int, str]) -> None:
    rows = slice(result.first, result.first + len(result.values))
    values[rows], controls[rows] = result.values, result.control
    failed.update(result.failed)


def _control_mean(
    worker: Worker, resolved: Resolved, chosen: list[Factor], seed: int, draws: int
) -> tuple[float, float]:
    """Mean of the first-order prediction over further draws, and its standard error."""
    ranks = ranks_by_driver(resolved, chosen, draws, seed + 1_000_003, "lhs")
    arrays = worker._arrays(Chunk(0, 0, ranks, size=draws))
    predicted = np.empty(draws)
    for k in range(draws):
        worker._set({path: a[k if len(a) > 1 else 0] for path, a in arrays.items()})
        predicted[k] = worker.lagrangian()
    return float(predicted.mean()), float(predicted.std(ddof=1) / np.sqrt(draws))


def _frame(names: Sequence[str], values: Array, ranks: dict[str, Array], control: Array, first: int) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, Any] = {"draw": np.arange(first, first + len(values)), "control": control}
    columns |= {name: values[:, k] for k, name in enumerate(names)}
    columns |= {f"rank {driver}": ranks[driver] for driver in sorted(ranks)}
    return pd.DataFrame(columns)


class _Store:
    """The growing folder of one sample: a file a chunk, each renamed into place when it is whole.

    The name of a chunk's file ends in the digest of its content, so that one harmed between two calls is found.
    One process at a time writes it: a second waits for the first and then reads what it made.
    """

    def __init__(
        self, parent: Path, name: str, names: list[str], drivers: list[str], progress: Progress | None = None
    ) -> None:
        self.parent, self.name, self.names, self.drivers = parent, name, names, drivers
        say = progress or (lambda text: None)
        self._lock = parent / f".part-{name}.lock"
        self._held = hold(self._lock, lambda: say("another process makes this sample: waiting for it"))
        self._open = True
        self.part = parent / f".part-{name}"
        self.part.mkdir(parents=True, exist_ok=True)
        self._chunks: dict[int, Path] = {}
        for stale in self.part.glob("*.tmp"):
            stale.unlink()

    def save(self, result: ChunkResult, chunk: Chunk) -> None:
        """Write a chunk whole: to a temporary file, then renamed."""
        temporary = self.part / f"chunk-{result.index:06d}.{os.getpid()}.tmp"
        frame = _frame(self.names, result.values, dict(chunk.ranks), result.control, result.first)
        frame = frame.assign(failed=[result.failed.get(result.first + k, "") for k in range(len(result.values))])
        try:
            write_table(frame, temporary)
            sync(temporary)
            path = self.part / f"chunk-{result.index:06d}-{file_digest(temporary)[:16]}.parquet"
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        self._chunks[result.index] = path

    def load(self, chunk: Chunk) -> ChunkResult | None:
        """A chunk that an earlier call finished; a harmed one is removed and counts as missing."""
        for path in self.part.glob(f"chunk-{chunk.index:06d}-*.parquet"):
            frame = self._read(path, chunk)
            if frame is not None:
                self._chunks[chunk.index] = path
                failed = {int(d): str(f) for d, f in zip(frame["draw"], frame["failed"], strict=True) if f}
                values, control = frame[self.names].to_numpy(dtype=float), frame["control"].to_numpy(dtype=float)
                return ChunkResult(chunk.index, chunk.first, values, control, failed)
            path.unlink()
        return None

    def _read(self, path: Path, chunk: Chunk) -> pd.DataFrame | None:
        if path.stem.rpartition("-")[2] != file_digest(path)[:16]:
            return None
        try:
            frame = read_table(path)
        except RunFolderError:
            return None
        return frame if len(frame) == chunk.size and not set(self.names) - set(frame) else None

    def finish(self, result: Sample, options: dict[str, Any]) -> Path:
        """Write the manifest and rename the folder into place."""
        chunks = set(self._chunks.values())
        for path in set(self.part.iterdir()) - chunks:
            path.unlink()
        manifest = {
            "run": self.name,
            "scenario": result.scenario,
            "hash": result.hash,
            "options": options,
            "names": result.names,
            "drivers": self.drivers,
            "control_mean": result.control_mean,
            "control_error": result.control_error,
        }
        write_manifest(self.part, manifest, chunks)
        put_in_place(self.part, self.parent, self.name)
        return self.parent / self.name

    def close(self) -> None:
        """Let the next process in; a second call does nothing."""
        if not self._open:
            return
        self._open = False
        with contextlib.suppress(OSError):
            self.part.rmdir()  # only where nothing was written
        self._lock.unlink(missing_ok=True)
        release(self._held)


def open_sample(folder: str | Path) -> Sample:
    """Read a finished sample back.

    Raises:
        RunFolderError: when the folder is not whole.
    """
    place = Path(folder)
    manifest = check_complete(place)
    if "drivers" not in manifest:
        raise RunFolderError(f"{place} holds no draws: give the folder that `sample --out` made")
    frame = read_table([place / name for name in sorted(manifest["files"])]).sort_values("draw")
    names, drivers = manifest["names"], manifest["drivers"]
    failed = {int(d): str(f) for d, f in zip(frame["draw"], frame["failed"], strict=True) if f}
    return Sample(
        manifest["scenario"],
        manifest["hash"],
        names,
        frame[names].to_numpy(dtype=float),
        {d: frame[f"rank {d}"].to_numpy(dtype=float) for d in drivers},
        frame["control"].to_numpy(dtype=float),
        failed,
        manifest["control_mean"],
        manifest["control_error"],
        place,
    )
