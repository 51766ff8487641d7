"""What outlives a crash: for each file a content, for each pending change of names whether it was carried out.

A process kill keeps everything. A power failure keeps what was synced and, of the rest, what the disk happened to do:
of each file a prefix of its operations, the next one torn at a byte, perhaps with zeros where the new size came before
the data; of each directory a prefix of its changes (of file systems that reorder them, any subset).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from broker_engine.simulator.sim_inode import Inode, Write, apply_operations
from broker_engine.simulator.sim_names import NameChange

_PAGE_BYTES = 4096


class Survival(Protocol):
    def content_of(self, inode: Inode) -> bytes: ...

    def names_of(self, pending: Sequence[NameChange]) -> list[bool]: ...


class KeepAll:
    """The process died, the machine did not."""

    def content_of(self, inode: Inode) -> bytes:
        return bytes(inode.data) if inode.pending else inode.durable

    def names_of(self, pending: Sequence[NameChange]) -> list[bool]:
        return [True] * len(pending)


class KeepSynced:
    """The least that a disk may keep."""

    def content_of(self, inode: Inode) -> bytes:
        return inode.durable

    def names_of(self, pending: Sequence[NameChange]) -> list[bool]:
        return [False] * len(pending)


class KeepNames:
    """Every name, of the contents only what was synced: the journal was written, the data was not."""

    def content_of(self, inode: Inode) -> bytes:
        return inode.durable

    def names_of(self, pending: Sequence[NameChange]) -> list[bool]:
        return [True] * len(pending)


class KeepRandom:
    def __init__(self, random: Random, *, is_reordering_names: bool = False) -> None:
        self._random = random
        self._is_reordering_names = is_reordering_names

    def content_of(self, inode: Inode) -> bytes:
        if not inode.pending:
            return inode.durable
        random = self._random
        kept_count = random.randint(0, len(inode.pending))
        operations = inode.pending[:kept_count]
        if kept_count < len(inode.pending):
            torn = inode.pending[kept_count]
            if isinstance(torn, Write):
                operations.append(Write(torn.position, torn.data[: random.randint(0, len(torn.data))]))
        content = apply_operations(inode.durable, operations)
        match random.randrange(4):
            case 0:
                return content + bytes(random.randint(0, max(0, len(inode.data) - len(content))))
            case 1:
                return self._without_a_page(content, len(inode.durable))
        return content

    def _without_a_page(self, content: bytes, safe_bytes: int) -> bytes:
        """One page of what was not synced is still zeros, though later ones are there."""
        if len(content) <= safe_bytes:
            return content
        position = self._random.randrange(safe_bytes, len(content))
        start = max(safe_bytes, position - position % _PAGE_BYTES)
        end = min(len(content), position - position % _PAGE_BYTES + _PAGE_BYTES)
        return content[:start] + bytes(end - start) + content[end:]

    def names_of(self, pending: Sequence[NameChange]) -> list[bool]:
        if self._is_reordering_names:
            return [self._random.random() < 0.5 for _ in pending]
        touched: dict[int, int] = {}
        for change in pending:
            for edit in change:
                touched[id(edit.directory)] = touched.get(id(edit.directory), 0) + 1
        room = {number: self._random.randint(0, count) for number, count in touched.items()}
        return [_fits(change, room) for change in pending]


def _fits(change: NameChange, room: dict[int, int]) -> bool:
    """Is there room left in every directory that the change is about? Behind one that is lost, there is none."""
    is_kept = all(room[id(edit.directory)] > 0 for edit in change)
    for edit in change:
        room[id(edit.directory)] = room[id(edit.directory)] - 1 if is_kept else 0
    return is_kept


class Torn:
    """The last write of one file got only so far; what else survives, another survival says."""

    def __init__(self, others: Survival, inode: Inode, kept_bytes: int) -> None:
        self._others = others
        self._inode = inode
        self._kept_bytes = kept_bytes

    def content_of(self, inode: Inode) -> bytes:
        if inode is not self._inode:
            return self._others.content_of(inode)
        last = inode.pending[-1]
        assert isinstance(last, Write), "only a write can be torn"
        torn = Write(last.position, last.data[: self._kept_bytes])
        return apply_operations(inode.durable, [*inode.pending[:-1], torn])

    def names_of(self, pending: Sequence[NameChange]) -> list[bool]:
        return self._others.names_of(pending)
