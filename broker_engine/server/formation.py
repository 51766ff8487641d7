"""Which cluster a node with a blank directory belongs to: it asks the nodes in `--quorum` before it does anything.

Somebody has a cluster id: that is the one. All of them are reachable and blank: the lowest id among the controllers
founds a new cluster, and the others learn of it. Else it waits: a node whose disk was wiped never founds a second one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import Clock, Randomness
from broker_engine.config import ConfigError
from broker_engine.errors import ErrorCode
from broker_engine.server.data_dir import DataDir, Meta, id_text
from broker_engine.server.peers import Peers
from broker_engine.wire.messages.internal_identify import IdentifyRequest, IdentifyResponse

log = logging.getLogger(__name__)

LANE = "identify"
_ASK_AGAIN_S = 0.1
_ANSWER_TIMEOUT_MS = 1_000
_CHECK_TIMEOUT_MS = 500
_LOG_AGAIN_MS = 5_000
_CONTRADICTIONS = (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.DUPLICATE_BROKER_REGISTRATION)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a node is. An empty cluster id: it belongs to none yet."""

    node_id: int
    cluster_id: str
    directory_id: UUID
    incarnation_id: UUID
    is_controller: bool = True


class Formation:
    def __init__(self, identity: Identity, named: tuple[int, ...], peers: Peers, clock: Clock) -> None:
        self._me = identity
        self._others = [node_id for node_id in named if node_id != identity.node_id]
        self._peers = peers
        self._clock = clock
        self._logged_ms: int | None = None

    async def join(self, data_dir: DataDir, randomness: Randomness) -> Meta:
        """Whose directory this is; a blank one becomes part of a cluster here, and stays with it."""
        meta = data_dir.load_meta(self._me.node_id)
        found = await self.find_cluster() if meta is None else meta.cluster_id
        if found is not None:
            await self._check_others(found)
        if meta is None:
            cluster_id = id_text(randomness.uuid()) if found is None else found
            meta = Meta(cluster_id, self._me.node_id, self._me.directory_id, is_founder=found is None)
            data_dir.write_meta(meta)
        return meta

    async def _check_others(self, cluster_id: str) -> None:
        """Who can be reached now must be of the same cluster, and know no other process of our number. Nobody is
        waited for: a node restarts alone.
        """
        request = self._request(cluster_id, is_twin_sought=True)
        for answer in (await self._ask_all(request, timeout_ms=_CHECK_TIMEOUT_MS)).values():
            if answer.error_code in _CONTRADICTIONS:
                raise ConfigError(f"{answer.error_message}: check --quorum, --node-id and --data-dir")

    async def find_cluster(self) -> str | None:
        """The cluster's id; None where this node founds a new one. ConfigError where the others contradict."""
        while True:
            answers = await self._ask_all(self._request(""), timeout_ms=_ANSWER_TIMEOUT_MS)
            cluster_ids = sorted({answer.cluster_id for answer in answers.values() if answer.cluster_id})
            if len(cluster_ids) > 1:
                raise ConfigError(f"--quorum names nodes of different clusters: {', '.join(cluster_ids)}")
            if cluster_ids:
                return cluster_ids[0]
            if self._is_founder(answers):
                return None
            self._log_waiting(answers)
            await asyncio.sleep(_ASK_AGAIN_S)

    def _is_founder(self, answers: Mapping[int, IdentifyResponse]) -> bool:
        if not self._me.is_controller or len(answers) < len(self._others):
            return False
        return all(self._me.node_id < node_id for node_id, answer in answers.items() if answer.is_controller)

    def _request(self, cluster_id: str, *, is_twin_sought: bool = False) -> IdentifyRequest:
        return IdentifyRequest(
            cluster_id=cluster_id,
            node_id=self._me.node_id,
            directory_id=self._me.directory_id,
            incarnation_id=self._me.incarnation_id,
            is_twin_sought=is_twin_sought,
        )

    async def _ask_all(self, request: IdentifyRequest, *, timeout_ms: int) -> dict[int, IdentifyResponse]:
        answers = await asyncio.gather(*(self._ask(node_id, request, timeout_ms) for node_id in self._others))
        return {node_id: answer for node_id, answer in zip(self._others, answers, strict=True) if answer is not None}

    async def _ask(self, node_id: int, request: IdentifyRequest, timeout_ms: int) -> IdentifyResponse | None:
        try:
            answer = await self._peers.ask(node_id, request, IdentifyResponse, lane=LANE, timeout_ms=timeout_ms)
        except ConnectionFailed:
            return None
        if answer.error_code == ErrorCode.NONE and answer.node_id != node_id:
            host, port = self._peers.address_of(node_id)
            raise ConfigError(f"{host}:{port} is node {answer.node_id}, not node {node_id}: check --quorum")
        return answer

    def _log_waiting(self, answers: Mapping[int, IdentifyResponse]) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._logged_ms is not None and now_ms - self._logged_ms < _LOG_AGAIN_MS:
            return
        self._logged_ms = now_ms
        missing = [str(node_id) for node_id in self._others if node_id not in answers]
        if missing:
            log.info("this directory is blank: waiting for node %s to say which cluster it is in", ", ".join(missing))
        else:
            log.info("this directory is blank, as those of all nodes: waiting for the one of lowest id to begin")
