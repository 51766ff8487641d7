"""Replicas: rules 6, 10, 11, 12, 16, 17 after each event, and at the end 4, 5, 13, 34 and 36 on the bytes.

14 and 23 are in advance_oracle.py. 15 is the history checker's, by the ends that readers are told; that a high
watermark never falls, the engine asserts, and a failed assertion is a finding.

The truth of a partition is the highest high watermark that any leader ever had, with the epoch of the record below it:
that far clients were told that their records are safe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from broker_engine.errors import BrokerError
from broker_engine.metadata.image import PartitionImage
from broker_engine.partition.core import PartitionCore
from broker_engine.server.broker import Broker
from broker_engine.server.local_partition import LocalPartition
from broker_engine.simulator.cluster import SimCluster
from broker_engine.simulator.index_oracle import index_problems
from broker_engine.simulator.metadata_oracle import NO_LEADER, MetadataOracle
from broker_engine.simulator.producer_oracle import ProducerCheck
from broker_engine.simulator.workload import read_bytes

Violate = Callable[[str, str], None]
Key = tuple[UUID, int]
_READ_BYTES_MAX = 1 << 24


@dataclass(slots=True)
class Truth:
    high_watermark: int = 0
    epoch: int = -1
    """Of the record below the high watermark."""
    told_by: int = 0


class PartitionOracle:
    def __init__(
        self, cluster: SimCluster, metadata: MetadataOracle, losing_topics: frozenset[str], violate: Violate
    ) -> None:
        self.truths: dict[Key, Truth] = {}
        self._cluster = cluster
        self._metadata = metadata
        self._losing_topics = losing_topics
        self._violate = violate
        self._stamps: dict[LocalPartition, tuple[object, ...]] = {}
        self._image_seen: object = None
        self._first_in_sync: dict[Key, tuple[int, tuple[int, ...]]] = {}
        """By leader epoch: who has been in sync since the term began."""

    def look_at(self, node_id: int, broker: Broker) -> None:
        for local in broker.partitions.all():
            core = local.core
            stamp = (core, core.high_watermark, core.log_end_offset, core.durable_end_offset, core.isr)
            seen = self._stamps.get(local)
            if seen != stamp:
                self._stamps[local] = stamp
                if seen is not None:
                    self._check_cut(node_id, local, seen)
                if local.busy is None and not local.is_retired:
                    self._on_changed(node_id, local)
        if self._metadata.newest is not self._image_seen:
            self._image_seen = self._metadata.newest
            self._check_all_candidates()

    def _check_cut(self, node_id: int, local: LocalPartition, seen: tuple[object, ...]) -> None:
        """17: a follower cuts what its leader's log does not have, and that is never what it knew to be committed."""
        high_watermark, end_offset = seen[1], local.log.log_end_offset
        assert isinstance(high_watermark, int)
        if end_offset < high_watermark and local.name.name not in self._losing_topics and not local.is_retired:
            text = f"{local.name}-{local.index} on node {node_id} ends at {end_offset}, and knew {high_watermark}"
            self._violate("17 what is committed is not cut", text)

    def _on_changed(self, node_id: int, local: LocalPartition) -> None:
        core, key = local.core, (local.topic_id, local.index)
        name = f"{local.name}-{local.index} on node {node_id}"
        if not core.log_start_offset <= core.high_watermark <= core.log_end_offset:
            offsets = (core.log_start_offset, core.high_watermark, core.log_end_offset)
            self._violate("6 start <= high watermark <= end", f"{name}: {offsets}")
        if core.last_stable_offset > core.high_watermark:
            text = f"{name}: stable to {core.last_stable_offset}, committed to {core.high_watermark}"
            self._violate("6 what is stable is committed", text)
        if local.name.name in self._losing_topics:
            return
        truth = self.truths.setdefault(key, Truth())
        if local.leading is not None:
            self._check_leader(node_id, local, truth, name)
        self._check_candidates(key, local.name.name)

    def _check_leader(self, node_id: int, local: LocalPartition, truth: Truth, name: str) -> None:
        core, log = local.core, local.log
        if core.high_watermark > truth.high_watermark:
            truth.high_watermark, truth.told_by = core.high_watermark, node_id
            truth.epoch = log.epoch_of(core.high_watermark - 1)
        state = self._state((local.topic_id, local.index))
        if state is None or state.leader != node_id or state.leader_epoch != core.leader_epoch:
            return
        if log.log_end_offset < truth.high_watermark:
            text = f"{name} leads and ends at {log.log_end_offset}, committed is {truth}"
            self._violate("10 a leader has every committed record", text)
        elif truth.high_watermark > max(0, log.log_start_offset):
            epoch = log.epoch_of(truth.high_watermark - 1)
            if epoch != truth.epoch:
                text = f"{name} leads and has epoch {epoch} below the committed end: {truth}"
                self._violate("10 a leader has every committed record", text)

    def _check_maximal_isr(self, local: LocalPartition, state: PartitionImage, name: str) -> None:
        assert local.leading is not None
        if local.core.partition_epoch > state.partition_epoch:
            return  # replicas follow an image before anybody shows it
        min_insync = local.core.settings.min_insync_replicas
        missing = [member for member in state.isr if member not in local.leading.maximal_isr]
        if missing and len(state.isr) >= min_insync:
            text = f"{name}: the controller counts {state.isr}, the leader {local.leading.maximal_isr}"
            self._violate("12 the leader waits for all whom the controller counts", text)

    def _check_all_candidates(self) -> None:
        for topic in self._metadata.newest.topics.values():
            if topic.name.name not in self._losing_topics:
                for index in topic.partitions:
                    self._check_candidates((topic.id, index), topic.name.name)

    def _check_candidates(self, key: Key, name: str) -> None:
        """11: whoever may be elected has everything that is committed."""
        state, truth = self._state(key), self.truths.get(key)
        if state is None or truth is None:
            return
        leader = self._registered_replica(state.leader, key)
        if leader is not None and leader.leading is not None and leader.leader_epoch == state.leader_epoch:
            if leader.core.partition_epoch > state.partition_epoch:
                return  # the controller's answer is faster than its image: soon there will be one that says the same
            self._check_maximal_isr(leader, state, f"{name}-{key[1]} on node {state.leader}")
            self._check_joined(key, name, state, leader.leading)
        for member in (*state.isr, *state.elr):
            local = self._registered_replica(member, key)
            if local is None or local.busy is not None:
                continue
            is_fsync = local.core.is_fsync
            end_offset = local.log.durable_end_offset if is_fsync else local.log.log_end_offset
            if end_offset < truth.high_watermark:
                what = "is durable to" if is_fsync else "ends at"
                text = f"{name}-{key[1]}: node {member} {what} {end_offset}, committed is {truth}; {state}"
                self._violate("11 candidates have every committed record", text)

    def _check_joined(self, key: Key, name: str, state: PartitionImage, leading: PartitionCore) -> None:
        """16: who comes into sync with a leader has all that was there when its term began."""
        epoch, first = self._first_in_sync.get(key, (-1, ()))
        first = tuple(member for member in first if member in state.isr) if epoch == state.leader_epoch else state.isr
        self._first_in_sync[key] = state.leader_epoch, first
        for member in state.isr:
            local = None if member in first else self._registered_replica(member, key)
            if local is None or local.busy is not None or local.leader_epoch != state.leader_epoch:
                continue
            if local.log.log_end_offset < leading.epoch_start_offset:
                text = f"{name}-{key[1]}: node {member} ends at {local.log.log_end_offset}, the term began at"
                self._violate("16 who joins has the term's beginning", f"{text} {leading.epoch_start_offset}")

    def _registered_replica(self, node_id: int, key: Key) -> LocalPartition | None:
        """On a node whose present life the controller knows."""
        node = self._cluster.nodes.get(node_id)
        broker = None if node is None else node.broker
        if broker is None or not broker.has_joined:
            return None
        registered = self._metadata.newest.brokers.get(node_id)
        if registered is None or registered.incarnation_id != broker.identity.incarnation_id:
            return None
        return broker.partitions.find(*key)

    def _state(self, key: Key) -> PartitionImage | None:
        topic = self._metadata.newest.topics.get(key[0])
        return None if topic is None else topic.partitions.get(key[1])

    # --- at the end

    def check_at_end(self, brokers: dict[int, Broker]) -> None:
        for topic in self._metadata.newest.topics.values():
            for index, state in topic.partitions.items():
                replicas = {}
                for node_id in state.replicas:
                    local = brokers[node_id].partitions.find(topic.id, index) if node_id in brokers else None
                    if local is not None:
                        replicas[node_id] = local
                if state.leader != NO_LEADER:
                    self._check_bytes(f"{topic.name}-{index}", replicas)
                if state.leader in replicas and not topic.name.name.startswith("__"):
                    ProducerCheck(f"{topic.name}-{index}", replicas[state.leader], self._violate).run()

    def _check_bytes(self, name: str, replicas: dict[int, LocalPartition]) -> None:
        """13, and 4 for each."""
        logs = [local.log for local in replicas.values()]
        if not logs:
            return
        start = max(log.log_start_offset for log in logs)
        end = min(local.core.high_watermark for local in replicas.values())
        contents: dict[int, bytes] = {}
        for node_id, local in replicas.items():
            contents[node_id] = stored_bytes(local, start, end)
            self._check_epochs(f"{name} on node {node_id}", local)
            for problem in index_problems(local.log):
                self._violate("5 indexes say what the log says", f"{name} on node {node_id}: {problem}")
        if len(set(contents.values())) > 1:
            sizes = {node_id: len(data) for node_id, data in contents.items()}
            self._violate("13 replicas agree on every byte", f"{name} from {start} to {end}: {sizes}")

    def _check_epochs(self, name: str, local: LocalPartition) -> None:
        last_offset, last_epoch = -1, -1
        for header, _ in local.log.iter_batches(local.log.log_start_offset):
            epoch = header.partition_leader_epoch
            if header.base_offset <= last_offset or epoch < last_epoch:
                self._violate("4 offsets rise, epochs never fall", f"{name} at {header.base_offset}")
            if local.log.epoch_of(header.base_offset) != epoch:
                self._violate("4 the epoch cache is what the batches say", f"{name} at {header.base_offset}")
            last_offset, last_epoch = header.base_offset + header.last_offset_delta, epoch


def stored_bytes(local: LocalPartition, start: int, end: int) -> bytes:
    """Whole batches from `start` up to the one that reaches `end`."""
    pieces, offset = [], start
    for header, _ in list(local.log.iter_batches(start)):
        if header.base_offset >= end:
            break
        try:
            pieces.append(read_bytes(local.log, header.base_offset, header.size_bytes))
        except BrokerError as error:
            pieces.append(f"{offset}: {error}".encode())
        offset = header.base_offset + header.last_offset_delta + 1
    return b"".join(pieces)
