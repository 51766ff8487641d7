"""The table, for a terminal and as docs/guarantees.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.guarantees.story import Counts, Story

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guarantees.md"
HEADINGS = ("what happened", "setting", "what it promises", "sent", "acked", "read", "lost", "duplicated", "verdict")
HEAD = """# What is lost, and what stands twice

Made by `make guarantees` (`tests/guarantees`): each story is played with real brokers, real clients and a real kill,
and the records are counted. **acked**: the client was told that the record is safe by its setting. **lost**: acked, and
not there afterwards. **duplicated**: there more than once. The unsafe settings stand beside the safe ones on purpose: a
lab in which they lose nothing would prove nothing about the others. In brackets: where mission.md tells the story.

"""
FOOT = """
- Followers are stopped (SIGSTOP) where a leader shall be alone with its records; then the leader gets SIGKILL.
- Acks are lost by a proxy that lets the produce request pass and resets the connection before the answer does.
- A killed process loses no page cache, so power is lost in the simulator: the same brokers on simulated disks, where
  unsynced bytes vanish. `page-cache` is Kafka's own promise; `fsync` is our default.
- A reader's "read" is the work that was done, "lost" what was never worked on, "duplicated" what was worked on twice.
  Rows of groups and of transactions count the same; their clients are librdkafka, killed by SIGKILL between two steps.
- acks=all below `min.insync.replicas` is refused with NOT_ENOUGH_REPLICAS; "refused" rows have fewer acked than sent.
- acks=1 is answered from the leader's page cache and never waits for a disk, whatever `ack.durability` says; only
  acks=all does. Below `min.insync.replicas` the high watermark stands still (as in newer Kafka, KIP-966): records that
  acks=1 or acks=0 bring then are stored, but nobody can read them before enough replicas are back.
- Idempotence holds for one producer's life and one partition: a producer that starts anew, or an application that sends
  again by itself, is a new one. Over restarts and over several partitions it takes a `transactional.id`.
"""


@dataclass(frozen=True, slots=True)
class Line:
    story: Story
    counts: Counts | None
    problem: str

    def cells(self) -> tuple[str, ...]:
        story, counts = self.story, self.counts
        figures = ("-",) * 5 if counts is None else tuple(
            f"{value:,}" for value in (counts.sent, counts.acked, counts.read, counts.lost, counts.duplicated)
        )  # fmt: skip
        verdict = f"FAILED: {self.problem}" if self.problem else story.expected.value
        return f"{story.event} ({story.items})", story.setting, story.promise, *figures, verdict


def text_table(lines: Sequence[Line]) -> str:
    rows = [HEADINGS, *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def page(lines: Sequence[Line]) -> str:
    rule = ("---", "---", "---", "---:", "---:", "---:", "---:", "---:", "---")
    rows = [HEADINGS, rule, *(line.cells() for line in lines)]
    return HEAD + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n" + FOOT
