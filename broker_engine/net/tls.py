"""TLS over another stream, by ssl.MemoryBIO: the kernel cannot encrypt for us, so file ranges are read and copied."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Sequence

from broker_engine.net.stream import (
    Buffer,
    OnBytes,
    OnClose,
    OnDrained,
    Part,
    Stream,
    part_size_bytes,
    release_all,
)

_READ_BYTES = 256 * 1024
_ENCRYPTED_AHEAD_BYTES_MAX = 1024 * 1024


def server_context(certificate_file: str, key_file: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate_file, key_file)
    return context


def client_context(trusted_file: str) -> ssl.SSLContext:
    """Trusts the certificates in this file and no others: nodes of a cluster share an authority, or a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(trusted_file)
    return context


class TlsStream:
    """A Stream that encrypts. Plaintext waits in `_pending` while the socket is busy, so memory stays bounded."""

    def __init__(
        self, inner: Stream, context: ssl.SSLContext, *, is_server: bool, server_name: str | None = None
    ) -> None:
        self._inner = inner
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=is_server, server_hostname=None if is_server else server_name
        )
        self._is_handshake_done = False
        self._is_closing = False
        self._pending: deque[Part] = deque()
        self._pending_bytes = 0
        self._failure: Exception | None = None
        self._on_bytes: OnBytes | None = None
        self._on_close: OnClose | None = None
        self._on_drained: OnDrained | None = None

    @property
    def peer(self) -> str:
        return self._inner.peer

    @property
    def peer_host(self) -> str:
        return self._inner.peer_host

    @property
    def is_closed(self) -> bool:
        return self._is_closing or self._inner.is_closed

    @property
    def write_buffer_bytes(self) -> int:
        return self._pending_bytes + self._inner.write_buffer_bytes

    def start(self, on_bytes: OnBytes, on_close: OnClose, on_drained: OnDrained | None = None) -> None:
        self._on_bytes, self._on_close, self._on_drained = on_bytes, on_close, on_drained
        self._inner.start(self._on_ciphertext, self._on_inner_close, self._on_inner_drained)
        self._advance_handshake()

    def send(self, parts: Sequence[Part]) -> None:
        if self.is_closed:
            release_all(parts)
            return
        self._pending.extend(parts)
        self._pending_bytes += sum(map(part_size_bytes, parts))
        self._encrypt_pending()

    def pause(self) -> None:
        self._inner.pause()

    def resume(self) -> None:
        if not self.is_closed:
            self._inner.resume()

    def read_into(self, room: memoryview) -> None:
        """Not heeded: what arrives is decrypted first, into buffers of its own."""

    def close(self) -> None:
        if self.is_closed:
            return
        self._is_closing = True
        self._inner.pause()
        self._encrypt_pending()

    def abort(self) -> None:
        self._drop_pending()
        self._inner.abort()

    def _on_ciphertext(self, data: memoryview) -> None:
        self._incoming.write(data)
        if not self._is_handshake_done and not self._advance_handshake():
            return
        self._decrypt()
        self._encrypt_pending()

    def _advance_handshake(self) -> bool:
        try:
            self._tls.do_handshake()
            self._is_handshake_done = True
        except ssl.SSLWantReadError:
            self._is_handshake_done = False
        except ssl.SSLError as error:
            self._fail(error)
            return False
        self._flush_outgoing()
        return self._is_handshake_done

    def _decrypt(self) -> None:
        while not self.is_closed:
            try:
                plaintext = self._tls.read(_READ_BYTES)
            except ssl.SSLWantReadError:
                return
            except ssl.SSLError as error:
                self._fail(error)
                return
            if not plaintext:
                self._inner.close()
                return
            assert self._on_bytes is not None
            self._on_bytes(memoryview(plaintext))

    def _encrypt_pending(self) -> None:
        """Encrypt only as far ahead as the socket takes it; the rest follows in _on_inner_drained."""
        while self._is_handshake_done and self._pending and self._inner.write_buffer_bytes < _ENCRYPTED_AHEAD_BYTES_MAX:
            self._tls.write(self._take_plaintext())
            self._flush_outgoing()
        if self._is_closing and not self._pending:
            self._inner.close()

    def _take_plaintext(self) -> Buffer:
        part = self._pending.popleft()
        self._pending_bytes -= part_size_bytes(part)
        if isinstance(part, bytes | bytearray | memoryview):
            return part
        try:
            data = part.read()
        finally:
            part.release()
        if len(data) != part.size_bytes:
            self._inner.abort()  # the length is on its way to the client already, and the file has become shorter
        return data

    def _flush_outgoing(self) -> None:
        if self._outgoing.pending:
            self._inner.send([self._outgoing.read()])

    def _fail(self, error: ssl.SSLError) -> None:
        self._failure = error
        self._flush_outgoing()  # the alert tells the peer why
        self._drop_pending()
        self._inner.close()

    def _drop_pending(self) -> None:
        release_all(self._pending)
        self._pending.clear()
        self._pending_bytes = 0

    def _on_inner_drained(self) -> None:
        self._encrypt_pending()
        if self._on_drained is not None and not self._pending and not self.is_closed:
            self._on_drained()

    def _on_inner_close(self, error: Exception | None) -> None:
        self._drop_pending()
        if self._on_close is not None:
            self._on_close(self._failure or error)
