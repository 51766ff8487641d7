"""What goes into the quorum core and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.quorum.election_state import ElectionState

# --- events


@dataclass(frozen=True, slots=True)
class Start:
    """The node is up: its log is recovered and its election state read."""


@dataclass(frozen=True, slots=True)
class StatePersisted:
    """`ready.persist_state` is on disk, directory entry included."""

    state: ElectionState


@dataclass(frozen=True, slots=True)
class Propose:
    """Values to write as one batch: all of them or none are ever seen. Leader only."""

    values: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Flushed:
    """Everything below `end_offset` of the own log is on disk."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class Resign:
    """The node stops, or its disk failed: it leads no more in this life."""


Event = Start | StatePersisted | Propose | Flushed | Resign

# --- output


@dataclass(frozen=True, slots=True)
class Entry:
    """One batch of the metadata log."""

    epoch: int
    base_offset: int
    values: tuple[bytes, ...]
    control_key: bytes | None = None
    """Set for a control batch: the key of its one record."""

    @property
    def is_control(self) -> bool:
        return self.control_key is not None

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.values)


@dataclass(frozen=True, slots=True)
class Ready:
    """The fields stand in the order in which they must be carried out."""

    persist_state: ElectionState | None = None
    """1. Write and fsync, then report StatePersisted. Nothing of this epoch may be shown or sent before that."""
    append: tuple[Entry, ...] = ()
    """2. Append to the log with `entry.epoch` as leader epoch, fsync, then report Flushed."""
    committed: tuple[Entry, ...] = ()
    """3. Replay into the image, then answer those who proposed them. Entries of this life only."""
    high_watermark: int | None = None
    """3. Set when it moved: everything below it is committed, also what earlier lives wrote."""


NOTHING = Ready()
