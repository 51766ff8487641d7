"""The frames that a real Kafka received and sent, as tests/golden keeps them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from broker_engine.wire import registry

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


@dataclass(frozen=True, slots=True)
class Pair:
    api: str
    key: int
    version: int
    client: str
    request: bytes
    response: bytes

    @property
    def is_implemented(self) -> bool:
        spec = registry.find(self.key)
        return spec is not None and self.version in spec.request.__wire_versions__

    def __str__(self) -> str:
        return f"{self.api}-v{self.version}-{self.client}"


@cache
def all_pairs() -> tuple[Pair, ...]:
    with gzip.open(GOLDEN / "frames.jsonl.gz", "rt") as lines:
        return tuple(_pair(json.loads(line)) for line in lines)


def _pair(row: dict[str, str | int]) -> Pair:
    request, response = bytes.fromhex(str(row["request"])), bytes.fromhex(str(row["response"]))
    return Pair(str(row["api"]), int(row["key"]), int(row["version"]), str(row["client"]), request, response)


def implemented_pairs() -> list[Pair]:
    return [pair for pair in all_pairs() if pair.is_implemented]


def one_pair_per_version() -> list[Pair]:
    """The longest request of each API and version that is implemented."""
    longest: dict[tuple[int, int], Pair] = {}
    for pair in sorted(implemented_pairs(), key=lambda pair: len(pair.request)):
        longest[pair.key, pair.version] = pair
    return list(longest.values())


@dataclass(frozen=True, slots=True)
class Special:
    name: str
    requests: tuple[bytes, ...]
    outcome: tuple[str, ...]
    is_framed: bool


def special_cases() -> list[Special]:
    rows = [json.loads(line) for line in (GOLDEN / "special.jsonl").read_text().splitlines()]
    return [
        Special(
            row["name"],
            tuple(bytes.fromhex(request) for request in row["requests"]),
            tuple(row["outcome"]),
            not row.get("unframed"),
        )
        for row in rows
    ]
