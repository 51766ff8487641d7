"""The leader makes voters of nodes that `--quorum` names, one at a time, once they follow the log closely.

A node that comes back with another directory lost its disk: the voter that it was is removed first. Nodes that are not
named stay observers, until somebody adds them by hand (AddRaftVoter).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from uuid import UUID

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import BrokerError
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.voter_set import Voter
from broker_engine.server.peers import Peers
from broker_engine.server.supervisor import Supervisor
from broker_engine.wire.messages.internal_identify import IdentifyRequest, IdentifyResponse

if TYPE_CHECKING:
    from broker_engine.server.metadata_driver import MetadataDriver

log = logging.getLogger(__name__)

_LOOK_S = 0.1
_LANE = "identify"
_ANSWER_TIMEOUT_MS = 1_000
_NO_DIRECTORY = UUID(int=0)


class VoterJoiner:
    def __init__(self, driver: MetadataDriver, named_ids: tuple[int, ...], peers: Peers | None = None) -> None:
        self._driver = driver
        self._named_ids = named_ids
        self._peers = peers
        self._tasks = Supervisor()

    def on_leadership(self, is_leader: bool) -> None:
        if is_leader and len(self._named_ids) > 1:
            self._tasks = Supervisor()
            self._tasks.keep_running(self._run, "voters")
        elif not is_leader:
            self._tasks.cancel()

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            for key in self._candidates():
                try:
                    if await self._is_at_home(key):
                        await self._let_in(key)
                except BrokerError as error:
                    log.info("node %d is not a voter yet: %s", key.node_id, error)

    async def _is_at_home(self, key: VoterKey) -> bool:
        """Whether the node's own address says the same. Else a second process with its number could take its vote."""
        if self._peers is None:
            return True
        try:
            answer = await self._peers.ask(
                key.node_id, IdentifyRequest(), IdentifyResponse, lane=_LANE, timeout_ms=_ANSWER_TIMEOUT_MS
            )
        except ConnectionFailed:
            return False
        return answer.directory_id == key.directory_id

    def _candidates(self) -> list[VoterKey]:
        core = self._driver.node.core
        observers = [
            key
            for key in core.progress
            if key not in core.voters and key.directory_id != _NO_DIRECTORY and key.node_id != core.me.node_id
        ]
        return sorted(key for key in observers if key.node_id in self._named_ids and core.is_caught_up(key))

    async def _let_in(self, key: VoterKey) -> None:
        for voter in self._driver.voters.voters:
            if voter.key.node_id == key.node_id and voter.key != key:
                log.warning("node %d came back with another directory: the voter that it was is removed", key.node_id)
                await self._driver.remove_voter(voter.key)
        await self._driver.add_voter(Voter(key))
