"""Is a piece of a file in memory, and how to get it there: a cold reader must never stop the event loop."""

from __future__ import annotations

import os

_PAGE_BYTES = 4096
_READ_CHUNK_BYTES = 256 * 1024

_probe_buffer = bytearray(1)


def is_in_page_cache(fd: int, position: int, size_bytes: int) -> bool:
    """Probes the first and the last page; a file system that cannot tell counts as warm."""
    return _is_byte_cached(fd, position) and (
        size_bytes <= _PAGE_BYTES or _is_byte_cached(fd, position + size_bytes - 1)
    )


def _is_byte_cached(fd: int, position: int) -> bool:
    try:
        os.preadv(fd, [_probe_buffer], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True  # not supported here: sendfile will find out
    return True


def read_into_page_cache(fd: int, position: int, size_bytes: int) -> None:
    """For a thread: blocks until the disk has answered."""
    end = position + size_bytes
    while position < end and os.pread(fd, min(_READ_CHUNK_BYTES, end - position), position):
        position += _READ_CHUNK_BYTES
