"""Draws on a Dask cluster: the evaluator protocol over `dask.distributed`, with the numbers of a local run.

The study is one task of its own on the cluster, so a worker that joins late or takes over from a lost one gets it from
the scheduler. A process compiles it once and keeps it. A chunk whose worker is lost is run again by another; results
carry their number, so order and count of workers do not matter. Dask is an extra: `pip install wafer2token[cluster]`.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import platform
import threading
import zlib
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from scenarios.evaluators import Chunk, ChunkResult, Study, Worker
from scenarios.run_store import package_version

__all__ = ["Cluster", "ClusterError", "parse_address"]

#: How often a chunk is given to other workers before the run stops (what is finished is kept).
RETRIES = 5
#: Seconds to wait for the scheduler, and for its first worker.
PATIENCE_S = 30
#: Studies that one worker process keeps compiled.
_KEPT = 2
_LOGGERS = ("distributed.client", "distributed.utils", "distributed.comm.core", "distributed.core")
_LOCK = threading.Lock()
_WORKERS: dict[str, Worker] = {}


class ClusterError(ValueError):
    """The cluster cannot be reached or used; the message says what to do."""


def parse_address(text: str) -> str:
    """`local`, or the address of a scheduler.

    >>> parse_address("tcp://10.0.0.5:8786"), parse_address("local")
    ('tcp://10.0.0.5:8786', 'local')

    Raises:
        ClusterError: for anything else.
    """
    host = text.partition("://")[2]
    if text == "local" or (text.startswith(("tcp://", "tls://", "ucx://")) and host.rpartition(":")[2].isdigit()):
        return text
    raise ClusterError(f"cluster {text!r}: give `local`, or the scheduler as tcp://HOST:PORT")


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as exc:
        raise ClusterError("--cluster needs Dask: pip install 'wafer2token[cluster]'") from exc
    return distributed


def _signature() -> tuple[str, ...]:
    """What must be the same in every process for the same numbers bit for bit."""
    from importlib.metadata import version

    packages = ("numpy", "scipy", "highspy")
    return (f"wafer2token {package_version()}", platform.machine(), *(f"{p} {version(p)}" for p in packages))


def _hold(blob: bytes) -> bytes:
    """The study as a task: recomputed by the scheduler wherever it is lost."""
    return blob


def _evaluate(blob: bytes, digest: str, chunk: Chunk) -> ChunkResult:
    """Outputs of a chunk in a process of the cluster; one at a time, since a compiled programme holds state."""
    with _LOCK:
        worker = _WORKERS.get(digest)
        if worker is None:
            while len(_WORKERS) >= _KEPT:
                del _WORKERS[next(iter(_WORKERS))]
            worker = _WORKERS[digest] = Worker(pickle.loads(zlib.decompress(blob)))
        return worker.evaluate(chunk)


class Cluster:
    """Draws on a Dask cluster; at most two chunks a thread are under way, so that memory stays bounded.

    `address`: a scheduler (`tcp://HOST:PORT`), or `local` for `workers` processes on this machine.
    """

    def __init__(self, study: Study, address: str, workers: int = 2) -> None:
        self.address = parse_address(address)
        self.workers = workers
        self._blob = zlib.compress(pickle.dumps(study))
        self._digest = hashlib.sha256(self._blob).hexdigest()
        self._levels: dict[str, int] = {}
        self._client: Any = None
        self._own: Any = None

    def __enter__(self) -> Cluster:
        """Connect, wait for a worker, and refuse workers with another version of the program or its libraries."""
        distributed = _distributed()
        self._quiet()
        try:
            if self.address == "local":
                self._own = distributed.LocalCluster(
                    n_workers=max(1, self.workers),
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            self._client = distributed.Client(self._own or self.address, timeout=PATIENCE_S, set_as_default=False)
            self._client.wait_for_workers(1, timeout=PATIENCE_S)
        except (OSError, TimeoutError) as exc:
            self._close()
            raise ClusterError(f"cluster {self.address}: no scheduler with a worker answers ({exc})") from exc
        self._same_versions()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        for part in (self._client, self._own):
            if part is not None:
                part.close()
        self._client = self._own = None
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)

    def _quiet(self) -> None:
        """Dask logs what is handled here (lost connections) with tracebacks: only its critical messages pass."""
        for name in _LOGGERS:
            self._levels[name] = logging.getLogger(name).level
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def _same_versions(self) -> None:
        try:
            found = self._client.run(_signature)
        except ImportError as exc:
            self._close()
            raise ClusterError(f"the workers cannot load the program ({exc}): install it on every machine") from exc
        mine = _signature()
        for place, theirs in found.items():
            if tuple(theirs) != mine:
                off = ", ".join(f"{t} (here {m})" for m, t in zip(mine, theirs, strict=True) if m != t)
                self._close()
                raise ClusterError(f"worker {place} has {off}: install the same versions on every machine")

    def map(self, chunks: Iterable[Chunk]) -> Iterator[ChunkResult]:
        """Results as they come; a chunk whose worker is lost is run again.

        Raises:
            ClusterError: when the scheduler is gone, or a chunk was lost more often than it is retried.
        """
        client = self._client
        assert client is not None, "use `with Cluster(...) as evaluator`"
        try:
            yield from self._map(client, iter(chunks))
        except OSError as exc:  # what Dask raises when a connection is gone for good
            raise self._gone() from exc

    def _map(self, client: Any, left: Iterator[Chunk]) -> Iterator[ChunkResult]:
        study = client.submit(_hold, self._blob, key=f"study-{self._digest}", pure=True)
        pending = _distributed().as_completed([], loop=client.loop, raise_errors=False)
        waiting: dict[Any, Chunk] = {}
        lost: dict[int, int] = {}
        try:
            while True:
                while len(waiting) < self._room() and (chunk := next(left, None)) is not None:
                    self._send(study, chunk, waiting, pending)
                if not waiting:
                    return
                future = next(pending)
                chunk = waiting.pop(future)
                if future.status == "finished":
                    result: ChunkResult = future.result()
                    future.release()
                    yield result
                    continue
                self._lost(future, chunk, lost)
                self._send(study, chunk, waiting, pending)
        finally:
            if waiting and client.status == "running":
                client.cancel(list(waiting), force=True)

    def _gone(self) -> ClusterError:
        return ClusterError(f"cluster {self.address}: the scheduler is gone; the same command goes on where it was")

    def _room(self) -> int:
        """Chunks under way: two for each thread that is there now."""
        threads = sum(self._client.nthreads().values()) if self._client.status == "running" else 0
        return 2 * max(1, threads)

    def _send(self, study: Any, chunk: Chunk, waiting: dict[Any, Chunk], pending: Any) -> None:
        future = self._client.submit(_evaluate, study, self._digest, chunk, pure=False)
        waiting[future] = chunk
        pending.add(future)

    def _lost(self, future: Any, chunk: Chunk, lost: dict[int, int]) -> None:
        """Count a loss; an exception of the study itself is raised as it is."""
        distributed = _distributed()
        if self._client.status != "running":
            raise self._gone()
        error = future.exception() if future.status == "error" else None
        if isinstance(error, RuntimeError) and "deserialization" in str(error):
            raise ClusterError("the scheduler cannot load the program: install it there as well") from error
        if error is not None and not isinstance(error, distributed.KilledWorker):
            raise error
        lost[chunk.index] = lost.get(chunk.index, 0) + 1
        if lost[chunk.index] > RETRIES:
            raise ClusterError(
                f"chunk {chunk.index} lost its worker {lost[chunk.index]} times: look at the workers' memory, then run "
                "the same command again; what is finished is kept"
            ) from error
