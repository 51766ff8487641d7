"""Topics that come into being because a client named them: in the background, by the controller, each name once."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import ErrorCode
from broker_engine.names import Name
from broker_engine.server.controller_channel import ControllerChannel
from broker_engine.server.supervisor import Supervisor
from broker_engine.wire.messages.internal_create_on_first_use import (
    CreateOnFirstUseRequest,
    CreateOnFirstUseResponse,
    CreateOnFirstUseTopic,
)

log = logging.getLogger(__name__)

_TIMEOUT_MS = 10_000


class FirstUse:
    def __init__(self, controller: ControllerChannel, tasks: Supervisor) -> None:
        self._controller = controller
        self._tasks = tasks
        self._under_way: dict[Name, None] = {}

    def create(self, names: Sequence[Name]) -> None:
        """The client is told that the topic is not there yet, and asks again."""
        fresh = [name for name in names if name not in self._under_way]
        if fresh:
            self._under_way.update(dict.fromkeys(fresh))
            self._tasks.spawn(self._create(fresh), "create topics on first use")

    async def _create(self, names: Sequence[Name]) -> None:
        topics = [CreateOnFirstUseTopic(tenant=name.tenant, name=name.name) for name in names]
        try:
            response = await self._controller.ask(
                CreateOnFirstUseRequest(topics=topics), CreateOnFirstUseResponse, timeout_ms=_TIMEOUT_MS
            )
        except ConnectionFailed as error:
            log.info("%s could not be created on first use: %s", ", ".join(map(str, names)), error.message)
            return
        finally:
            for name in names:
                self._under_way.pop(name, None)
        _log(response)


def _log(response: CreateOnFirstUseResponse) -> None:
    for result in response.results:
        name = Name(result.tenant, result.name)
        if result.error_code == ErrorCode.NONE:
            log.info("%s was created on first use", name)
        else:
            log.info("%s was not created on first use: %s", name, result.error_message)
