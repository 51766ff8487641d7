"""TLS over the owned socket: the same promises, with the ranges read instead of sent by the kernel."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from broker_engine.net.sockets import SocketDialer, SocketListener
from broker_engine.net.tls import server_context
from tests.broker_engine.net.test_sockets import CountedRange, Peer, until


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    certificate_file, key_file = str(folder / "cert.pem"), str(folder / "key.pem")
    files = f"-keyout {key_file} -out {certificate_file}"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost {files}"
    subprocess.run([*command.split(), "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return certificate_file, key_file


async def test_parts_arrive_in_order_and_the_range_is_released(certificate: tuple[str, str], tmp_path: Path) -> None:
    content = b"0123456789" * 300_000
    path = tmp_path / "segment.log"
    path.write_bytes(content)
    client, server, listener = await _connect(certificate)
    file_range = CountedRange(path, 0, len(content))
    server.stream.send([b"head", file_range, b"tail"])
    await until(lambda: len(client.received) == len(content) + 8)
    assert client.received == b"head" + content + b"tail"
    assert file_range.release_count == 1
    client.stream.send([b"thanks"])
    await until(lambda: server.received == b"thanks")
    server.stream.close()
    await until(lambda: client.closed_count == 1)
    listener.close()


async def test_plain_text_on_a_tls_port_is_closed(certificate: tuple[str, str]) -> None:
    listener = SocketListener("127.0.0.1", 0, tls=server_context(*certificate))
    stream, accepted = await asyncio.gather(SocketDialer().connect(*listener.address), listener.accept())
    client, server = Peer(stream), Peer(accepted)
    client.stream.send([b"\x00\x00\x00\x10 this is no handshake"])
    await until(lambda: server.closed_count == 1 and client.closed_count == 1)
    assert isinstance(server.error, ssl.SSLError)
    listener.close()


async def _connect(certificate: tuple[str, str]) -> tuple[Peer, Peer, SocketListener]:
    listener = SocketListener("127.0.0.1", 0, tls=server_context(*certificate))
    trust = ssl.create_default_context(cafile=certificate[0])
    stream, accepted = await asyncio.gather(
        SocketDialer().connect("localhost", listener.address[1], tls=trust), listener.accept()
    )
    return Peer(stream), Peer(accepted), listener
