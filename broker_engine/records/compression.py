"""Kafka's four codecs. Decompression never allocates more output than the caller's bound, whatever the input claims.

Written so that Apache Kafka's Java reader accepts it: snappy in xerial blocks, lz4 frames with independent blocks.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import NamedTuple

import cramjam

from broker_engine.errors import BrokerError, ErrorCode

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class StoredCompression(NamedTuple):
    """What a topic's `compression.type` asks for."""

    codec: Codec
    level: int | None = None
    """None: the codec's own default."""


class CorruptBatch(BrokerError):  # noqa: N818 - named for what the caller has in hand
    """Bytes that are no record batch, or no records inside one."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class TooLarge(BrokerError):  # noqa: N818
    """Records that would take more memory than the reader allows."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(ErrorCode.MESSAGE_TOO_LARGE, f"the records decompress to more than {max_bytes} bytes")


_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")

_GZIP_LEVEL_DEFAULT = -1
_LZ4_LEVEL_DEFAULT = 9
_LZ4_LEVEL_FAST = 1
_GZIP_WBITS = 16 + zlib.MAX_WBITS
_FIRST_GUESS_BYTES_MIN = 64 * 1024
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW_BYTES_MAX = 128 << 20
# cramjam has no error class of its own for a full output buffer; a test pins this text.
_OUTPUT_FULL = "failed to write whole buffer"


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`level` is Kafka's `compression.<codec>.level`; None and its defaults are the codec's own default."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        return bytes(cramjam.gzip.compress(data, level=None if level == _GZIP_LEVEL_DEFAULT else level))
    if codec == Codec.SNAPPY:
        return _compress_xerial(memoryview(data))
    if codec == Codec.LZ4:
        return _compress_lz4(data, level)
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=level))
    raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression codec {codec}")


def _compress_xerial(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    # Kafka takes its default, 9, as a word for the fast compressor; every other level is the slow one's.
    if level is None or level == _LZ4_LEVEL_DEFAULT:
        level = _LZ4_LEVEL_FAST
    # The one-call form links its blocks, which Java's reader refuses.
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    return bytes(compressor.finish())


def decompress(codec: int, data: Buffer, max_bytes: int) -> bytes:
    """The bytes inside, or CorruptBatch, or TooLarge when they would be more than `max_bytes`."""
    try:
        return _decompress(codec, memoryview(data), max_bytes)
    except (cramjam.DecompressionError, zlib.error, ValueError) as error:
        raise CorruptBatch(f"the records do not decompress: {error}") from error


def _decompress(codec: int, data: memoryview, max_bytes: int) -> bytes:
    if codec == Codec.NONE:
        if len(data) > max_bytes:
            raise TooLarge(max_bytes)
        return bytes(data)
    if codec == Codec.GZIP:
        return _decompress_gzip(data, max_bytes)
    if codec == Codec.SNAPPY:
        return _decompress_snappy(data, max_bytes)
    if codec == Codec.LZ4:
        return _decompress_into(cramjam.lz4, data, max_bytes)
    if codec == Codec.ZSTD:
        _check_zstd_window(data, max_bytes)
        return _decompress_into(cramjam.zstd, data, max_bytes)
    raise CorruptBatch(f"unknown compression codec {codec}")


def _decompress_gzip(data: memoryview, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    left_bytes = max_bytes
    rest: bytes | memoryview = data
    while True:  # one round per gzip member: Java's reader takes several in a row
        inflater = zlib.decompressobj(_GZIP_WBITS)
        part = inflater.decompress(rest, left_bytes + 1)
        if len(part) > left_bytes:
            raise TooLarge(max_bytes)
        if not inflater.eof:
            raise CorruptBatch("the gzip data are cut short")
        parts.append(part)
        left_bytes -= len(part)
        rest = inflater.unused_data
        if not rest:
            return b"".join(parts)


def _decompress_snappy(data: memoryview, max_bytes: int) -> bytes:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, max_bytes, max_bytes)
    parts: list[bytes] = []
    left_bytes = max_bytes
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if position + _BLOCK_LENGTH.size > len(data):
            raise CorruptBatch("a snappy block is cut short")
        (size,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if size < 0 or position + size > len(data):
            raise CorruptBatch("a snappy block is cut short")
        parts.append(_decompress_snappy_block(data[position : position + size], left_bytes, max_bytes))
        left_bytes -= len(parts[-1])
        position += size
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, left_bytes: int, max_bytes: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > left_bytes:
        raise TooLarge(max_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


def _check_zstd_window(data: memoryview, max_bytes: int) -> None:
    """Refuse a frame whose declared window alone would take more memory than the records may."""
    if len(data) < 6 or data[:4] != _ZSTD_MAGIC or data[4] & 0x20:
        return  # a single-segment frame has no window: its content is its window, and the output is bounded
    exponent, mantissa = data[5] >> 3, data[5] & 7
    window_base = 1 << (10 + exponent)
    if window_base + (window_base >> 3) * mantissa > max(_ZSTD_WINDOW_BYTES_MAX, max_bytes):
        raise TooLarge(max_bytes)


def _decompress_into(module: object, data: memoryview, max_bytes: int) -> bytes:
    """Decompress into a buffer that grows by four, up to the bound, while the codec says it is too small."""
    size_bytes = min(max_bytes, max(_FIRST_GUESS_BYTES_MIN, 4 * len(data)))
    while True:
        output = bytearray(size_bytes)
        try:
            written = module.decompress_into(data, output)  # type: ignore[attr-defined]
        except cramjam.DecompressionError as error:
            if _OUTPUT_FULL not in str(error):
                raise
            if size_bytes >= max_bytes:
                raise TooLarge(max_bytes) from error
            size_bytes = min(max_bytes, size_bytes * 4)
            continue
        return bytes(memoryview(output)[:written])
