"""Snapshots of the metadata image: one file each beside the log, `<end offset>-<epoch>.checkpoint`, two are kept.

Record batches with their checksums, then a footer (a control batch of Kafka's type 4) with the SHA-256 of all before
it. A file counts only whole: written under another name, synced, renamed, directory synced. One that does not match its
digest is passed over as if it were not there: never partly applied, and nothing is deleted because of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from broker_engine.errors import BrokerError
from broker_engine.log.files import Files
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage, ReplayError
from broker_engine.metadata.records import Record, UnknownRecordError, decode_record, encode_record
from broker_engine.metadata.snapshot import records_of
from broker_engine.quorum.log_index import LogPosition
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.server.metadata_log import DIRECTORY, parse_entries

log = logging.getLogger(__name__)

KEPT_COUNT = 2
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_FOOTER_KEY = b"\x00\x00\x00\x04"
_FOOTER_VERSION = b"\x00\x00"
_RECORDS_PER_BATCH = 1000


class SnapshotError(Exception):
    """The file is damaged: it is as good as none."""


class Snapshot(NamedTuple):
    position: LogPosition
    image: MetadataImage


def encode_snapshot(image: MetadataImage, now_ms: int) -> bytes:
    """Takes a while where there is much: in a thread."""
    batches, offset = [], 0
    records = records_of(image)
    while chunk := list(islice(records, _RECORDS_PER_BATCH)):
        values = [NewRecord(now_ms, None, encode_record(record)) for record in chunk]
        batches.append(build_batch(values, base_offset=offset, leader_epoch=0))
        offset += len(chunk)
    body = b"".join(batches)
    footer = NewRecord(now_ms, _FOOTER_KEY, _FOOTER_VERSION + hashlib.sha256(body).digest())
    return body + build_batch([footer], base_offset=offset, leader_epoch=0, is_control=True)


def decode_snapshot(data: bytes, position: LogPosition) -> Snapshot:
    """All of it or SnapshotError. In a thread."""
    try:
        image = EMPTY_IMAGE.replay(_checked_records(data), 0)
    except (BrokerError, ReplayError, UnknownRecordError) as error:
        raise SnapshotError(f"the snapshot at offset {position.end_offset} cannot be read: {error}") from error
    return Snapshot(position, dataclasses.replace(image, next_offset=position.end_offset))


def _checked_records(data: bytes) -> list[Record]:
    entries = list(parse_entries(data))
    footer = entries.pop() if entries else None
    if footer is None or footer.control_key != _FOOTER_KEY:
        raise SnapshotError("a snapshot without a footer was not written to its end")
    body_bytes = sum(len(entry.batch) for entry in entries)
    if footer.values[0] != _FOOTER_VERSION + hashlib.sha256(data[:body_bytes]).digest():
        raise SnapshotError("a snapshot does not match its digest")
    if body_bytes + len(footer.batch) != len(data):
        raise SnapshotError("something follows a snapshot's footer")
    return [decode_record(value) for entry in entries for value in entry.values]


class MetadataSnapshots:
    """The files. All calls block: in a thread."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def positions(self) -> list[LogPosition]:
        """Newest first, whether or not they can be read."""
        if not self._files.exists(DIRECTORY):
            return []
        found = (_NAME.fullmatch(name) for name in self._files.list_dir(DIRECTORY))
        positions = [LogPosition(int(match[2]), int(match[1])) for match in found if match]
        return sorted(positions, key=lambda position: position.end_offset, reverse=True)

    def readable(self) -> Iterator[Snapshot]:
        """Newest first; what is damaged is said and passed over."""
        for position in self.positions():
            try:
                yield decode_snapshot(self.read(position), position)
            except SnapshotError as error:
                log.error("%s: the one before it and the log are used", error)

    def read(self, position: LogPosition) -> bytes:
        return self._files.read_small(_path(position))

    def read_piece(self, position: LogPosition, offset: int, size_bytes: int) -> tuple[bytes, int]:
        """With the size of the whole."""
        handle = self._files.open(_path(position))
        try:
            return handle.pread(size_bytes, offset), handle.size_bytes
        finally:
            handle.close()

    def has(self, position: LogPosition) -> bool:
        return self._files.exists(_path(position))

    def write(self, position: LogPosition, data: bytes) -> None:
        """Durable when it returns."""
        self._files.write_atomic(_path(position), data, is_durable=True)

    def remove_old(self) -> None:
        """All but the newest two."""
        old = self.positions()[KEPT_COUNT:]
        for position in old:
            self._files.unlink(_path(position))
        if old:
            self._files.sync_dir(DIRECTORY)


def _path(position: LogPosition) -> str:
    return f"{DIRECTORY}/{position.end_offset:020d}-{position.epoch:010d}.checkpoint"
