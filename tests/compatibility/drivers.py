"""How each client's driver is built and started. A driver plays many features in one process, a JSON line for each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
JAVA, GO, KAFKAJS = HERE / "java", HERE / "go", HERE / "kafkajs"
_SOURCES = {
    "4.3.1": ("common", "since_2_1", "modern"),
    "3.9.1": ("common", "since_2_1", "modern"),
    "2.1.0": ("common", "since_2_1", "before_2_4", "v2_1"),
    "0.11.0.3": ("common", "before_2_4", "v0_11"),
}
"""The folders of sources that are compiled against each version of Kafka's Java client."""
_PYTHON = {"confluent-kafka": "confluent", "aiokafka": "aio", "kafka-python": "kpython"}
TIMEOUT_S = 420
BUILD_TIMEOUT_S = 300


class CannotRun(Exception):
    """Something that the driver needs is not on this machine."""


def command(client: str) -> list[str]:
    """Built where it must be; the arguments come behind it."""
    if client.startswith("java-"):
        return _java(client.removeprefix("java-"))
    if client in ("franz-go", "sarama"):
        return [str(_go(client))]
    if client == "kafkajs":
        _need("node", KAFKAJS / "node_modules", "Node.js or kafkajs is missing: make compat-clients")
        return ["node", str(KAFKAJS / "driver.js")]
    return [sys.executable, "-m", f"tests.compatibility.python_drivers.{_PYTHON[client]}"]


def play(client: str, bootstrap: str, prefix: str, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What the driver said of each feature; nothing of those that it did not come to."""
    environment = {**os.environ, "KAFKAJS_NO_PARTITIONER_WARNING": "1", "PYTHONWARNINGS": "ignore"}
    words = [*command(client), bootstrap, prefix, ",".join(keys)]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=HERE.parents[1], env=environment
        )
        output, complaints = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output, complaints = (_text(late.stdout), f"stopped after {TIMEOUT_S} s\n{_text(late.stderr)}")
    lines = [json.loads(line) for line in output.splitlines() if line.startswith('{"feature"')]
    answers = {line["feature"]: line for line in lines}
    missing = {"ok": False, "why": f"the driver did not come to it: {complaints[-2000:]}"}
    return {key: answers.get(key, missing) for key in keys}


def _text(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def client_version(client: str) -> str:
    if client.startswith("java-"):
        return client.removeprefix("java-")
    if client == "kafkajs":
        return str(json.loads((KAFKAJS / "package.json").read_text())["dependencies"]["kafkajs"])
    if client in _PYTHON:
        return version(client)
    module = {"franz-go": "github.com/twmb/franz-go ", "sarama": "github.com/IBM/sarama "}[client]
    lines = (GO / "go.mod").read_text().splitlines()
    return next(line.split()[-1] for line in lines if line.strip().startswith(module)).removeprefix("v")


def _java(number: str) -> list[str]:
    classes = compiled(number, number, *_SOURCES[number])
    # One compiler is enough for a program that lives for seconds.
    flags = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    return ["java", *flags, "-cp", f"{JAVA / 'libs' / number}/*:{classes}", "Driver"]


def compiled(name: str, libs: str | Path, *folders: str) -> Path:
    """The folder with the classes of java/FOLDERS (default: java/NAME), made anew where a source is newer."""
    libs = JAVA / "libs" / libs
    _need("javac", libs, "Java or the client's jars are missing: make compat-clients kafka-peer")
    classes = JAVA / "classes" / name
    sources = [source for folder in folders or (name,) for source in sorted((JAVA / folder).glob("*.java"))]
    words = ["javac", "-nowarn", "-cp", f"{libs}/*", "-d", str(classes), *map(str, sources)]
    _build(sources, classes / ".made", words)
    return classes


def _go(client: str) -> Path:
    _need("go", GO, "Go is missing: make system, or go.dev/dl")
    program = GO / "bin" / client
    sources = [GO / "go.mod", *sorted((GO / client).glob("*.go")), *sorted((GO / "cells").glob("*.go"))]
    _build(sources, program, ["go", "build", "-C", str(GO), "-o", str(program), f"./{client}"])
    return program


def _need(program: str, folder: Path, missing: str) -> None:
    if shutil.which(program) is None or not folder.is_dir():
        raise CannotRun(missing)


def _build(sources: Iterable[Path], target: Path, words: list[str]) -> None:
    if target.exists() and target.stat().st_mtime >= max(source.stat().st_mtime for source in sources):
        return
    done = subprocess.run(words, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    target.touch()
