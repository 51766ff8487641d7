"""Processes that run seed after seed. One that crashes or hangs costs its seed, which is reported, and nothing else."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from broker_engine.simulator.run import RunReport, Violation, run_seed

SEEDS_PER_PROCESS = 300
"""Then it makes room for a new one: whatever a process piles up stays small."""
_SEED_WITHIN_S = 600.0
_LINES_MAX = 400
_CRASHED = "the simulator itself"

RunSeed = Callable[[int], RunReport]


def run_guarded(seed: int, run: RunSeed = run_seed) -> RunReport:
    """With the processor time that it took; an error of the simulator's own is a finding like others."""
    began_s = time.process_time()
    try:
        report = run(seed)
    except Exception:
        report = _crashed(seed, traceback.format_exc())
    report.cpu_s = time.process_time() - began_s
    report.lines = [] if report.is_ok else report.lines[-_LINES_MAX:]
    return report


def reports(seeds: Iterable[int], job_count: int, run: RunSeed = run_seed) -> Iterator[RunReport]:
    """In the order in which they end."""
    if job_count <= 1:
        yield from (run_guarded(seed, run) for seed in seeds)
        return
    yield from _Workers(run).reports(iter(seeds), job_count)


def _crashed(seed: int, why: str) -> RunReport:
    return RunReport(seed, violations=[Violation(_CRASHED, why)])


def _work(connection: Connection, run: RunSeed) -> None:
    while True:
        try:
            seed = connection.recv()
        except EOFError:
            return
        connection.send(run_guarded(seed, run))


@dataclass(slots=True, eq=False)
class _Worker:
    connection: Connection
    process: multiprocessing.process.BaseProcess
    seed: int = -1
    seed_count: int = 0
    since_s: float = 0.0

    def give(self, seed: int) -> None:
        self.seed, self.since_s = seed, time.monotonic()
        self.seed_count += 1
        self.connection.send(seed)

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join()


class _Workers:
    def __init__(self, run: RunSeed) -> None:
        self._run = run
        self._context = multiprocessing.get_context("spawn")
        self._busy: dict[Connection, _Worker] = {}

    def reports(self, seeds: Iterator[int], job_count: int) -> Iterator[RunReport]:
        try:
            for seed in (next(seeds, None) for _ in range(job_count)):
                if seed is not None:
                    self._begin(self._new(), seed)
            while self._busy:
                for worker, report in self._ended():
                    yield report
                    self._go_on(worker, next(seeds, None))
        finally:
            for worker in self._busy.values():
                worker.end()

    def _ended(self) -> Iterator[tuple[_Worker, RunReport]]:
        readable = wait(list(self._busy), timeout=1.0)
        for connection, worker in list(self._busy.items()):
            if connection in readable:
                yield worker, self._take(worker)
            elif time.monotonic() - worker.since_s > _SEED_WITHIN_S:
                worker.process.kill()  # its end of the pipe closes, which is read as a crash

    def _take(self, worker: _Worker) -> RunReport:
        del self._busy[worker.connection]
        try:
            report: RunReport = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join()
            worker.seed_count = SEEDS_PER_PROCESS
            return _crashed(worker.seed, f"the process ended, exit code {worker.process.exitcode}")
        return report

    def _go_on(self, worker: _Worker, seed: int | None) -> None:
        if seed is None or worker.seed_count >= SEEDS_PER_PROCESS:
            worker.end()
            worker = self._new() if seed is not None else worker
        if seed is not None:
            self._begin(worker, seed)

    def _begin(self, worker: _Worker, seed: int) -> None:
        self._busy[worker.connection] = worker
        worker.give(seed)

    def _new(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._run), daemon=True)
        process.start()
        theirs.close()
        return _Worker(ours, process)
