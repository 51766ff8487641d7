"""Groups in memory: commits that are refused while somebody is there, logs with a start and an end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from control_plane.engine.groups import GroupName, GroupView, LogRange, Place
from control_plane.engine.interface import EngineRefused, EngineUnavailable


@dataclass
class MemoryGroups:
    is_away: bool = False
    offsets: dict[GroupName, dict[Place, int]] = field(default_factory=dict)
    members: dict[GroupName, int] = field(default_factory=dict)
    logs: dict[tuple[str, Place], LogRange] = field(default_factory=dict)
    times: dict[tuple[str, Place], list[int]] = field(default_factory=dict)
    """The timestamp of each record from the log's start on."""

    def list_groups(self, tenant: str, *, timeout_s: float) -> list[GroupView]:
        self._answer()
        return [view for name in sorted(self.offsets) if name.tenant == tenant and (view := self._view(name))]

    def describe(self, name: GroupName, *, timeout_s: float) -> GroupView | None:
        self._answer()
        return self._view(name)

    def _view(self, name: GroupName) -> GroupView | None:
        count = self.members.get(name, 0)
        if name not in self.offsets and not count:
            return None
        return GroupView(name.name, "Stable" if count else "Empty", "classic", count, 1)

    def committed(self, name: GroupName, *, timeout_s: float) -> Mapping[Place, int]:
        self._answer()
        return dict(self.offsets.get(name, {}))

    def partitions_of(self, tenant: str, topics: Iterable[str], *, timeout_s: float) -> Mapping[str, int | None]:
        self._answer()
        counts = {name: [it for owner, it in self.logs if owner == tenant and it[0] == name] for name in topics}
        return {name: len(found) or None for name, found in counts.items()}

    def ranges(self, tenant: str, places: Iterable[Place], *, timeout_s: float) -> Mapping[Place, LogRange]:
        self._answer()
        return {place: self.logs[tenant, place] for place in places}

    def offsets_at(
        self, tenant: str, places: Iterable[Place], timestamp_ms: int, *, timeout_s: float
    ) -> Mapping[Place, int | None]:
        self._answer()
        return {place: self._first(tenant, place, timestamp_ms) for place in places}

    def _first(self, tenant: str, place: Place, timestamp_ms: int) -> int | None:
        start = self.logs[tenant, place].start_offset
        times = self.times.get((tenant, place), [])
        return next((start + number for number, at_ms in enumerate(times) if at_ms >= timestamp_ms), None)

    def commit(self, name: GroupName, offsets: Mapping[Place, int], *, timeout_s: float) -> None:
        self._answer()
        if self.members.get(name):
            raise EngineRefused("UNKNOWN_MEMBER_ID", "the group has members")
        self.offsets.setdefault(name, {}).update(offsets)

    def delete_offsets(self, name: GroupName, places: Iterable[Place], *, timeout_s: float) -> None:
        self._answer()
        if self.members.get(name):
            raise EngineRefused("GROUP_SUBSCRIBED_TO_TOPIC", "the group has members")
        for place in places:
            del self.offsets[name][place]

    def delete(self, name: GroupName, *, timeout_s: float) -> None:
        self._answer()
        del self.offsets[name]

    def _answer(self) -> None:
        if self.is_away:
            raise EngineUnavailable("no broker answers at 127.0.0.1:9094")
