"""Replicas whose logs could not be opened are tried again: the disk that was full or failing may be well by now."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

_AGAIN_S = 1.0
_AGAIN_S_MAX = 60.0


class Reopening:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def run(self) -> None:
        pause_s = _AGAIN_S
        while True:
            await asyncio.sleep(pause_s)
            if self._broker.partitions.unopened_count and not self._broker.disk_floor.is_low:
                pause_s = _AGAIN_S if await self._try_again() else min(2 * pause_s, _AGAIN_S_MAX)
            else:
                pause_s = _AGAIN_S

    async def _try_again(self) -> bool:
        opened_count = await self._broker.metadata.open_unopened_partitions()
        if not opened_count:
            return False
        log.warning("%d replicas are open now that could not be opened before", opened_count)
        self._broker.mender.look_for_damage()
        self._broker.groups.look_again()
        self._broker.transactions.look_again()
        return True
