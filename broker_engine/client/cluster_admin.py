"""Admin calls on the cluster itself: moves of replicas, elections, the quorum, brokers that leave, features."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from broker_engine.client.admin_model import (
    QuorumDescription,
    QuorumReplica,
    Reassignment,
)
from broker_engine.client.controller_calls import ControllerCalls
from broker_engine.client.errors import KafkaError, error_for
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages import alter_partition_reassignments as alter_api
from broker_engine.wire.messages import describe_quorum as quorum_api
from broker_engine.wire.messages import elect_leaders as elect_api
from broker_engine.wire.messages import list_partition_reassignments as list_api
from broker_engine.wire.messages import remove_raft_voter as remove_voter_api
from broker_engine.wire.messages import unregister_broker as unregister_api
from broker_engine.wire.messages import update_features as features_api

METADATA_TOPIC = "__cluster_metadata"
PREFERRED, UNCLEAN = 0, 1
_UPGRADE, _SAFE_DOWNGRADE = 1, 2

Outcomes = dict[TopicPartition, KafkaError | None]


class ClusterAdmin(ControllerCalls):
    async def alter_reassignments(
        self, moves: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int | None = None
    ) -> Outcomes:
        """New replicas for each partition, the preferred leader first; None ends a move that is under way.

        The answer says that the move has begun, not that it is done: `list_reassignments` tells what is left.
        """
        request = alter_api.AlterPartitionReassignmentsRequest(
            topics=[_reassignable(topic, parts) for topic, parts in _by_topic(moves).items()],
            timeout_ms=self._timeout_ms(timeout_ms),
        )
        answer = alter_api.AlterPartitionReassignmentsResponse
        response = await self._ask_controller(request, answer, lambda got: (got.error_code,))
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message, "move replicas")
        return {
            TopicPartition(topic.name, part.partition_index): _outcome(
                part.error_code, part.error_message, f"{topic.name}-{part.partition_index}"
            )
            for topic in response.responses
            for part in topic.partitions
        }

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """Every move that is under way."""
        request = list_api.ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms(None))
        answer = list_api.ListPartitionReassignmentsResponse
        response = await self._ask_controller(request, answer, lambda got: (got.error_code,))
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message, "list moves")
        return {
            TopicPartition(topic.name, part.partition_index): Reassignment(
                tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
            )
            for topic in response.topics
            for part in topic.partitions
        }

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, is_unclean: bool = False
    ) -> Outcomes:
        """The preferred leaders of these partitions, or of all. ELECTION_NOT_NEEDED (84) where they lead already.

        `is_unclean` takes any live replica where no other can lead: acknowledged records may be lost.
        """
        groups = None if partitions is None else _by_topic(dict.fromkeys(partitions))
        request = elect_api.ElectLeadersRequest(
            election_type=UNCLEAN if is_unclean else PREFERRED,
            topic_partitions=None
            if groups is None
            else [
                elect_api.ElectLeadersTopicPartitions(topic=name, partitions=list(them))
                for name, them in groups.items()
            ],
            timeout_ms=self._timeout_ms(None),
        )
        answer = elect_api.ElectLeadersResponse
        response = await self._ask_controller(request, answer, lambda got: (got.error_code,))
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, None, "elect leaders")
        return {
            TopicPartition(topic.topic, part.partition_id): _outcome(
                part.error_code, part.error_message, f"{topic.topic}-{part.partition_id}"
            )
            for topic in response.replica_election_results
            for part in topic.partition_result
        }

    async def unregister_broker(self, node: int) -> None:
        """Forget a broker that will not come back. Raises what the controller refuses it for."""
        request = unregister_api.UnregisterBrokerRequest(broker_id=node)
        answer = unregister_api.UnregisterBrokerResponse
        response = await self._ask_controller(request, answer, lambda got: (got.error_code,))
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message, f"unregister broker {node}")

    async def update_features(self, levels: Mapping[str, int], *, is_downgrade: bool = False) -> None:
        """All of them or none. Raises what they are refused for."""
        upgrade_type = _SAFE_DOWNGRADE if is_downgrade else _UPGRADE
        request = features_api.UpdateFeaturesRequest(
            feature_updates=[
                features_api.FeatureUpdate(feature=name, max_version_level=level, upgrade_type=upgrade_type)
                for name, level in levels.items()
            ],
            timeout_ms=self._timeout_ms(None),
        )
        answer = features_api.UpdateFeaturesResponse
        response = await self._ask_controller(request, answer, lambda got: (got.error_code,))
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message, "update features")

    async def describe_quorum(self) -> QuorumDescription:
        topic = quorum_api.DescribeQuorumTopic(
            topic_name=METADATA_TOPIC, partitions=[quorum_api.DescribeQuorumPartition(partition_index=0)]
        )
        request = quorum_api.DescribeQuorumRequest(topics=[topic])
        response = await self._ask_controller(request, quorum_api.DescribeQuorumResponse, _quorum_codes)
        for code in _quorum_codes(response):
            if code != ErrorCode.NONE:
                raise error_for(code, response.error_message, "describe the quorum")
        part = response.topics[0].partitions[0]
        return QuorumDescription(
            part.leader_id,
            part.leader_epoch,
            part.high_watermark,
            tuple(_replica(it) for it in part.current_voters),
            tuple(_replica(it) for it in part.observers),
        )

    async def remove_voter(self, node: int, directory_id: UUID) -> None:
        request = remove_voter_api.RemoveRaftVoterRequest(
            cluster_id=self._client.metadata.cluster_id, voter_id=node, voter_directory_id=directory_id
        )
        answer = remove_voter_api.RemoveRaftVoterResponse
        response = await self._ask_controller(request, answer, lambda got: (got.error_code,))
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message, f"remove voter {node}")


def _quorum_codes(response: quorum_api.DescribeQuorumResponse) -> list[int]:
    parts = [part for topic in response.topics for part in topic.partitions]
    return [response.error_code, *(part.error_code for part in parts)]


def _replica(state: quorum_api.DescribeQuorumReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id, state.replica_directory_id, state.log_end_offset, state.last_caught_up_timestamp
    )


def _by_topic(
    partitions: Mapping[TopicPartition, Sequence[int] | None],
) -> dict[str, dict[int, Sequence[int] | None]]:
    groups: defaultdict[str, dict[int, Sequence[int] | None]] = defaultdict(dict)
    for (topic, index), value in partitions.items():
        groups[topic][index] = value
    return groups


def _reassignable(topic: str, parts: Mapping[int, Sequence[int] | None]) -> alter_api.ReassignableTopic:
    return alter_api.ReassignableTopic(
        name=topic,
        partitions=[
            alter_api.ReassignablePartition(
                partition_index=index, replicas=None if replicas is None else list(replicas)
            )
            for index, replicas in parts.items()
        ],
    )


def _outcome(code: int, message: str | None, context: str) -> KafkaError | None:
    return None if code == ErrorCode.NONE else error_for(code, message, context)
