"""A shard is read from its log, piece by piece, in a thread."""

from __future__ import annotations

import errno
from typing import cast

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.files import FileRange
from broker_engine.log.results import LogRead
from broker_engine.server.shards import _decode


class FailingRange:
    def __init__(self) -> None:
        self.is_released = False

    def read(self) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    def release(self) -> None:
        self.is_released = True


def test_a_disk_that_fails_once_is_an_error_that_loading_tries_again_after() -> None:
    failing = FailingRange()
    read = LogRead([cast(FileRange, failing)], size_bytes=1, first_offset=0)
    with pytest.raises(BrokerError) as raised:
        _decode(read, 0)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert failing.is_released
