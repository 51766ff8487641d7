"""What tenants ask of an engine's groups. The same rules as for the rest of the seam (`interface.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, order=True)
class GroupName:
    tenant: str
    name: str


Place = tuple[str, int]
"""A topic of the same tenant, and a partition of it."""


@dataclass(frozen=True, slots=True)
class GroupView:
    name: str
    state: str
    protocol: str
    member_count: int | None
    """None where the engine does not say it in a list."""
    coordinator: int


@dataclass(frozen=True, slots=True)
class LogRange:
    start_offset: int
    end_offset: int
    """The high watermark."""


class GroupsEngine(Protocol):
    def list_groups(self, tenant: str, *, timeout_s: float) -> list[GroupView]: ...

    def describe(self, name: GroupName, *, timeout_s: float) -> GroupView | None:
        """None: there is no such group."""

    def committed(self, name: GroupName, *, timeout_s: float) -> Mapping[Place, int]: ...

    def partitions_of(self, tenant: str, topics: Iterable[str], *, timeout_s: float) -> Mapping[str, int | None]:
        """How many partitions each topic has; None: there is no such topic."""

    def ranges(self, tenant: str, places: Iterable[Place], *, timeout_s: float) -> Mapping[Place, LogRange]: ...

    def offsets_at(
        self, tenant: str, places: Iterable[Place], timestamp_ms: int, *, timeout_s: float
    ) -> Mapping[Place, int | None]:
        """The first record of that time or later; None where there is none."""

    def commit(self, name: GroupName, offsets: Mapping[Place, int], *, timeout_s: float) -> None:
        """Raises EngineRefused with the first refusal: UNKNOWN_MEMBER_ID while the group has members."""

    def delete_offsets(self, name: GroupName, places: Iterable[Place], *, timeout_s: float) -> None: ...

    def delete(self, name: GroupName, *, timeout_s: float) -> None:
        """Raises EngineRefused: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
