"""Who a replica is in its partition's present term, as the metadata image says: its leader, or a follower."""

from __future__ import annotations

from broker_engine.clock import Clock
from broker_engine.config import BrokerConfig, TopicConfig
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.metadata.image import PartitionImage
from broker_engine.partition.core import IsEligible, PartitionCore
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.partition.replica import PartitionSettings, ReplicaCore
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.topic_settings import partition_settings


class RoleMaker:
    def __init__(self, node_id: int, config: BrokerConfig, clock: Clock, is_eligible: IsEligible) -> None:
        self._node_id = node_id
        self._config = config
        self._clock = clock
        self._is_eligible = is_eligible

    def first_core(
        self, state: PartitionImage, config: TopicConfig, log: ReplicaLog, high_watermark: int
    ) -> PartitionCore | FollowerCore:
        """Of a replica that was just opened; `high_watermark` is what its last life left in the checkpoint."""
        return self._core(state, log, high_watermark, partition_settings(config, self._config))

    def next_core(self, state: PartitionImage, local: LocalPartition) -> PartitionCore | FollowerCore:
        """A new term begins with the log, the high watermark, the producers and the refusals of the last one."""
        core = local.core
        return self._core(state, local.log, core.high_watermark, core.settings, core)

    def _core(
        self,
        state: PartitionImage,
        log: ReplicaLog,
        high_watermark: int,
        settings: PartitionSettings,
        last: ReplicaCore | None = None,
    ) -> PartitionCore | FollowerCore:
        producers, refusals = (None, None) if last is None else (last.producers, last.refusals)
        if state.leader != self._node_id:
            return FollowerCore(
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                replicas=state.replicas,
                isr=state.isr,
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
                durable_end_offset=log.durable_end_offset,
                high_watermark=high_watermark,
                settings=settings,
                producers=producers,
                refusals=refusals,
            )
        return PartitionCore(
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=state.isr,
            node_id=self._node_id,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            durable_end_offset=log.durable_end_offset,
            high_watermark=high_watermark,
            settings=settings,
            producers=producers,
            refusals=refusals,
            is_eligible=self._is_eligible,
            now_ms=self._clock.monotonic_ms(),
        )


def follow_image(local: LocalPartition, state: PartitionImage, roles: RoleMaker) -> bool:
    """True if the replica has another role or term from now on."""
    if state.leader_epoch != local.leader_epoch or state.leader != local.leader_id:
        local.change_role(roles.next_core(state, local), state.leader)
        return True
    if local.leading is not None:
        local.perform(local.leading.on_metadata(state))
    elif local.following is not None:
        local.following.on_metadata(state.replicas, state.isr, state.partition_epoch)
    local.note_changed()
    return False
