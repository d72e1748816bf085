"""Draws on a Dask scheduler with two worker processes on loopback: the numbers of a local run, whatever is lost."""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenarios import cluster as cluster_module
from scenarios import sample as sample_module
from scenarios.cluster import Cluster, ClusterError
from scenarios.load import Scenario, load_scenario
from scenarios.sample import Sample, sample

pytest.importorskip("distributed")
pytestmark = pytest.mark.cluster

DRAWS, CHUNK = 320, 8
SCENARIO = """
title: Two limits in a row
horizon: {start: 2026-Q1, periods: 6, step: quarter}
objective: units
materials: {die: {unit: die}, accelerator: {unit: accelerator}}
resources:
  fab:   {stage: fab, capacity: {distribution: uniform, low: 8000, high: 16000}}
  cowos: {stage: packaging, capacity: {distribution: triangular, low: 6000, mode: 10000, high: 15000}}
processes:
  make_die:
    {stage: fab, output: {die: 1}, uses: {fab: 1}, yield: {distribution: uniform, low: 0.6, high: 0.9},
     lead_time: 13 week}
  package:
    {stage: packaging, input: {die: 1}, output: {accelerator: 1}, uses: {cowos: 1}, yield: 0.98, lead_time: 0 week}
demand: {accelerator: {price: 1 USD/accelerator}}
"""


@dataclass
class Ring:
    """A scheduler and its workers, as processes."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


def _process(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *words]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with (folder / f"{words[0]}-{time.monotonic_ns()}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment)


@contextlib.contextmanager
def _ring(tmp_path: Path) -> Iterator[Ring]:
    contact = tmp_path / "scheduler.json"
    flags = ("--no-dashboard", "--host", "127.0.0.1")
    started = [_process(tmp_path, "scheduler", "--port", "0", "--scheduler-file", str(contact), *flags)]
    try:
        for _ in range(2):
            started.append(
                _process(tmp_path, "worker", "--scheduler-file", str(contact), "--nthreads", "1", "--no-nanny", *flags)
            )
        deadline = time.monotonic() + 30
        while not (contact.is_file() and contact.read_text()):
            assert time.monotonic() < deadline and started[0].poll() is None, "the scheduler does not start"
            time.sleep(0.05)
        yield Ring(json.loads(contact.read_text())["address"], started[0], started[1:])
    finally:
        for process in started:
            process.kill()
            process.wait(10)


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Ring]:
    """One to break."""
    with _ring(tmp_path) as started:
        yield started


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ring]:
    """One that stays whole, shared by the tests that break nothing."""
    with _ring(tmp_path_factory.mktemp("whole")) as started:
        yield started


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    place = tmp_path_factory.mktemp("scenario") / "two_limits.yaml"
    place.write_text(SCENARIO)
    return load_scenario(place)


@pytest.fixture(scope="module")
def local(scenario: Scenario) -> Sample:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_module, "CHUNK", CHUNK)
        return sample(scenario, DRAWS, seed=3)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_module, "CHUNK", CHUNK)


def _same(first: Sample, second: Sample) -> bool:
    return (
        first.hash == second.hash
        and first.names == second.names
        and first.failed == second.failed
        and first.values.tobytes() == second.values.tobytes()
        and first.control.tobytes() == second.control.tobytes()
    )


def test_the_local_sample_spreads(local: Sample) -> None:
    assert local.column("finished:accelerator@2026").std() > 100


def test_two_workers_give_the_bits_of_a_local_run_and_both_work(whole: Ring, scenario: Scenario, local: Sample) -> None:
    assert _same(sample(scenario, DRAWS, seed=3, cluster=whole.address), local)
    import distributed

    with distributed.Client(whole.address, set_as_default=False) as client:
        kept: dict[str, int] = client.run(lambda: len(cluster_module._WORKERS))
    assert len(kept) == 2 and min(kept.values()) >= 1


def test_a_worker_killed_midway_changes_nothing(ring: Ring, scenario: Scenario, local: Sample) -> None:
    seen: list[str] = []

    def kill_one(text: str) -> None:
        seen.append(text)
        if len(seen) == 2:
            ring.workers[0].send_signal(signal.SIGKILL)

    found = sample(scenario, DRAWS, seed=3, cluster=ring.address, progress=kill_one)
    assert len(seen) == DRAWS // CHUNK
    assert ring.workers[0].wait(10) == -signal.SIGKILL
    assert _same(found, local)


def test_a_lost_scheduler_is_said_and_the_same_command_goes_on(
    ring: Ring, scenario: Scenario, local: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE_S", 4)  # how long the client tries to come back
    seen: list[str] = []

    def kill_scheduler(text: str) -> None:
        seen.append(text)
        if len(seen) == 3:
            ring.scheduler.kill()

    with pytest.raises(ClusterError, match="scheduler is gone"):
        sample(scenario, DRAWS, seed=3, cluster=ring.address, out=tmp_path / "runs", progress=kill_scheduler)
    kept = len(list((tmp_path / "runs").rglob("chunk-*.parquet")))
    assert 3 <= kept < DRAWS // CHUNK
    again: list[str] = []
    found = sample(scenario, DRAWS, seed=3, out=tmp_path / "runs", progress=again.append)
    assert len(again) == DRAWS // CHUNK - kept
    assert _same(found, local)


def test_another_version_on_a_worker_is_refused(
    whole: Ring, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "package_version", lambda: "0.0.0")
    with pytest.raises(ClusterError, match=r"wafer2token .*here wafer2token 0\.0\.0.*install the same versions"):
        sample(scenario, 8, cluster=whole.address)


def test_workers_without_the_program_are_refused(
    whole: Ring, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> tuple[str, ...]:
        raise ModuleNotFoundError("No module named 'scenarios'")

    monkeypatch.setattr(cluster_module, "_signature", missing)
    with pytest.raises(ClusterError, match="install it on every machine"):
        sample(scenario, 8, cluster=whole.address)


def test_no_scheduler_is_said(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE_S", 0.5)
    with pytest.raises(ClusterError, match="no scheduler with a worker answers"):
        sample(scenario, 8, cluster="tcp://127.0.0.1:9")


@pytest.mark.parametrize("text", ["10.0.0.1:8786", "tcp://host", "http://host:80", ""])
def test_a_wrong_address_is_refused_before_any_work(text: str) -> None:
    with pytest.raises(ClusterError, match="tcp://HOST:PORT"):
        sample("no such scenario", 8, cluster=text)


def test_without_dask_the_extra_is_named(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "distributed":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ClusterError, match=r"wafer2token\[cluster\]"):
        sample(scenario, 8, cluster="tcp://127.0.0.1:8786")


def test_a_broken_study_is_raised_as_it_is(whole: Ring, scenario: Scenario) -> None:
    from scenarios.evaluators import Chunk
    from scenarios.study import prepare

    _, _, worker = prepare(scenario)
    wrong = Chunk(0, 0, replaced={"resources.fab.capacity": np.zeros((1, 99))}, size=1)
    with Cluster(worker.study, whole.address) as evaluator, pytest.raises(ValueError, match=r"99|shape|length"):
        list(evaluator.map([wrong]))
