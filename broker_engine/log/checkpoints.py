"""The two small text files of a partition directory, in Kafka's formats.

`partition.metadata` ties the directory to a topic id; `leader-epoch-checkpoint` says where each leader epoch began.
Both parse or are ignored: the second is rebuilt from the batches.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

METADATA_FILE = "partition.metadata"
EPOCHS_FILE = "leader-epoch-checkpoint"
NO_EPOCH = -1
NO_OFFSET = -1


def format_partition_metadata(topic_id: UUID) -> bytes:
    text = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    return f"version: 0\ntopic_id: {text}".encode()


def parse_partition_metadata(data: bytes) -> UUID | None:
    fields = dict(line.split(": ", 1) for line in data.decode("utf-8", "replace").splitlines() if ": " in line)
    try:
        if fields.get("version") != "0":
            return None
        return UUID(bytes=base64.urlsafe_b64decode(fields["topic_id"] + "=="))
    except (KeyError, ValueError, binascii.Error):
        return None


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class EpochCache:
    """Leader epochs and where each began: both rise strictly from entry to entry."""

    def __init__(self, entries: list[EpochStart] | None = None) -> None:
        self._entries = entries or []

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    def restore(self, entries: Sequence[EpochStart]) -> None:
        self._entries = list(entries)

    @property
    def latest_epoch(self) -> int:
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that records from `start_offset` on are of `epoch`. True if that is news."""
        if epoch <= self.latest_epoch:
            return False
        # An epoch that got no record gives way to the one that did.
        while self._entries and self._entries[-1].start_offset >= start_offset:
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start_offset))
        return True

    def note_earlier(self, epoch: int, start_offset: int) -> bool:
        """A batch that was missing when the epochs were noted is of this one. True if that is news."""
        if self.epoch_of(start_offset) == epoch:
            return False
        others = [entry for entry in self._entries if entry.epoch != epoch]
        self._entries = sorted([*others, EpochStart(epoch, start_offset)])
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest epoch not above the given one, its end offset); (-1, -1) for an epoch that we never heard of."""
        if epoch < 0 or epoch > self.latest_epoch:
            return NO_EPOCH, NO_OFFSET
        following = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if following == 0:
            return epoch, self._entries[0].start_offset
        is_latest = following == len(self._entries)
        end_offset = log_end_offset if is_latest else self._entries[following].start_offset
        return self._entries[following - 1].epoch, end_offset

    def epoch_of(self, offset: int) -> int:
        following = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[following - 1].epoch if following else NO_EPOCH

    def first_start_from(self, offset: int) -> int | None:
        """Where the next epoch begins, at or above `offset`."""
        following = bisect_left(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[following].start_offset if following < len(self._entries) else None

    def truncate_from_end(self, end_offset: int) -> bool:
        """The log now ends at `end_offset`: forget epochs that began above it. True if any did."""
        count = len(self._entries)
        self._entries = [entry for entry in self._entries if entry.start_offset <= end_offset]
        return len(self._entries) != count

    def truncate_from_start(self, start_offset: int) -> bool:
        """The log now starts at `start_offset`: the epoch in force there starts there too."""
        epoch = self.epoch_of(start_offset)
        kept = [entry for entry in self._entries if entry.start_offset > start_offset]
        entries = [EpochStart(epoch, start_offset), *kept] if epoch != NO_EPOCH else kept
        has_changed = entries != self._entries
        self._entries = entries
        return has_changed

    def format(self) -> bytes:
        lines = ["0", str(len(self._entries)), *(f"{entry.epoch} {entry.start_offset}" for entry in self._entries)]
        return ("\n".join(lines) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes) -> EpochCache | None:
        try:
            version, count, *rows = data.decode("ascii").split("\n")
            entries = [EpochStart(*map(int, row.split(" "))) for row in rows if row]
        except (ValueError, TypeError):
            return None
        if not data.endswith(b"\n"):
            return None  # the last number may have lost digits
        rises = all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(entries))
        return cls(entries) if version == "0" and count == str(len(entries)) and rises else None
