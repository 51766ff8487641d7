"""Decision: what a command gives back. It changed nothing: replaying its records does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.records import Record

R_co = TypeVar("R_co", covariant=True)
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Decision(Generic[R_co]):
    records: tuple[Record, ...]
    """To be written as one batch: all of them or none. Empty = nothing to write, answer at once."""
    results: tuple[R_co, ...]
    """One per thing asked for, in that order; answered after the records are committed."""


def invalid_request(text: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, text)


def repeated(keys: Iterable[K]) -> frozenset[K]:
    """The keys that stand more than once: Kafka refuses each of them, once, and does the rest."""
    return frozenset(key for key, count in Counter(keys).items() if count > 1)
