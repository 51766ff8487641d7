"""Metadata (key 3), versions 0-13. Brokers are named by the address of the caller's own listener, the cluster by the
id that the caller's tenant knows. A missing topic is created on first use where config and the tenant's policy allow
it: the answer is 3 and the client asks again, as with Kafka 4. Left out: authorized operations (no ACLs yet),
129 of v13.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.shown_cluster import controller_id, offline_replicas
from broker_engine.handlers.topics import topic_by_id, topic_by_name, visible_topics, wire_name
from broker_engine.ids import NO_LEADER, NO_TOPIC_ID
from broker_engine.metadata.image import PartitionImage, TopicImage
from broker_engine.names import from_wire, is_internal_topic, is_valid_topic_name
from broker_engine.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_FIRST_VERSION_BY_ID = 12
_FIRST_VERSION_WITH_NULL = 1
ELECTION_WAIT_MS = 300
"""Another controller, if the dead leader was the controller too, takes half of that."""


def handle(request: MetadataRequest, call: Call) -> MetadataResponse | Awaitable[MetadataResponse]:
    return _after_election(request, call) if _doubt_ms(call) else _response(request, call)


async def _after_election(request: MetadataRequest, call: Call) -> MetadataResponse:
    """Some milliseconds after a leader's death there is another one. librdkafka, told meanwhile that there is none,
    asks again at once only if a request of its own was under way, else up to a second later.
    """
    clock = call.broker.clock
    until_ms = clock.monotonic_ms() + ELECTION_WAIT_MS
    while (wait_ms := min(_doubt_ms(call), until_ms - clock.monotonic_ms())) > 0:
        await call.broker.metadata.wait_for_news(wait_ms / 1000)
    return _response(request, call)


def _doubt_ms(call: Call) -> int:
    """How long a broker that the metadata still calls alive will count as gone here; 0: there is none."""
    peers, brokers = call.broker.peers, call.broker.image.brokers.values()
    return max((peers.gone_for_ms(broker.id) for broker in brokers if broker.is_active), default=0)


def _response(request: MetadataRequest, call: Call) -> MetadataResponse:
    broker = call.broker
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in broker.nodes_for(call.session.listener)
        ],
        cluster_id=broker.cluster_id_for(call.principal),
        controller_id=controller_id(call),
        topics=_topics(request, call),
    )


def refuse(request: MetadataRequest, error: BrokerError) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(error_code=error.code, name=topic.name, topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics)


def _topics(request: MetadataRequest, call: Call) -> list[MetadataResponseTopic]:
    is_all = request.topics is None or (call.version < _FIRST_VERSION_WITH_NULL and not request.topics)
    if is_all:
        return [_describe(topic, call) for topic in visible_topics(call)]
    assert request.topics is not None
    missing: list[str] = []
    answers = [_answer(topic, call, missing) for topic in _unique(request.topics)]
    if missing and request.allow_auto_topic_creation:
        if _are_too_few_alive(call):
            _say_no_leader_yet(answers, missing)
        call.broker.create_on_first_use([from_wire(name, call.tenant) for name in missing], call.principal)
    return answers


def _are_too_few_alive(call: Call) -> bool:
    """For a topic of the default factor: it cannot be made now (contracts.md section 6)."""
    live_count = sum(broker.is_active for broker in call.broker.image.brokers.values())
    return live_count < call.broker.config.default_replication_factor


def _say_no_leader_yet(answers: Iterable[MetadataResponseTopic], missing: Iterable[str]) -> None:
    """Clients try again on 5; on 3 some of them give up."""
    waiting = frozenset(missing)
    for answer in answers:
        if answer.name in waiting:
            answer.error_code = ErrorCode.LEADER_NOT_AVAILABLE


def _unique(topics: Iterable[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    """By id where one is given: beside it a name means nothing, and a thousand names would be a thousand answers."""
    return {topic.name if topic.topic_id == NO_TOPIC_ID else topic.topic_id: topic for topic in topics}.values()


def _answer(asked: MetadataRequestTopic, call: Call, missing: list[str]) -> MetadataResponseTopic:
    if asked.topic_id != NO_TOPIC_ID:
        return _answer_by_id(asked, call)
    name = asked.name
    if name is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None)
    topic = topic_by_name(call, name)
    if topic is not None:
        return _describe(topic, call)
    if not is_valid_topic_name(from_wire(name, call.tenant).name):
        return MetadataResponseTopic(error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, name=name)
    missing.append(name)
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)


def _answer_by_id(asked: MetadataRequestTopic, call: Call) -> MetadataResponseTopic:
    if call.version < _FIRST_VERSION_BY_ID:
        # v10 and v11 can carry an id in a request, but only the answer was meant to have one.
        return MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id
        )
    topic = topic_by_id(call, asked.topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)
    return _describe(topic, call)


def _describe(topic: TopicImage, call: Call) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=wire_name(call, topic),
        topic_id=topic.id,
        is_internal=is_internal_topic(topic.name),
        partitions=[_partition(index, topic.partitions[index], call) for index in sorted(topic.partitions)],
    )


def _partition(index: int, partition: PartitionImage, call: Call) -> MetadataResponsePartition:
    # A leader that has just died is no answer: a client that hears of none asks again within 100 ms, one that hears of
    # the dead one may wait for a second or more.
    is_led = partition.leader != NO_LEADER and not call.broker.peers.is_gone(partition.leader)
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader if is_led else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline_replicas(call.broker.image, partition),
    )


API = Api(request=MetadataRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
