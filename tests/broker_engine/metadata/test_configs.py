from __future__ import annotations

from collections.abc import Mapping

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.metadata.controller import (
    ConfigChange,
    ConfigOperation,
    NewTopic,
    Resource,
    alter_configs,
    create_topics,
    incremental_alter_configs,
)
from broker_engine.metadata.image import MetadataImage
from tests.broker_engine.metadata.builders import CONFIG, Ids, after, cluster, demo, root, tenant

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
TOPIC = Resource(2, root("t"))


def image_with(configs: Mapping[str, str | None]) -> MetadataImage:
    image = cluster(1, tenant("demo"))
    topics = [NewTopic(root("t"), configs=configs), NewTopic(demo("t"))]
    return after(image, create_topics(image, topics, config=CONFIG, new_id=Ids()).records)


def change(image: MetadataImage, resource: Resource, *changes: ConfigChange) -> tuple[ErrorCode, dict[str, str]]:
    decision = incremental_alter_configs(image, [(resource, changes)])
    topic = after(image, decision.records).topic(TOPIC.name)
    assert topic is not None
    return decision.results[0].error_code, dict(topic.configs)


def test_set_and_delete() -> None:
    image = image_with({"retention.ms": "5", "segment.ms": "7"})
    codes = change(image, TOPIC, ConfigChange("retention.ms", SET, "6"), ConfigChange("segment.ms", DELETE, None))
    assert codes == (ErrorCode.NONE, {"retention.ms": "6"})


def test_another_tenants_topic_of_the_same_name_stays_as_it_is() -> None:
    image = image_with({})
    decision = incremental_alter_configs(image, [(TOPIC, [ConfigChange("retention.ms", SET, "6")])])
    other = after(image, decision.records).topic(demo("t"))
    assert other is not None
    assert other.configs == {}


def test_append_and_subtract_work_on_lists_and_start_from_the_default() -> None:
    image = image_with({})
    assert change(image, TOPIC, ConfigChange("cleanup.policy", APPEND, "compact"))[1] == {
        "cleanup.policy": "delete,compact"
    }
    image = image_with({"cleanup.policy": "compact,delete"})
    assert change(image, TOPIC, ConfigChange("cleanup.policy", SUBTRACT, "compact"))[1] == {"cleanup.policy": "delete"}


THROTTLE = "leader.replication.throttled.rate"


@pytest.mark.parametrize(
    ("resource", "changes", "code"),
    [
        (TOPIC, [ConfigChange("nope", SET, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [ConfigChange("nope", DELETE, None)], ErrorCode.NONE),
        (TOPIC, [ConfigChange("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, [ConfigChange("retention.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [ConfigChange("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [ConfigChange("retention.ms", SUBTRACT, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [ConfigChange("cleanup.policy", APPEND, "shred")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [ConfigChange("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        (TOPIC, [ConfigChange("flush.ms", SET, "1"), ConfigChange("flush.ms", SET, "2")], ErrorCode.INVALID_REQUEST),
        (Resource(2, root("absent")), [ConfigChange("retention.ms", SET, "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Resource(2, root("")), [ConfigChange("retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
        (Resource(4, root("1")), [ConfigChange("num.partitions", SET, "3")], ErrorCode.INVALID_REQUEST),
        (Resource(4, root("1")), [ConfigChange("some.plugin", SET, "3")], ErrorCode.NONE),
        (Resource(4, root("1")), [ConfigChange(THROTTLE, SET, "3")], ErrorCode.NONE),
        (Resource(4, root("1")), [ConfigChange(THROTTLE, SET, "fast")], ErrorCode.INVALID_CONFIG),
        (Resource(4, root("")), [ConfigChange("log.cleaner.io.max.bytes.per.second", SET, "2.5E6")], ErrorCode.NONE),
        (Resource(4, root("")), [ConfigChange("log.cleaner.io.max.bytes.per.second", SET, "0")],
         ErrorCode.INVALID_CONFIG),
        (Resource(4, root("")), [ConfigChange("log.retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
        (Resource(4, root("9")), [ConfigChange("some.plugin", SET, "3")], ErrorCode.INVALID_REQUEST),
        (Resource(4, root("x")), [ConfigChange("some.plugin", SET, "3")], ErrorCode.INVALID_REQUEST),
        (Resource(4, demo("1")), [ConfigChange("some.plugin", SET, "3")], ErrorCode.INVALID_REQUEST),
        (Resource(16, root("cm")), [ConfigChange("x", SET, "3")], ErrorCode.INVALID_REQUEST),
        (Resource(32, root("g")), [ConfigChange("x", SET, "3")], ErrorCode.INVALID_CONFIG),
        (Resource(99, root("g")), [ConfigChange("x", SET, "3")], ErrorCode.INVALID_REQUEST),
    ],
)  # fmt: skip
def test_answers_of_incremental_alter_configs(resource: Resource, changes: list[ConfigChange], code: ErrorCode) -> None:
    image = image_with({"retention.ms": "5"})
    got, configs = change(image, resource, *changes)
    assert got is code
    assert configs == {"retention.ms": "5"}


def test_a_resource_that_stands_twice_is_42_and_the_others_are_done() -> None:
    image = image_with({})
    item = [ConfigChange("retention.ms", SET, "1")]
    decision = incremental_alter_configs(image, [(TOPIC, item), (Resource(2, demo("t")), item), (TOPIC, item)])
    assert [result.error_code for result in decision.results] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert len(decision.records) == 1


def test_what_does_not_change_writes_nothing() -> None:
    image = image_with({"retention.ms": "5"})
    decision = incremental_alter_configs(image, [(TOPIC, [ConfigChange("retention.ms", SET, "5")])])
    assert decision.records == ()


def test_bounds_that_contradict_what_is_already_there_are_refused() -> None:
    image = image_with({"max.compaction.lag.ms": "5"})
    assert change(image, TOPIC, ConfigChange("min.compaction.lag.ms", SET, "6"))[0] is ErrorCode.INVALID_CONFIG


def test_validate_only_writes_nothing() -> None:
    decision = incremental_alter_configs(
        image_with({}), [(TOPIC, [ConfigChange("retention.ms", SET, "5")])], validate_only=True
    )
    assert (decision.records, decision.results[0].error_code) == ((), ErrorCode.NONE)


def test_the_old_request_replaces_everything() -> None:
    image = image_with({"retention.ms": "5", "segment.ms": "7"})
    decision = alter_configs(image, [(TOPIC, [("segment.ms", "8")])])
    topic = after(image, decision.records).topic(TOPIC.name)
    assert topic is not None
    assert topic.configs == {"segment.ms": "8"}


@pytest.mark.parametrize(("name", "value"), [("nope", "1"), ("retention.ms", "x"), ("retention.ms", None)])
def test_the_old_request_refuses_bad_configs_with_40_and_keeps_what_was(name: str, value: str | None) -> None:
    decision = alter_configs(image_with({"retention.ms": "5"}), [(TOPIC, [(name, value)])])
    assert decision.results[0].error_code is ErrorCode.INVALID_CONFIG
    assert decision.records == ()
