"""Transactions over the wire on one broker: codes by version, what is written, what tenants see of each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_engine.wire.messages.api_versions import ApiVersionsRequest
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest
from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest
from broker_engine.wire.messages.list_transactions import ListTransactionsRequest
from broker_engine.wire.messages.update_features import FeatureUpdate, UpdateFeaturesRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create, fetch, new_name, values_of
from tests.broker_engine.handlers.test_groups import ready as ready_group
from tests.broker_engine.handlers.transaction_calls import (
    Producer,
    add,
    add_offsets,
    added,
    describe,
    end,
    init,
    listed,
    ready,
    started,
    wait_for_state,
    write,
)
from tests.broker_engine.raw_client import RawClient

READ_COMMITTED = 1


def committed_values(client: RawClient, topic: str) -> list[bytes | None]:
    partition = fetch(client, topic, isolation_level=READ_COMMITTED)
    return values_of(partition)


# --- InitProducerId


def test_the_first_epoch_is_0_and_every_call_raises_it(root: RawClient) -> None:
    first = started(root)
    assert first.epoch == 0
    assert started(root, first.transactional_id) == first._replace(epoch=1)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": ""}, 42),
        ({"producer_id": 5}, 42),
        ({"producer_epoch": 5}, 42),
        ({"timeout_ms": 0}, 50),
        ({"timeout_ms": -1}, 50),
        ({"timeout_ms": 900_001}, 50),
    ],
)
def test_what_init_producer_id_refuses(root: RawClient, fields: dict[str, int | str], code: int) -> None:
    name = str(fields.pop("name", ready(root)))
    answer = init(root, name, **{key: int(value) for key, value in fields.items()})
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


def test_a_fenced_producer_is_told_in_words_that_its_version_knows(root: RawClient) -> None:
    producer = started(root)
    started(root, producer.transactional_id)
    old = {"producer_id": producer.id, "producer_epoch": producer.epoch}
    assert init(root, producer.transactional_id, 4, **old).error_code == 90
    assert init(root, producer.transactional_id, 3, **old).error_code == 47


def test_a_producer_without_a_transactional_id_needs_no_coordinator(root: RawClient) -> None:
    assert init(root, None).error_code == 0
    assert init(root, None, timeout_ms=0, producer_id=7, producer_epoch=3).error_code == 0


# --- a transaction


def test_a_committed_transaction_is_read_and_an_aborted_one_is_not(root: RawClient) -> None:
    topic = create(root)
    producer = started(root)
    added(root, producer, (topic, 0))
    assert write(root, producer, topic, b"kept").error_code == 0
    assert committed_values(root, topic) == []
    assert end(root, producer, is_commit=True).error_code == 0
    wait_for("the commit", lambda: committed_values(root, topic)[:1] == [b"kept"])
    added(root, producer, (topic, 0))
    assert write(root, producer, topic, b"dropped", sequence=1).error_code == 0
    assert end(root, producer, is_commit=False).error_code == 0
    wait_for_state(root, producer.transactional_id, "CompleteAbort")
    partition = fetch(root, topic, isolation_level=READ_COMMITTED)
    assert [each.producer_id for each in partition.aborted_transactions] == [producer.id]
    assert partition.last_stable_offset == partition.high_watermark == 4


def test_who_comes_late_is_told_so_by_version(root: RawClient) -> None:
    topic = create(root)
    producer = started(root)
    old = producer._replace(epoch=producer.epoch - 1)
    stranger = producer._replace(id=producer.id + 1)
    for version, code in ((3, 90), (1, 47)):
        assert add(root, old, (topic, 0), version=version) == [code]
        assert add_offsets(root, old, ready_group(root, new_name("group")), version) == code
        assert end(root, old, is_commit=True, version=version).error_code == code
    assert add(root, stranger, (topic, 0)) == [49]
    assert end(root, stranger, is_commit=True).error_code == 49
    assert end(root, Producer(ready(root), 1, 0), is_commit=True).error_code == 49


def test_one_unknown_partition_keeps_all_others_out(root: RawClient) -> None:
    topic = create(root)
    producer = started(root)
    assert add(root, producer, (topic, 0), (topic, 9), ("nope", 0)) == [55, 3, 3]
    assert describe(root, producer.transactional_id).transaction_state == "Empty"


def test_offsets_may_join_under_an_empty_group_name(root: RawClient) -> None:
    ready_group(root, new_name("group"))
    producer = started(root)
    assert add_offsets(root, producer, "") == 0
    assert [topic.topic for topic in describe(root, producer.transactional_id).topics] == ["__consumer_offsets"]


def test_ending_twice_is_fine_and_ending_otherwise_is_not(root: RawClient) -> None:
    topic = create(root)
    producer = started(root)
    assert end(root, producer, is_commit=True).error_code == 48
    added(root, producer, (topic, 0))
    assert end(root, producer, is_commit=True).error_code == 0
    wait_for_state(root, producer.transactional_id, "CompleteCommit")
    assert end(root, producer, is_commit=True).error_code == 0
    assert end(root, producer, is_commit=False).error_code == 48


def test_a_second_producer_ends_what_the_first_had_open(root: RawClient) -> None:
    topic = create(root)
    first = started(root)
    added(root, first, (topic, 0))
    assert write(root, first, topic, b"lost").error_code == 0
    assert init(root, first.transactional_id).error_code == 51
    second = started(root, first.transactional_id)
    assert second == first._replace(epoch=first.epoch + 2)
    assert write(root, first, topic, b"late", sequence=1).error_code == 47
    assert end(root, first, is_commit=True).error_code == 90
    partition = fetch(root, topic, isolation_level=READ_COMMITTED)
    assert [each.first_offset for each in partition.aborted_transactions] == [0]


def test_a_deleted_topic_keeps_no_transaction_from_its_end(root: RawClient) -> None:
    topic, other = create(root), create(root)
    producer = started(root)
    added(root, producer, (topic, 0), (other, 0))
    assert write(root, producer, other, b"kept").error_code == 0
    assert root.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5).responses[0].error_code == 0
    assert end(root, producer, is_commit=True).error_code == 0
    wait_for_state(root, producer.transactional_id, "CompleteCommit")
    assert committed_values(root, other)[:1] == [b"kept"]


# --- transaction version 2


def test_version_2_adds_with_the_first_write_and_raises_the_epoch_with_each_end(root: RawClient) -> None:
    topic = create(root)
    producer = started(root)
    assert write(root, producer, topic, b"one", version=12).error_code == 0
    ended = end(root, producer, is_commit=True, version=5)
    assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (0, producer.id, producer.epoch + 1)
    wait_for_state(root, producer.transactional_id, "CompleteCommit")
    again = end(root, producer, is_commit=True, version=5)
    assert (again.error_code, again.producer_epoch) == (0, producer.epoch + 1)
    following = producer._replace(epoch=producer.epoch + 1)
    assert end(root, following, is_commit=True, version=5).error_code == 48
    assert end(root, following, is_commit=False, version=5).producer_epoch == producer.epoch + 2
    assert write(root, producer, topic, b"late", sequence=1, version=12).error_code == 47
    assert end(root, producer, is_commit=True).error_code == 90  # by the first version: Flink's second commit


def test_transaction_version_2_is_off_until_somebody_sets_it(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "features") as own, RawClient(own.address()) as client:
        assert features(client) == {}
        assert update(client, 2).error_code == 0
        assert features(client) == {"transaction.version": 2}
        assert update(client, 0).error_code == 95
        assert update(client, 0, upgrade_type=2).error_code == 0
        assert features(client) == {}
        assert update(client, 3).error_code == 95
        assert update(client, 1, name="nonsense").error_code == 95
        assert update(client, 1, is_only_checked=True).error_code == 0
        assert features(client) == {}


def update(
    client: RawClient,
    level: int,
    *,
    name: str = "transaction.version",
    upgrade_type: int = 1,
    is_only_checked: bool = False,
) -> Any:
    change = FeatureUpdate(feature=name, max_version_level=level, upgrade_type=upgrade_type)
    return client.call(UpdateFeaturesRequest(feature_updates=[change], validate_only=is_only_checked), 2)


def features(client: RawClient) -> dict[str, int]:
    response = client.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    assert response.finalized_features_epoch >= 0
    assert [each.name for each in response.supported_features] == ["transaction.version"]
    return {each.name: each.max_version_level for each in response.finalized_features}


def test_only_root_sets_features(acme: RawClient) -> None:
    assert update(acme, 2).error_code == 31


# --- looking at them


def test_transactions_are_listed_by_state_producer_age_and_pattern(root: RawClient) -> None:
    topic = create(root)
    producer = started(root, new_name("listed-a"))
    idle = started(root, new_name("listed-b"))
    added(root, producer, (topic, 0))
    name = producer.transactional_id
    assert listed(root, state_filters=["Ongoing"], transactional_id_pattern="listed-.*") == {name: "Ongoing"}
    assert listed(root, producer_id_filters=[idle.id]) == {idle.transactional_id: "Empty"}
    assert name not in listed(root, duration_filter=600_000)
    assert name in listed(root, 1, duration_filter=0)
    assert set(listed(root, transactional_id_pattern="listed-[ab]-.*")) == {name, idle.transactional_id}
    assert listed(root, transactional_id_pattern="listed") == {}
    response = root.call(ListTransactionsRequest(state_filters=["Nonsense"]), 0)
    assert (list(response.unknown_state_filters), list(response.transaction_states)) == (["Nonsense"], [])
    assert root.call(ListTransactionsRequest(transactional_id_pattern="("), 2).error_code == 128


def test_a_transaction_is_described_with_its_partitions(root: RawClient) -> None:
    topic = create(root, partitions=2)
    producer = started(root)
    added(root, producer, (topic, 0), (topic, 1))
    found = describe(root, producer.transactional_id)
    assert (found.transaction_state, found.producer_id, found.producer_epoch) == ("Ongoing", producer.id, 0)
    assert found.transaction_timeout_ms == 60_000
    assert found.transaction_start_time_ms > 0
    assert [(each.topic, list(each.partitions)) for each in found.topics] == [(topic, [0, 1])]
    assert describe(root, new_name("unknown")).error_code == 105
    assert describe(root, "").error_code == 42


# --- tenants


def test_one_id_is_two_transactions_of_two_tenants(acme: RawClient, globex: RawClient, root: RawClient) -> None:
    name = new_name("shared")
    topic = create(acme)
    mine = started(acme, name)
    added(acme, mine, (topic, 0))
    theirs = started(globex, name)
    assert (theirs.epoch, theirs.id) != (mine.epoch, mine.id)
    assert describe(acme, name).transaction_state == "Ongoing"
    assert [each.topic for each in describe(acme, name).topics] == [topic]
    assert describe(globex, name).transaction_state == "Empty"
    assert end(globex, mine, is_commit=True).error_code == 49
    assert name in listed(acme)
    assert f"acme/{name}" not in listed(globex)
    assert listed(root)[f"acme/{name}"] == "Ongoing"
    assert add(globex, theirs, (topic, 0)) == [3]


def test_a_tenant_does_not_see_the_clusters_topic_in_its_transaction(acme: RawClient) -> None:
    ready_group(acme, new_name("group"))
    producer = started(acme)
    assert add_offsets(acme, producer, "group") == 0
    assert describe(acme, producer.transactional_id).transaction_state == "Ongoing"
    assert list(describe(acme, producer.transactional_id).topics) == []


def test_broker_only_versions_are_closed_to_clients(root: RawClient) -> None:
    response = root.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    ranges = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert ranges[24] == (0, 3)
    assert ranges[26] == (0, 5)


def test_a_coordinator_is_found_for_several_ids_at_once(root: RawClient) -> None:
    names = [ready(root), ready(root)]
    found = root.call(FindCoordinatorRequest(coordinator_keys=names, key_type=1), 6).coordinators
    assert [(each.key, each.error_code) for each in found] == [(name, 0) for name in names]
