"""The work behind a watch: what telemetry says of a topic, a group or all groups, now and again at each change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from asgiref.sync import sync_to_async

from api.group_rows import show_group, show_group_page
from control_plane.groups.queries import group_truth, group_truths
from control_plane.live.service import live
from control_plane.live.states import PartitionState
from web.consumers.frames import AnyWatch, Frame, Watch, WatchGroup, WatchGroups

if TYPE_CHECKING:
    from web.consumers.socket import GatewaySocket

FIRST_ROWS_WITHIN_S = 3.0
ROWS_AT_MOST_EVERY_S = 0.25
GROUPS_EVERY_S = 1.0
"""Lag grows with every record and every second: looked at once in a while, sent where it is another."""

T = TypeVar("T")


async def serve_any_watch(socket: GatewaySocket, sub: str, request: AnyWatch) -> None:
    match request:
        case Watch():
            await serve_watch(socket, sub, request)
        case WatchGroup():
            await serve_group(socket, sub, request)
        case WatchGroups():
            await serve_groups(socket, sub)


async def serve_group(socket: GatewaySocket, sub: str, request: WatchGroup) -> None:
    """A group of another tenant is simply not there. One that goes away ends the watch."""
    tenant, shown = _tenant(socket), None
    page = await _first(lambda: _group_page(tenant, request.group))
    if page is not None:
        await socket.perform(socket.session.on_subscribed(sub, {}, {}))
    while page is not None:
        if page != shown:
            await socket.perform(socket.session.on_group(sub, request.group, page))
            shown = page
        await asyncio.sleep(GROUPS_EVERY_S)
        page = await sync_to_async(_group_page, thread_sensitive=False)(tenant, request.group)
    text = f"nothing is known of a group {request.group!r}"
    await socket.perform(socket.session.on_failure(sub, "not_found", text, retryable=not live.is_connected))


async def serve_groups(socket: GatewaySocket, sub: str) -> None:
    tenant, shown = _tenant(socket), None
    await socket.perform(socket.session.on_subscribed(sub, {}, {}))
    while True:
        rows = await sync_to_async(_group_rows, thread_sensitive=False)(tenant)
        # No news of any group is no news while nothing is heard at all.
        if rows != shown and (rows or live.is_connected):
            await socket.perform(socket.session.on_groups(sub, rows))
            shown = rows
        await asyncio.sleep(GROUPS_EVERY_S)


def _group_page(tenant: str, name: str) -> Frame | None:
    truth = group_truth(tenant, name)
    return None if truth is None else show_group_page(truth)


def _group_rows(tenant: str) -> list[Frame]:
    return [show_group(truth) for truth in group_truths(tenant)]


async def _first(look: Callable[[], T | None]) -> T | None:
    """A group made a moment ago is told of within a second or two."""
    for _ in range(round(FIRST_ROWS_WITHIN_S / ROWS_AT_MOST_EVERY_S)):
        found = look()
        if found is not None:
            return found
        await asyncio.sleep(ROWS_AT_MOST_EVERY_S)
    return None


def _tenant(socket: GatewaySocket) -> str:
    assert socket.caller is not None, "only an open session watches"
    return str(socket.caller.tenant.pk)


async def serve_watch(socket: GatewaySocket, sub: str, request: Watch) -> None:
    """The topic's rows now, and again at each change. A topic of another tenant is simply not there."""
    tenant = _tenant(socket)
    with live.watching(tenant, request.topic) as changed:
        if not await _first_rows(tenant, request.topic, changed):
            text = f"nothing is known of a topic {request.topic!r}"
            await socket.perform(socket.session.on_failure(sub, "not_found", text, retryable=not live.is_connected))
            return
        await socket.perform(socket.session.on_subscribed(sub, {}, {}))
        while True:
            changed.clear()
            rows = live.snapshot.topic(tenant, request.topic)
            data = [row.as_json() for row in rows]
            await socket.perform(socket.session.on_partitions(sub, request.topic, data))
            await asyncio.sleep(ROWS_AT_MOST_EVERY_S)
            await changed.wait()


async def _first_rows(tenant: str, topic: str, changed: asyncio.Event) -> tuple[PartitionState, ...]:
    """A topic made a moment ago is told of within a second."""
    try:
        async with asyncio.timeout(FIRST_ROWS_WITHIN_S):
            while not (rows := live.snapshot.topic(tenant, topic)):
                await changed.wait()
                changed.clear()
            return rows
    except TimeoutError:
        return ()
