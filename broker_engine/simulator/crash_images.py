"""Every crash of one workload: `python -m broker_engine.simulator.crash_images [--seed N] [--operations N]`.

Records the file operations of a workload, then goes through them: after each one, and at each of the last bytes of each
write, builds disks as a crash could have left them, boots the log on each and checks it (image_check).
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from broker_engine.log.config import LogConfig
from broker_engine.log.files import Files, MemoryFiles
from broker_engine.simulator.expectation import Expectation
from broker_engine.simulator.image_check import Boot, ImageChecker, Violation
from broker_engine.simulator.recording import Appended, Operation, RecordingFiles, Renamed, Replay
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.sim_inode import Inode, Write
from broker_engine.simulator.survival import KeepAll, KeepNames, KeepRandom, KeepSynced, Survival, Torn
from broker_engine.simulator.workload import COMPACTING, DELETING, Workload, open_log

TORN_BYTES_MAX = 4096
"""Of each write, so many of its last bytes are places to crash at."""
NAMED_CUTS_MAX = 48
"""Of a file that got its name before its content was safe, so many contents are tried."""
_PROGRESS_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    seed: int = 0
    config: LogConfig = DELETING
    operation_count: int = 1000
    """How many recorded operations are gone through, at least."""
    samples_per_operation: int = 2
    """Random survivals after each operation, beside the three extreme ones."""
    cuts_per_write: int = TORN_BYTES_MAX
    """Bytes of each write at which it is torn: all of the last ones, or so many of them by chance."""
    is_reordering_names: bool = False
    boot: Boot = open_log


@dataclass(frozen=True, slots=True)
class Finding:
    """Where a violation showed first; the same one mostly shows again after the next operations."""

    violation: Violation
    number: int
    operation: str
    survival: str

    def __str__(self) -> str:
        where = f"operation {self.number} ({self.operation}), {self.survival}"
        return f"invariant {self.violation.invariant}: {self.violation.text}; {where}"


@dataclass(slots=True)
class Outcome:
    operation_count: int = 0
    write_count: int = 0
    image_count: int = 0
    violation_count: int = 0
    findings: dict[Violation, Finding] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.image_count} images of {self.operation_count} operations ({self.write_count} writes) booted, "
            f"violations {self.violation_count}"
        )


class _Choice(NamedTuple):
    survival: Survival | None
    """None: the process dies, and what was pending still is."""
    name: str
    is_thorough: bool


Progress = Callable[[Outcome, int], None]


class CrashImages:
    def __init__(
        self,
        plan: Plan,
        *,
        workload: Callable[..., Workload] = Workload,
        recording: Callable[[Files], RecordingFiles] = RecordingFiles,
    ) -> None:
        """`workload` and `recording` are what is under test: tests give ones with a bug."""
        self._plan = plan
        self._random = Random(plan.seed)  # noqa: S311 (a choice of images, nothing secret)
        files = recording(MemoryFiles())
        self.operations = files.operations
        self._workload = workload(files, plan.config, seed=plan.seed, operation_count=lambda: len(files.operations))
        while len(files.operations) < plan.operation_count:
            self._workload.run(step_count=10)
        self._checker = ImageChecker(plan.config, self._workload.clock, plan.boot)
        self.outcome = Outcome()

    def run(self, progress: Progress = lambda outcome, operation_count: None, *, findings_max: int = 20) -> Outcome:
        replay = Replay(SimDisk(self._plan.seed))
        timeline = self._workload.timeline.rewound()
        for number, operation in enumerate(self.operations):
            expected = timeline.advance_to(number)
            replay.perform(operation)
            for choice in self._during(replay, operation):
                self._try(replay.disk, number, expected, choice)
            expected = timeline.advance_to(number + 1)
            for choice in self._after():
                self._try(replay.disk, number, expected, choice)
            self.outcome.operation_count += 1
            self.outcome.write_count += isinstance(operation, Appended)
            progress(self.outcome, len(self.operations))
            if len(self.outcome.findings) >= findings_max:
                break
        return self.outcome

    def _during(self, replay: Replay, operation: Operation) -> Iterator[_Choice]:
        """The operation was carried out in part; or in full while the content that it gives a name to was not."""
        if isinstance(operation, Appended):
            inode, is_named = replay.handle_of(operation).inode, False
        elif isinstance(operation, Renamed):
            node = replay.disk.names.find(operation.new)
            if not isinstance(node, Inode):
                return
            inode, is_named = node, True
        else:
            return
        for cut in self._cuts(inode, is_named=is_named):
            is_others_kept = is_named or cut % 2 == 0
            others = KeepAll() if is_others_kept else self._keep_random()
            name = f"torn at byte {cut}, others {_name(others)}"
            yield _Choice(Torn(others, inode, cut), name, is_thorough=is_named)

    def _cuts(self, inode: Inode, *, is_named: bool) -> list[int]:
        last = inode.pending[-1] if inode.pending else None
        if not isinstance(last, Write):
            return []
        size_bytes = len(last.data)
        cuts = range(0 if is_named else max(1, size_bytes - TORN_BYTES_MAX), size_bytes)
        cuts_max = min(self._plan.cuts_per_write, NAMED_CUTS_MAX) if is_named else self._plan.cuts_per_write
        return list(cuts) if len(cuts) <= cuts_max else sorted(self._random.sample(cuts, cuts_max))

    def _after(self) -> Iterator[_Choice]:
        yield _Choice(None, "process killed", is_thorough=True)
        extremes: list[Survival] = [KeepSynced(), KeepNames()]
        samples: list[Survival] = [self._keep_random() for _ in range(self._plan.samples_per_operation)]
        for survival in extremes + samples:
            yield _Choice(survival, _name(survival), is_thorough=True)

    def _keep_random(self) -> KeepRandom:
        return KeepRandom(self._random, is_reordering_names=self._plan.is_reordering_names)

    def _try(self, disk: SimDisk, number: int, expected: Expectation, choice: _Choice) -> None:
        image = disk.killed() if choice.survival is None else disk.image(choice.survival)
        violation = self._checker.check(image, expected, is_thorough=choice.is_thorough)
        self.outcome.image_count += 1
        if violation is not None:
            self.outcome.violation_count += 1
            finding = Finding(violation, number, _brief(self.operations[number]), choice.name)
            self.outcome.findings.setdefault(violation, finding)


def _name(survival: Survival) -> str:
    return {
        KeepAll: "all kept",
        KeepSynced: "synced kept",
        KeepNames: "names and synced kept",
        KeepRandom: "random survival",
    }[type(survival)]


def _brief(operation: Operation) -> str:
    parts = [f"{len(part)} bytes" if isinstance(part, bytes) else str(part) for part in operation]
    return f"{type(operation).__name__} {' '.join(parts)}"


class _Reporter:
    """A line every few seconds."""

    def __init__(self) -> None:
        self._told_at = time.monotonic()

    def __call__(self, outcome: Outcome, operation_count: int) -> None:
        if time.monotonic() - self._told_at >= _PROGRESS_S:
            self._told_at = time.monotonic()
            _print(f"  operation {outcome.operation_count} of {operation_count}: {outcome}")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="crash_images", description="Boot a log on every disk that a crash leaves.")
    parser.add_argument("--seed", type=int, default=0, help="of workload and choices; the same seed, the same run")
    parser.add_argument("--operations", type=int, default=1500, help="recorded file operations per workload")
    parser.add_argument("--samples", type=int, default=2, help="random survivals after each operation")
    parser.add_argument("--cuts", type=int, default=TORN_BYTES_MAX, help="bytes at which each write is torn, at most")
    parser.add_argument("--reorder-names", action="store_true", help="as file systems that reorder renames")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    given = _parse_arguments(arguments)
    logging.disable(logging.ERROR)  # thousands of logs say that they were cut
    violation_count = image_count = 0
    for name, config in (("delete", DELETING), ("compact", COMPACTING)):
        plan = Plan(
            seed=given.seed,
            config=config,
            operation_count=given.operations,
            samples_per_operation=given.samples,
            cuts_per_write=given.cuts,
            is_reordering_names=given.reorder_names,
        )
        _print(f"cleanup.policy={name}, seed {given.seed}")
        outcome = CrashImages(plan).run(_Reporter())
        for finding in outcome.findings.values():
            _print(f"  {finding}")
        _print(f"  {outcome}")
        image_count += outcome.image_count
        violation_count += outcome.violation_count
    _print(f"crash images: {image_count} booted, violations {violation_count}")
    return 1 if violation_count else 0


if __name__ == "__main__":
    sys.exit(main())
