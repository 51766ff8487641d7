"""DescribeQuorum (key 55), versions 0-2: who leads the metadata, who votes, who follows, and how far each is.

The leader answers: others pass the question on. Tenants have no quorum to see.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.names import CLUSTER_METADATA, ROOT
from broker_engine.quorum.election_state import VoterKey
from broker_engine.server.raft_node import RaftNode
from broker_engine.wire.messages.describe_quorum import (
    DescribeQuorumListener,
    DescribeQuorumNode,
    DescribeQuorumPartitionResult,
    DescribeQuorumReplicaState,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopicResult,
)

_UNKNOWN = -1


def handle(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    if call.tenant != ROOT:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    node = call.broker.metadata.node
    partitions = [_partition(each.partition_index, call) for topic in request.topics for each in topic.partitions]
    topic = DescribeQuorumTopicResult(topic_name=CLUSTER_METADATA, partitions=partitions)
    return DescribeQuorumResponse(error_message=None, topics=[topic], nodes=_nodes(node))


def _partition(index: int, call: Call) -> DescribeQuorumPartitionResult:
    core = call.broker.metadata.node.core
    if index != 0:
        return DescribeQuorumPartitionResult(
            partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=None
        )
    observers = [key for key in core.progress if key not in core.voters]
    return DescribeQuorumPartitionResult(
        error_message=None,
        leader_id=core.me.node_id,
        leader_epoch=core.epoch,
        high_watermark=_UNKNOWN if core.high_watermark is None else core.high_watermark,
        current_voters=[_replica(key, call) for key in core.voters.keys],
        observers=[_replica(key, call) for key in sorted(observers)],
    )


def _replica(key: VoterKey, call: Call) -> DescribeQuorumReplicaState:
    core, clock = call.broker.metadata.node.core, call.broker.clock
    now_ms = clock.now_ms()
    if key == core.me:
        end_offset, fetched_ms, caught_up_ms = core.log.end_offset, now_ms, now_ms
    else:
        progress, ago_ms = core.progress.get(key), now_ms - clock.monotonic_ms()
        end_offset = progress.durable_end_offset if progress is not None else _UNKNOWN
        fetched_ms = _wall_ms(progress.last_fetch_ms if progress is not None else None, ago_ms)
        caught_up_ms = _wall_ms(progress.last_caught_up_ms if progress is not None else None, ago_ms)
    return DescribeQuorumReplicaState(
        replica_id=key.node_id,
        replica_directory_id=key.directory_id,
        log_end_offset=end_offset,
        last_fetch_timestamp=fetched_ms,
        last_caught_up_timestamp=caught_up_ms,
    )


def _wall_ms(at_ms: int | None, wall_of_zero_ms: int) -> int:
    return _UNKNOWN if at_ms is None else at_ms + wall_of_zero_ms


def _nodes(node: RaftNode) -> list[DescribeQuorumNode]:
    return [
        DescribeQuorumNode(
            node_id=voter.key.node_id,
            # Kafka's clients take names of listeners in capitals only.
            listeners=[DescribeQuorumListener(name=e.name.upper(), host=e.host, port=e.port) for e in voter.endpoints],
        )
        for voter in node.core.voters.voters
    ]


def refuse(request: DescribeQuorumRequest, error: BrokerError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=error.message or None)


API = Api(request=DescribeQuorumRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_for_controller=True)
