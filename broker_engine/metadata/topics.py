"""Commands on topics: create (by request or on first use), delete, add partitions. Answers as Kafka 4.3.1's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from broker_engine.config.broker import BrokerConfig
from broker_engine.config.topic import validate_topic_configs
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.ids import NO_LEADER, NO_TOPIC_ID
from broker_engine.metadata.decision import Decision, invalid_request, repeated
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import TopicImage
from broker_engine.metadata.placement import place, starts_of
from broker_engine.metadata.policy import violation
from broker_engine.metadata.records import (
    RESOURCE_TOPIC,
    ConfigRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from broker_engine.names import (
    CONSUMER_OFFSETS,
    PARTITION_COUNT_MAX,
    ROOT,
    TRANSACTION_STATE,
    Name,
    check_topic_name,
    collision_key,
    is_internal_topic,
)

OFFSETS_TOPIC = Name(ROOT, CONSUMER_OFFSETS)
TRANSACTIONS_TOPIC = Name(ROOT, TRANSACTION_STATE)
UNSET = -1
"""Kafka's "use the default" for partitions and replication factor."""

NewId = Callable[[], UUID]


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: Name
    partition_count: int = UNSET
    replication_factor: int = UNSET
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """(partition, brokers) each, for a manual placement."""
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicResult:
    name: Name | None
    """None for an id that names nothing."""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topic_id: UUID = NO_TOPIC_ID
    partition_count: int = UNSET
    replication_factor: int = UNSET
    configs: Mapping[str, str] = field(default_factory=dict)
    """The overrides; `config.describe_topic` makes rows of them."""


@dataclass(frozen=True, slots=True)
class NewPartitions:
    name: Name
    partition_count: int
    """In all, not besides."""
    assignments: Sequence[Sequence[int]] | None = None


# --- create


def create_topics(
    image: MetadataImage,
    topics: Sequence[NewTopic],
    *,
    config: BrokerConfig,
    new_id: NewId,
    validate_only: bool = False,
) -> Decision[TopicResult]:
    """One result per name. A name that stands twice is refused once; each topic counts for the ones after it."""
    twice = repeated(topic.name for topic in topics)
    working, records, results = image, list[Record](), list[TopicResult]()
    for topic in _first_of_each(topics):
        try:
            if topic.name in twice:
                raise invalid_request("Duplicate topic name.")
            made, result = _create_topic(working, topic, config, new_id)
        except BrokerError as error:
            results.append(TopicResult(topic.name, error.code, error.message))
            continue
        working = working.replay(made, working.next_offset)
        records += made
        results.append(result)
    return Decision(() if validate_only else tuple(records), tuple(results))


def create_on_first_use(
    image: MetadataImage, names: Iterable[Name], *, config: BrokerConfig, new_id: NewId
) -> Decision[TopicResult]:
    """The same rules and policy as a request; where creation on first use is off, the topic simply stays unknown."""
    names = list(dict.fromkeys(names))
    allowed, refused = list[NewTopic](), list[TopicResult]()
    for name in names:
        is_allowed = config.auto_create_topics_enable and image.policy(name.tenant).auto_create
        if name in _COORDINATORS_TOPICS and config.internal_factor_problem is not None:
            refused.append(TopicResult(name, ErrorCode.INVALID_REPLICATION_FACTOR, config.internal_factor_problem))
        elif name in _COORDINATORS_TOPICS:
            allowed.append(_COORDINATORS_TOPICS[name](config))
        elif is_allowed and not is_internal_topic(name):
            allowed.append(NewTopic(name))
        else:
            refused.append(
                TopicResult(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topics are not created on first use")
            )
    decision = create_topics(image, allowed, config=config, new_id=new_id)
    by_name = {result.name: result for result in (*decision.results, *refused)}
    return dataclasses.replace(decision, results=tuple(by_name[name] for name in names))


def offsets_topic(config: BrokerConfig) -> NewTopic:
    """`__consumer_offsets`, which the first question for a coordinator makes."""
    return NewTopic(
        OFFSETS_TOPIC,
        partition_count=config.offsets_topic_num_partitions,
        replication_factor=config.offsets_topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
            "ack.durability": "fsync",
        },
    )


def transactions_topic(config: BrokerConfig) -> NewTopic:
    """`__transaction_state`, likewise."""
    return NewTopic(
        TRANSACTIONS_TOPIC,
        partition_count=config.transaction_state_log_num_partitions,
        replication_factor=config.transaction_state_log_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
            "ack.durability": "fsync",
        },
    )


_COORDINATORS_TOPICS = {OFFSETS_TOPIC: offsets_topic, TRANSACTIONS_TOPIC: transactions_topic}


def _first_of_each(topics: Sequence[NewTopic]) -> Iterable[NewTopic]:
    unique: dict[Name, NewTopic] = {}
    for topic in topics:
        unique.setdefault(topic.name, topic)
    return unique.values()


def _create_topic(
    image: MetadataImage, topic: NewTopic, config: BrokerConfig, new_id: NewId
) -> tuple[list[Record], TopicResult]:
    _check_new_name(image, topic.name)
    validate_topic_configs(topic.configs)
    topic_id = new_id()
    placed = _placed_by_hand(image, topic) if topic.assignments else _placed(image, topic, topic_id, config)
    _check_policy(image, topic.name, len(placed), added_count=len(placed))
    configs = {name: value for name, value in topic.configs.items() if value is not None}
    name = topic.name
    records: list[Record] = [TopicRecord(tenant=name.tenant, name=name.name, topic_id=topic_id)]
    records += [_new_partition(image, topic_id, index, replicas) for index, replicas in enumerate(placed)]
    records += [_topic_config(name, key, value) for key, value in configs.items()]
    return records, TopicResult(
        name, topic_id=topic_id, partition_count=len(placed), replication_factor=len(placed[0]), configs=configs
    )


def _check_new_name(image: MetadataImage, name: Name) -> None:
    check_topic_name(name.name)
    if name.tenant in image.removed_tenants:
        raise violation("tenant", "the tenant was removed")
    existing = image.namespace(name.tenant).by_collision_key.get(collision_key(name.name))
    if existing == name.name:
        raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name.name}' already exists.")
    if existing is not None:
        text = f"Topic '{name.name}' collides with existing topic: {existing}"
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    image.policy(name.tenant).check_name(name.name)


def _check_policy(image: MetadataImage, name: Name, partition_count: int, *, added_count: int) -> None:
    total = image.namespace(name.tenant).partition_count + added_count
    image.policy(name.tenant).check_partitions(partition_count, total)


def _placed(image: MetadataImage, topic: NewTopic, topic_id: UUID, config: BrokerConfig) -> list[tuple[int, ...]]:
    factor = config.default_replication_factor if topic.replication_factor == UNSET else topic.replication_factor
    if factor < 1:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    count = topic.partition_count
    if count == UNSET:
        count = image.policy(topic.name.tenant).default_partitions or config.num_partitions
    _check_partition_count(count)
    return _place_on_live(image, topic_id, range(count), factor)


def _check_partition_count(count: int) -> None:
    if count < 1:
        text = "Number of partitions was set to an invalid non-positive value."
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, text)
    if count > PARTITION_COUNT_MAX:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"A topic has at most {PARTITION_COUNT_MAX} partitions.")


def _place_on_live(image: MetadataImage, topic_id: UUID, partitions: range, factor: int) -> list[tuple[int, ...]]:
    """contracts.md section 6: with fewer live brokers than replicas the caller tries again later."""
    live = [broker for broker in image.brokers.values() if broker.is_active]
    if factor > len(live):
        text = f"Unable to replicate the partition {factor} time(s): only {len(live)} broker(s) are alive."
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    start, shift = starts_of(topic_id, len(live))
    return place(live, partitions, factor, start=start, shift=shift)


def _placed_by_hand(image: MetadataImage, topic: NewTopic) -> list[tuple[int, ...]]:
    for what, value in (("replication factor", topic.replication_factor), ("numPartitions", topic.partition_count)):
        if value != UNSET:
            raise invalid_request(f"A manual partition assignment was specified, but {what} was not set to -1.")
    _check_partition_count(len(topic.assignments))
    by_index = {index: tuple(brokers) for index, brokers in topic.assignments}
    if len(by_index) != len(topic.assignments):
        raise _bad_assignment("Found multiple manual partition assignments for one partition.")
    if sorted(by_index) != list(range(len(by_index))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence.")
    placed = [by_index[index] for index in sorted(by_index)]
    _check_by_hand(image, placed, expected_factor=len(placed[0]))
    return placed


def _check_by_hand(image: MetadataImage, placed: Sequence[Sequence[int]], *, expected_factor: int) -> None:
    for index, brokers in enumerate(placed):
        if not brokers:
            raise _bad_assignment("The manual partition assignment includes an empty replica list.")
        if len(set(brokers)) != len(brokers):
            raise _bad_assignment("The manual partition assignment includes the same broker more than once.")
        for broker_id in brokers:
            if broker_id not in image.brokers:
                raise _bad_assignment(f"The manual partition assignment includes unregistered broker {broker_id}.")
        if len(brokers) != expected_factor:
            raise _bad_assignment(f"Partition {index} has {len(brokers)} replicas, the others have {expected_factor}.")
        if not any(image.brokers[broker_id].is_active for broker_id in brokers):
            raise _bad_assignment(f"All brokers of partition {index} are fenced.")


def _bad_assignment(text: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _new_partition(image: MetadataImage, topic_id: UUID, index: int, replicas: Sequence[int]) -> PartitionRecord:
    isr = [broker_id for broker_id in replicas if image.brokers[broker_id].is_active]
    leader = isr[0] if isr else NO_LEADER
    return PartitionRecord(topic_id=topic_id, partition=index, replicas=list(replicas), isr=isr, leader=leader)


def _topic_config(name: Name, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        tenant=name.tenant, resource_type=RESOURCE_TOPIC, resource_name=name.name, name=key, value=value
    )


# --- delete


def delete_topics(
    image: MetadataImage, topics: Sequence[Name | UUID], *, viewer_tenant: str, is_root: bool, config: BrokerConfig
) -> Decision[TopicResult]:
    """By name or id. A topic that the viewer may not see is unknown: 3 by name, 100 by id."""
    twice = repeated(topics)
    named = repeated(
        found.id for found in (_find(image, ref, viewer_tenant, is_root) for ref in dict.fromkeys(topics)) if found
    )
    records, results = list[Record](), list[TopicResult]()
    for ref in dict.fromkeys(topics):
        name, topic_id = (ref, NO_TOPIC_ID) if isinstance(ref, Name) else (None, ref)
        try:
            topic = _topic_to_delete(_find(image, ref, viewer_tenant, is_root), ref, ref in twice, named, config)
        except BrokerError as error:
            results.append(TopicResult(name, error.code, error.message, topic_id=topic_id))
            continue
        records.append(remove_topic_record(topic))
        results.append(TopicResult(topic.name, topic_id=topic.id))
    return Decision(tuple(records), tuple(results))


def remove_topic_record(topic: TopicImage) -> RemoveTopicRecord:
    return RemoveTopicRecord(tenant=topic.name.tenant, name=topic.name.name, topic_id=topic.id)


def _find(image: MetadataImage, ref: Name | UUID, viewer_tenant: str, is_root: bool) -> TopicImage | None:
    topic = image.topic(ref) if isinstance(ref, Name) else image.topic_by_id(ref)
    return topic if topic is not None and (is_root or topic.name.tenant == viewer_tenant) else None


def _topic_to_delete(
    topic: TopicImage | None, ref: Name | UUID, is_twice: bool, named_twice: frozenset[UUID], config: BrokerConfig
) -> TopicImage:
    if is_twice:
        raise invalid_request(f"Duplicate topic {'name' if isinstance(ref, Name) else 'id'}.")
    if topic is None:
        by_name = isinstance(ref, Name)
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID, "")
    if topic.id in named_twice:
        raise invalid_request("The topic is given by name and by id.")
    if not config.delete_topic_enable:
        raise BrokerError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this cluster.")
    return topic


# --- add partitions


def create_partitions(
    image: MetadataImage, requests: Sequence[NewPartitions], *, validate_only: bool = False
) -> Decision[TopicResult]:
    twice = repeated(request.name for request in requests)
    working, records, results = image, list[Record](), list[TopicResult]()
    for request in {request.name: request for request in requests}.values():
        try:
            if request.name in twice:
                raise invalid_request("Duplicate topic name.")
            made = _add_partitions(working, request)
        except BrokerError as error:
            results.append(TopicResult(request.name, error.code, error.message))
            continue
        working = working.replay(made, working.next_offset)
        records += made
        results.append(TopicResult(request.name, partition_count=request.partition_count))
    return Decision(() if validate_only else tuple(records), tuple(results))


def _add_partitions(image: MetadataImage, request: NewPartitions) -> list[PartitionRecord]:
    topic = image.topic(request.name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    current, count = topic.partition_count, request.partition_count
    if count == current:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if count < current:
        text = f"The topic currently has {current} partition(s); {count} would not be an increase."
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, text)
    _check_partition_count(count)
    _check_policy(image, topic.name, count, added_count=count - current)
    added = range(current, count)
    placed = _placed_for(image, topic, added, request.assignments)
    return [_new_partition(image, topic.id, index, replicas) for index, replicas in zip(added, placed, strict=True)]


def _placed_for(
    image: MetadataImage, topic: TopicImage, added: range, assignments: Sequence[Sequence[int]] | None
) -> Sequence[Sequence[int]]:
    if assignments is None:
        return _place_on_live(image, topic.id, added, topic.replication_factor)
    if len(assignments) != len(added):
        raise _bad_assignment(f"{len(added)} partition(s) are added, but {len(assignments)} assignment(s) were given.")
    _check_by_hand(image, assignments, expected_factor=topic.replication_factor)
    return assignments
