"""The client over TLS, against a real broker with a certificate of its own."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_engine.client import Client, ClientConfig, ConnectionFailed, Producer
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.client.reading import read


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(
        [*command.split(), "-keyout", str(key_file), "-out", str(certificate_file)], check=True, capture_output=True
    )
    return certificate_file, key_file


@pytest.fixture(scope="module")
def tls_broker(certificate: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"ssl.certificate.file": str(certificate[0]), "ssl.key.file": str(certificate[1])}
    data_dir = tmp_path_factory.mktemp("broker") / "data"
    with BrokerProcess(data_dir, listeners={"default": "SSL"}, settings=settings) as broker:
        yield broker


async def test_records_travel_encrypted(tls_broker: BrokerProcess, certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=str(certificate[0]))
    values = [bytes([number]) * 50_000 for number in range(20)]
    async with Client(ClientConfig(bootstrap=(tls_broker.address(),), tls=context)) as client:
        async with Producer(client) as producer:
            for value in values:
                await producer.enqueue("orders", value)
        assert [record.value for record in await read(client, "orders", 20)] == values


async def test_an_unknown_certificate_is_refused_and_named(tls_broker: BrokerProcess) -> None:
    config = ClientConfig(bootstrap=(tls_broker.address(),), tls=ssl.create_default_context(), connect_timeout_ms=3_000)
    with pytest.raises(ConnectionFailed, match=r"TLS failed \(CERTIFICATE_VERIFY_FAILED\)"):
        async with Client(config):
            pass


async def test_a_plain_client_at_a_tls_listener_is_told_what_to_check(tls_broker: BrokerProcess) -> None:
    config = ClientConfig(bootstrap=(tls_broker.address(),), connect_timeout_ms=3_000)
    with pytest.raises(ConnectionFailed, match="TLS"):
        async with Client(config):
            pass
