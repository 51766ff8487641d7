"""kcat (librdkafka 2.0), unmodified: produce, consume, list; with and without SASL PLAIN."""

from __future__ import annotations

import json
import subprocess

from tests.compatibility.conftest import Access


def kcat(access: Access, *arguments: str, stdin: str = "") -> str:
    options = [word for name, value in access.librdkafka().items() for word in ("-X", f"{name}={value}")]
    done = subprocess.run(
        ["kcat", *options, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kcat_reads_back_what_it_wrote(access: Access, topic: str) -> None:
    lines = "".join(f"key-{i}:value-{i}\n" for i in range(500))
    kcat(access, "-P", "-t", topic, "-K:", "-z", "lz4", stdin=lines)
    output = kcat(access, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-K:")
    assert sorted(output.splitlines()) == sorted(lines.splitlines())


def test_kcat_lists_the_tenants_topics_and_its_own_cluster(access: Access, topic: str) -> None:
    kcat(access, "-P", "-t", topic, stdin="one\n")
    listing = json.loads(kcat(access, "-L", "-J"))
    names = {entry["topic"] for entry in listing["topics"]}
    assert topic in names
    assert not any("/" in name or name.startswith("__") for name in names)
