"""Our own engine's groups behind the seam: the client's admin calls, by physical names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from broker_engine.client import Admin, ErrorCode, KafkaError, Timestamp, TopicPartition, TopicView, raise_errors
from control_plane.engine.groups import GroupName, GroupView, LogRange, Place
from control_plane.engine.highwater_cluster import Run
from control_plane.engine.interface import EngineRefused, EngineUnavailable

T = TypeVar("T")

ABSENT = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class HighwaterGroups:
    def __init__(self, run: Run) -> None:
        self._run_as_root = run

    def _run(self, tenant: str, work: Callable[[Admin], Awaitable[T]], timeout_s: float) -> T:
        """Physical names stay on this side of the seam, also in an error's text."""
        try:
            return self._run_as_root(work, timeout_s)
        except EngineRefused as error:
            raise EngineRefused(error.code, str(error).replace(f"{tenant}/", "")) from error
        except EngineUnavailable as error:
            raise EngineUnavailable(str(error).replace(f"{tenant}/", "")) from error

    def list_groups(self, tenant: str, *, timeout_s: float) -> list[GroupView]:
        async def look(admin: Admin) -> list[GroupView]:
            prefix = f"{tenant}/"
            return [
                GroupView(one.name.removeprefix(prefix), one.state, one.type or "classic", None, one.coordinator)
                for one in await admin.list_groups()
                if one.name.startswith(prefix)
            ]

        return self._run(tenant, look, timeout_s)

    def describe(self, name: GroupName, *, timeout_s: float) -> GroupView | None:
        async def look(admin: Admin) -> GroupView | None:
            try:
                found = await admin.describe_group(_physical(name))
            except KafkaError as error:
                if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
                    return None
                raise
            return GroupView(name.name, found.state, found.type, len(found.members), found.coordinator)

        return self._run(name.tenant, look, timeout_s)

    def committed(self, name: GroupName, *, timeout_s: float) -> Mapping[Place, int]:
        async def look(admin: Admin) -> Mapping[Place, int]:
            found = await admin.group_offsets(_physical(name))
            return {_place(name.tenant, target): it.offset for target, it in found.items()}

        return self._run(name.tenant, look, timeout_s)

    def partitions_of(self, tenant: str, topics: Iterable[str], *, timeout_s: float) -> Mapping[str, int | None]:
        async def look(admin: Admin) -> Mapping[str, int | None]:
            found = await admin.describe_topics([_topic(tenant, topic) for topic in topics])
            return {name.partition("/")[2]: _partition_count(view) for name, view in found.items()}

        return self._run(tenant, look, timeout_s)

    def ranges(self, tenant: str, places: Iterable[Place], *, timeout_s: float) -> Mapping[Place, LogRange]:
        async def look(admin: Admin) -> Mapping[Place, LogRange]:
            targets = [_target(tenant, place) for place in places]
            starts = await admin.list_offsets(dict.fromkeys(targets, "earliest"))
            ends = await admin.list_offsets(dict.fromkeys(targets, "latest"))
            return {_place(tenant, it): LogRange(starts[it].offset, ends[it].offset) for it in targets}

        return self._run(tenant, look, timeout_s)

    def offsets_at(
        self, tenant: str, places: Iterable[Place], timestamp_ms: int, *, timeout_s: float
    ) -> Mapping[Place, int | None]:
        async def look(admin: Admin) -> Mapping[Place, int | None]:
            targets = [_target(tenant, place) for place in places]
            found = await admin.list_offsets(dict.fromkeys(targets, Timestamp(timestamp_ms)))
            return {_place(tenant, it): found[it].offset if found[it].offset >= 0 else None for it in targets}

        return self._run(tenant, look, timeout_s)

    def commit(self, name: GroupName, offsets: Mapping[Place, int], *, timeout_s: float) -> None:
        async def commit(admin: Admin) -> None:
            wanted = {_target(name.tenant, place): offset for place, offset in offsets.items()}
            raise_errors(await admin.commit_group_offsets(_physical(name), wanted))

        self._run(name.tenant, commit, timeout_s)

    def delete_offsets(self, name: GroupName, places: Iterable[Place], *, timeout_s: float) -> None:
        async def delete(admin: Admin) -> None:
            targets = [_target(name.tenant, place) for place in places]
            raise_errors(await admin.delete_group_offsets(_physical(name), targets))

        self._run(name.tenant, delete, timeout_s)

    def delete(self, name: GroupName, *, timeout_s: float) -> None:
        async def delete(admin: Admin) -> None:
            await admin.delete_group(_physical(name))

        self._run(name.tenant, delete, timeout_s)


def _physical(name: GroupName) -> str:
    return f"{name.tenant}/{name.name}"


def _topic(tenant: str, topic: str) -> str:
    return f"{tenant}/{topic}"


def _target(tenant: str, place: Place) -> TopicPartition:
    return TopicPartition(_topic(tenant, place[0]), place[1])


def _place(tenant: str, target: TopicPartition) -> Place:
    return target.topic.removeprefix(f"{tenant}/"), target.partition


def _partition_count(view: TopicView | KafkaError) -> int | None:
    if not isinstance(view, KafkaError):
        return view.partition_count
    if view.code in ABSENT:
        return None
    raise view
