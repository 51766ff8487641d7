"""Directories as a disk sees them: names that are safe, and the changes since, in order.

A change is atomic: a rename takes the old name away and gives the new one, or neither. A file's own sync makes no name
safe; a directory's sync makes safe the changes in it, and those before that they build on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from broker_engine.simulator.sim_inode import Inode


class Directory:
    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node = Inode | Directory


class Edit(NamedTuple):
    directory: Directory
    name: str
    node: Node | None
    """None: the name goes."""


NameChange = tuple[Edit, ...]


class Names:
    """The whole tree. Keeps the changes that no sync has covered yet."""

    def __init__(self, root: Directory | None = None) -> None:
        self.root = root or Directory()
        self.pending: list[NameChange] = []

    def find(self, path: str) -> Node | None:
        node: Node | None = self.root
        for name in path.split("/") if path else ():
            node = node.entries.get(name) if isinstance(node, Directory) else None
        return node

    def change(self, *edits: Edit) -> None:
        self.pending.append(edits)
        for directory, name, node in edits:
            _edit(directory.entries, name, node)

    def sync(self, directory: Directory) -> None:
        touched = {id(directory)}
        kept, synced = [], []
        for change in reversed(self.pending):
            if any(id(edit.directory) in touched for edit in change):
                touched.update(id(edit.directory) for edit in change)
                synced.append(change)
            else:
                kept.append(change)
        for change in reversed(synced):
            for edit in change:
                _edit(edit.directory.durable, edit.name, edit.node)
        self.pending = kept[::-1]

    def sync_all(self) -> None:
        for change in self.pending:
            for edit in change:
                _edit(edit.directory.durable, edit.name, edit.node)
        self.pending = []

    def copy(self) -> Names:
        """The same tree with the same changes pending, of other directories and other inodes."""
        twins: dict[int, Node] = {}
        root = _twin(self.root, twins)
        assert isinstance(root, Directory)
        copied = Names(root)
        copied.pending = [
            tuple(
                Edit(_directory_twin(edit, twins), edit.name, edit.node and _twin(edit.node, twins)) for edit in change
            )
            for change in self.pending
        ]
        return copied

    def after_loss(self, survivors: Sequence[bool]) -> Directory:
        """The root of a tree in which, of the pending changes, those marked were carried out. Inodes are shared."""
        images: dict[int, Directory] = {}
        names: dict[int, dict[str, Node]] = {}
        for change, is_kept in zip(self.pending, survivors, strict=True):
            for directory, name, node in change if is_kept else ():
                _edit(names.setdefault(id(directory), dict(directory.durable)), name, node)
        return _copy(self.root, names, images)


def _edit(entries: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


def _twin(node: Node, twins: dict[int, Node]) -> Node:
    if id(node) not in twins:
        if isinstance(node, Inode):
            twins[id(node)] = node.copy()
        else:
            directory = twins[id(node)] = Directory()
            directory.entries = {name: _twin(inner, twins) for name, inner in node.entries.items()}
            directory.durable = {name: _twin(inner, twins) for name, inner in node.durable.items()}
    return twins[id(node)]


def _directory_twin(edit: Edit, twins: dict[int, Node]) -> Directory:
    directory = _twin(edit.directory, twins)
    assert isinstance(directory, Directory)
    return directory


def _copy(directory: Directory, names: dict[int, dict[str, Node]], images: dict[int, Directory]) -> Directory:
    image = images.get(id(directory))
    if image is None:
        image = images[id(directory)] = Directory()
        for name, node in names.get(id(directory), directory.durable).items():
            image.entries[name] = _copy(node, names, images) if isinstance(node, Directory) else node
        image.durable = dict(image.entries)
    return image
