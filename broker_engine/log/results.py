"""What a log answers to an append and to a read, and how a disk's error becomes an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.file_seam import FileRange


class LogState(StrEnum):
    ONLINE = "online"
    DAMAGED = "damaged"
    """Something that was durable once can no longer be read. The rest is served, and appends go on."""
    OFFLINE = "offline"
    """A disk error left the files in an unknown state: every call answers KAFKA_STORAGE_ERROR."""
    CLOSED = "closed"


class AppendResult(NamedTuple):
    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 where the records keep the producer's time."""


@dataclass(slots=True)
class LogRead:
    ranges: list[FileRange]
    size_bytes: int
    first_offset: int
    """Of the first batch answered, which may begin below what was asked for."""

    def release(self) -> None:
        for file_range in self.ranges:
            file_range.release()


@contextmanager
def storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error) from error


def storage_error(error: OSError) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log's disk failed: {error.strerror}")
