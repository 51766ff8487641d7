from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.config import BrokerConfig
from broker_engine.errors import ErrorCode
from broker_engine.metadata.controller import (
    NewPartitions,
    NewTopic,
    TopicResult,
    create_on_first_use,
    create_partitions,
    create_topics,
    delete_topics,
)
from broker_engine.metadata.image import MetadataImage, TopicImage
from broker_engine.metadata.parts import PartitionImage
from broker_engine.metadata.records import Record
from broker_engine.names import ROOT, Name
from tests.broker_engine.metadata.builders import CONFIG, Ids, after, broker, cluster, demo, root, tenant


def create(image: MetadataImage, *topics: NewTopic, config: BrokerConfig = CONFIG) -> tuple[TopicResult, ...]:
    return create_topics(image, topics, config=config, new_id=Ids()).results


def create_one(image: MetadataImage, topic: NewTopic, config: BrokerConfig = CONFIG) -> TopicResult:
    (result,) = create(image, topic, config=config)
    return result


def with_topics(image: MetadataImage, *topics: NewTopic) -> MetadataImage:
    decision = create_topics(image, topics, config=CONFIG, new_id=Ids(100))
    assert [result.error_message for result in decision.results] == [None] * len(topics)
    return after(image, decision.records)


def get(image: MetadataImage, name: Name) -> TopicImage:
    topic = image.topic(name)
    assert topic is not None
    return topic


# --- create


def test_a_topic_is_created_with_the_brokers_defaults() -> None:
    image = with_topics(cluster(1), NewTopic(root("orders")))
    topic = get(image, root("orders"))
    assert topic.partitions == {0: PartitionImage((1,), (1,), (), 1, 0, 0)}
    assert topic.replication_factor == 1


def test_the_result_tells_what_was_made() -> None:
    result = create_one(cluster(3), NewTopic(root("t"), 4, 2, configs={"retention.ms": "5"}))
    assert (result.error_code, result.partition_count, result.replication_factor) == (ErrorCode.NONE, 4, 2)
    assert result.configs == {"retention.ms": "5"}
    assert result.topic_id.int


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a/b", "a b", "ä"])
def test_an_invalid_name_is_17(name: str) -> None:
    assert create_one(cluster(), NewTopic(root(name))).error_code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_name_that_differs_by_dot_and_underscore_only_is_17() -> None:
    image = with_topics(cluster(1, tenant("demo")), NewTopic(root("a.b")))
    assert create_one(image, NewTopic(root("a_b"))).error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert create_one(image, NewTopic(demo("a_b"))).error_code is ErrorCode.NONE
    in_one_request = create(cluster(), NewTopic(root("x.y")), NewTopic(root("x_y")))
    assert [result.error_code for result in in_one_request] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_an_existing_name_is_36_for_its_own_tenant_only() -> None:
    image = with_topics(cluster(1, tenant("demo")), NewTopic(root("orders")))
    assert create_one(image, NewTopic(root("orders"))).error_code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert create_one(image, NewTopic(demo("orders"))).error_code is ErrorCode.NONE


def test_a_name_that_stands_twice_is_one_42_and_the_rest_is_done() -> None:
    results = create(cluster(), NewTopic(root("a")), NewTopic(root("b")), NewTopic(root("a")))
    assert [(result.name, result.error_code) for result in results] == [
        (root("a"), ErrorCode.INVALID_REQUEST), (root("b"), ErrorCode.NONE)]  # fmt: skip


@pytest.mark.parametrize("count", [0, -2, 100_001, 10**9])
def test_an_impossible_number_of_partitions_is_37(count: int) -> None:
    assert create_one(cluster(), NewTopic(root("t"), count, 1)).error_code is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("factor", [0, -2, 4, 99])
def test_an_impossible_replication_factor_is_38(factor: int) -> None:
    assert create_one(cluster(3), NewTopic(root("t"), 1, factor)).error_code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_the_default_factor_counts_configured_nodes_so_a_lonely_first_broker_answers_38() -> None:
    config = BrokerConfig.load(quorum_size=3)
    assert create_one(cluster(1), NewTopic(root("t")), config).error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert create_one(cluster(3), NewTopic(root("t")), config).replication_factor == 3


def test_with_fewer_live_brokers_than_replicas_creation_is_tried_again_later() -> None:
    """contracts.md section 6: a topic never begins with fewer copies than it should have."""
    image = cluster(1, broker(2, fenced=True), broker(3, fenced=True))
    result = create_one(image, NewTopic(root("t"), 6, 2))
    assert result.error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message == "Unable to replicate the partition 2 time(s): only 1 broker(s) are alive."


def test_by_hand_a_fenced_broker_may_hold_a_replica_but_not_lead_or_be_in_sync() -> None:
    image = cluster(1, broker(2, fenced=True))
    topic = get(with_topics(image, NewTopic(root("t"), assignments=[(0, (2, 1))])), root("t"))
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (1, (1,))


def test_with_all_brokers_fenced_nothing_is_created() -> None:
    image = cluster(0, broker(1, fenced=True))
    assert create_one(image, NewTopic(root("t"), 1, 1)).error_code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_live_brokers_are_preferred_while_they_suffice() -> None:
    topic = get(with_topics(cluster(2, broker(3, fenced=True)), NewTopic(root("t"), 6, 2)), root("t"))
    assert {replica for partition in topic.partitions.values() for replica in partition.replicas} == {1, 2}


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    image = with_topics(cluster(3), NewTopic(root("t"), assignments=[(1, [3, 1]), (0, [2, 3])]))
    partitions = get(image, root("t")).partitions
    assert [partitions[index].replicas for index in (0, 1)] == [(2, 3), (3, 1)]
    assert [partitions[index].leader for index in (0, 1)] == [2, 3]


@pytest.mark.parametrize(
    "topic",
    [NewTopic(root("t"), 1, -1, [(0, [1])]), NewTopic(root("t"), -1, 1, [(0, [1])])],
    ids=["partitions", "factor"],
)
def test_a_manual_assignment_with_numbers_beside_it_is_42(topic: NewTopic) -> None:
    assert create_one(cluster(), topic).error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "assignments",
    [
        [(0, [9])],
        [(0, [1, 1])],
        [(0, [])],
        [(1, [1])],
        [(0, [1]), (2, [1])],
        [(0, [1]), (0, [2])],
        [(0, [1]), (1, [1, 2])],
    ],
    ids=["unknown broker", "broker twice", "no broker", "no partition 0", "gap", "partition twice", "uneven"],
)
def test_a_manual_assignment_that_cannot_be_is_39(assignments: list[tuple[int, list[int]]]) -> None:
    result = create_one(cluster(2), NewTopic(root("t"), assignments=assignments))
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    "configs", [{"nope": "1"}, {"segment.bytes": "x"}, {"segment.bytes": None}, {"message.format.version": "2.0"}]
)
def test_a_bad_config_is_40(configs: dict[str, str | None]) -> None:
    assert create_one(cluster(), NewTopic(root("t"), configs=configs)).error_code is ErrorCode.INVALID_CONFIG


def test_validate_only_answers_everything_and_writes_nothing() -> None:
    decision = create_topics(cluster(), [NewTopic(root("t"), 2, 1)], config=CONFIG, new_id=Ids(), validate_only=True)
    assert decision.records == ()
    assert (decision.results[0].partition_count, decision.results[0].topic_id.int > 0) == (2, True)


def test_a_topic_that_is_made_again_gets_a_new_id() -> None:
    image = with_topics(cluster(), NewTopic(root("t")))
    first = get(image, root("t")).id
    image = after(image, delete(image, root("t"))[1])
    image = after(image, create_topics(image, [NewTopic(root("t"))], config=CONFIG, new_id=Ids(500)).records)
    assert get(image, root("t")).id != first


# --- policy

STRICT = (
    '{"name_pattern": "team-[a-z]+", "max_partitions_per_topic": 4, "max_partitions": 6, '
    '"auto_create": true, "default_partitions": 2}'
)


@pytest.mark.parametrize(
    ("topic", "rule"),
    [
        (NewTopic(demo("orders"), 1, 1), "name_pattern"),
        (NewTopic(demo("team-x1"), 1, 1), "name_pattern"),
        (NewTopic(demo("team-orders"), 5, 1), "max_partitions_per_topic"),
        (NewTopic(demo("team-orders"), assignments=[(n, [1]) for n in range(5)]), "max_partitions_per_topic"),
    ],
)
def test_a_broken_rule_is_44_and_named(topic: NewTopic, rule: str) -> None:
    result = create_one(cluster(1, tenant("demo", STRICT)), topic)
    assert result.error_code is ErrorCode.POLICY_VIOLATION
    assert result.error_message is not None
    assert f"rule {rule}:" in result.error_message


def test_the_partition_quota_counts_the_whole_tenant_also_within_one_request() -> None:
    results = create(cluster(1, tenant("demo", STRICT)), *(NewTopic(demo(f"team-{letter}"), 2, 1) for letter in "abcd"))
    assert [result.error_code for result in results] == [ErrorCode.NONE] * 3 + [ErrorCode.POLICY_VIOLATION]


def test_a_tenants_policy_does_not_bind_others() -> None:
    image = cluster(1, tenant("demo", STRICT), tenant("other"))
    assert create_one(image, NewTopic(root("anything"), 9, 1)).error_code is ErrorCode.NONE
    assert create_one(image, NewTopic(Name("other", "anything"), 9, 1)).error_code is ErrorCode.NONE


def test_the_policys_default_number_of_partitions_wins() -> None:
    assert create_one(cluster(1, tenant("demo", STRICT)), NewTopic(demo("team-a"))).partition_count == 2


# --- creation on first use


def first_use(image: MetadataImage, *names: Name, config: BrokerConfig = CONFIG) -> dict[Name | None, ErrorCode]:
    decision = create_on_first_use(image, names, config=config, new_id=Ids())
    return {result.name: result.error_code for result in decision.results}


def test_first_use_goes_through_the_same_policy() -> None:
    image = cluster(1, tenant("demo", STRICT))
    assert first_use(image, demo("team-a"), demo("orders")) == {
        demo("team-a"): ErrorCode.NONE, demo("orders"): ErrorCode.POLICY_VIOLATION}  # fmt: skip


def test_first_use_creates_nothing_in_production_for_a_tenant_that_forbids_it_or_for_internal_names() -> None:
    image = cluster(1, tenant("demo", '{"auto_create": false}'))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert first_use(image, demo("a")) == {demo("a"): unknown}
    assert first_use(image, root("a"), config=BrokerConfig.load(env="production")) == {root("a"): unknown}
    assert first_use(image, root("__telemetry")) == {root("__telemetry"): unknown}


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_the_first_question_for_a_coordinator_makes_its_topic_whatever_the_settings_for_others(topic: str) -> None:
    name = root(topic)
    never = BrokerConfig.load(set_values={"auto.create.topics.enable": "false"})
    assert first_use(cluster(1), name, config=never) == {name: ErrorCode.NONE}
    production = BrokerConfig.load(env="production")
    assert first_use(cluster(1), name, config=production) == {name: ErrorCode.INVALID_REPLICATION_FACTOR}


# --- delete


def delete(
    image: MetadataImage, *refs: Name | UUID, viewer: str = ROOT, config: BrokerConfig = CONFIG
) -> tuple[list[ErrorCode], tuple[Record, ...]]:
    decision = delete_topics(image, refs, viewer_tenant=viewer, is_root=viewer == ROOT, config=config)
    return [result.error_code for result in decision.results], decision.records


def test_a_topic_is_deleted_by_name_or_by_id() -> None:
    image = with_topics(cluster(), NewTopic(root("a")), NewTopic(root("b")))
    codes, records = delete(image, root("a"), get(image, root("b")).id)
    assert codes == [ErrorCode.NONE, ErrorCode.NONE]
    assert not after(image, records).topics


def test_what_is_not_there_is_3_by_name_and_100_by_id() -> None:
    codes, records = delete(cluster(), root("a"), Ids()())
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
    assert records == ()


def test_another_tenants_topic_answers_as_an_absent_one() -> None:
    image = with_topics(cluster(1, tenant("demo"), tenant("other")), NewTopic(demo("a")))
    codes, records = delete(image, Name("other", "a"), get(image, demo("a")).id, viewer="other")
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
    assert records == ()


def test_a_topic_that_stands_twice_is_42_and_stays() -> None:
    image = with_topics(cluster(), NewTopic(root("a")))
    assert delete(image, root("a"), root("a")) == ([ErrorCode.INVALID_REQUEST], ())
    assert delete(image, root("a"), get(image, root("a")).id) == ([ErrorCode.INVALID_REQUEST] * 2, ())


def test_deletion_may_be_switched_off() -> None:
    image = with_topics(cluster(), NewTopic(root("a")))
    config = BrokerConfig.load({"delete.topic.enable": "false"})
    assert delete(image, root("a"), config=config) == ([ErrorCode.TOPIC_DELETION_DISABLED], ())


# --- add partitions


def add(
    image: MetadataImage, *requests: NewPartitions, validate_only: bool = False
) -> tuple[list[ErrorCode], MetadataImage]:
    decision = create_partitions(image, requests, validate_only=validate_only)
    return [result.error_code for result in decision.results], after(image, decision.records)


def test_partitions_are_added_and_the_old_ones_stay() -> None:
    image = with_topics(cluster(3), NewTopic(root("t"), 2, 2))
    before = get(image, root("t")).partitions
    codes, image = add(image, NewPartitions(root("t"), 5))
    assert codes == [ErrorCode.NONE]
    partitions = get(image, root("t")).partitions
    assert sorted(partitions) == [0, 1, 2, 3, 4]
    assert {index: partitions[index] for index in before} == before
    assert image.namespace(ROOT).partition_count == 5


@pytest.mark.parametrize("count", [3, 2, 0, -1, 100_001])
def test_the_same_or_fewer_partitions_are_37(count: int) -> None:
    image = with_topics(cluster(), NewTopic(root("t"), 3, 1))
    assert add(image, NewPartitions(root("t"), count))[0] == [ErrorCode.INVALID_PARTITIONS]


@pytest.mark.parametrize("assignments", [[], [[1]], [[1], [1], [1]], [[1], [9]], [[1], []], [[1], [1, 2]]])
def test_assignments_that_do_not_fit_are_39(assignments: list[list[int]]) -> None:
    image = with_topics(cluster(2), NewTopic(root("t"), 1, 1))
    assert add(image, NewPartitions(root("t"), 3, assignments))[0] == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]


def test_assignments_that_fit_are_taken() -> None:
    image = with_topics(cluster(2), NewTopic(root("t"), 1, 1))
    codes, image = add(image, NewPartitions(root("t"), 3, [[2], [1]]))
    assert codes == [ErrorCode.NONE]
    assert [get(image, root("t")).partitions[index].leader for index in (1, 2)] == [2, 1]


def test_an_unknown_topic_is_3_a_repeated_one_42() -> None:
    image = with_topics(cluster(), NewTopic(root("t")))
    codes, _ = add(image, NewPartitions(root("x"), 3), NewPartitions(root("t"), 3), NewPartitions(root("t"), 4))
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST]


def test_the_quota_holds_for_added_partitions_too() -> None:
    image = with_topics(cluster(1, tenant("demo", STRICT)), NewTopic(demo("team-a"), 4, 1))
    assert add(image, NewPartitions(demo("team-a"), 5))[0] == [ErrorCode.POLICY_VIOLATION]


def test_validate_only_adds_nothing() -> None:
    image = with_topics(cluster(), NewTopic(root("t")))
    codes, unchanged = add(image, NewPartitions(root("t"), 3), validate_only=True)
    assert codes == [ErrorCode.NONE]
    assert unchanged == image
