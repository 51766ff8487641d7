"""The whole house with TLS between gateway and broker, as the containers of docker-compose.yml run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.web.stack import Stack, wait_until


def make_certificate(folder: Path) -> tuple[Path, Path]:
    certificate_file, key_file = folder / "broker.pem", folder / "broker.key"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=highwater"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key_file} -out {certificate_file}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return certificate_file, key_file


def test_topics_records_and_telemetry_travel_by_tls(tmp_path: Path) -> None:
    certificate_file, key_file = make_certificate(tmp_path)
    stack = Stack(
        tmp_path / "home",
        listeners={"internal": "SASL_SSL"},
        settings={"ssl.certificate.file": str(certificate_file), "ssl.key.file": str(key_file)},
        environment={"HIGHWATER_ENGINE_CA_FILE": str(certificate_file)},
    )
    with stack.running(), stack.http(stack.demo) as client:
        topic = stack.create_topic(stack.demo, "secret")
        assert client.post(f"/topics/{topic}/records", json=[{"value": "x"}]).status_code == 200
        found = client.get(f"/topics/{topic}/partitions/0/records").json()["records"]
        assert found[0]["value"] == {"type": "string", "data": "x"}
        wait_until(lambda: client.get(f"/topics/{topic}/partitions").json()["source"] == "telemetry", 15)
