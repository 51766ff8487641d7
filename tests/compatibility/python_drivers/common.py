"""What the Python drivers share: arguments in, one JSON line per feature out, and short words for what they do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

PATIENCE_S = 40.0
FEATURES_AT_ONCE = 4
COMPRESSIBLE = "value" * 50
"""Clients leave a batch as it is that does not get smaller, and on a busy machine one may have a single record."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One feature's own topic, whose name is its group's too."""

    bootstrap: str
    topic: str


Said = Mapping[str, Any] | None
Feature = Callable[[Scene], Said]
AsyncFeature = Callable[[Scene], Awaitable[Said]]


def main(features: Mapping[str, Feature]) -> None:
    bootstrap, prefix, names = sys.argv[1:4]
    with ThreadPoolExecutor(FEATURES_AT_ONCE) as pool:
        for name in names.split(","):
            pool.submit(_play, name, features, Scene(bootstrap, f"{prefix}-{name}"))
    sys.stdout.flush()
    os._exit(0)  # a client's thread that hangs must not keep the process


def async_main(features: Mapping[str, AsyncFeature]) -> None:
    asyncio.run(_play_all(features))


async def _play_all(features: Mapping[str, AsyncFeature]) -> None:
    bootstrap, prefix, names = sys.argv[1:4]
    slots = asyncio.Semaphore(FEATURES_AT_ONCE)

    async def play(name: str) -> None:
        async with slots:
            started = time.monotonic()
            try:
                said = await asyncio.wait_for(features[name](Scene(bootstrap, f"{prefix}-{name}")), PATIENCE_S)
                _print(name, started, ok=True, said=said)
            except Exception as error:
                _print(name, started, ok=False, why=_words(error), trace=traceback.format_exc())

    await asyncio.gather(*(play(name) for name in names.split(",")))


def _play(name: str, features: Mapping[str, Feature], scene: Scene) -> None:
    started = time.monotonic()
    try:
        _print(name, started, ok=True, said=features[name](scene))
    except Exception as error:
        _print(name, started, ok=False, why=_words(error), trace=traceback.format_exc())


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _print(name: str, started: float, **rest: Any) -> None:
    line = json.dumps({"feature": name, "ms": int((time.monotonic() - started) * 1000), **rest}, default=str)
    sys.stdout.write(line + "\n")  # one write: threads print too
    sys.stdout.flush()


def expect_equal(got: object, wanted: object, what: str) -> None:
    assert got == wanted, f"{what}: {got}, not {wanted}"


def expect_within(part: set[int], whole: set[int]) -> None:
    assert part <= whole, f"{part} is not within {whole}: something was moved without need"


def wait_until(what: str, holds: Callable[[], bool]) -> None:
    """`holds` does the polling."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"did not happen: {what}"


def names_of(topic: str) -> Sequence[str]:
    """The two topics that a regex shall find."""
    return [f"{topic}-a", f"{topic}-b"]


HEADERS = [("trace", b"1"), ("trace", b"2"), ("empty", b"")]
RESET_STATES = {"new": 0, "expired": 0, "trimmed": 5}
"""Where `earliest` begins in each."""
