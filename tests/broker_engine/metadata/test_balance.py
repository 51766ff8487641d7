"""Proposals of moves: as few copies as possible, apart by rack and host, even afterwards."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.controller import NewTopic, create_topics, propose_balance
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.telemetry_topic import TELEMETRY_TOPIC
from tests.broker_engine.metadata.builders import CONFIG, Ids, after, broker, cluster, register, root, with_topic


def spread(image: MetadataImage, partition_count: int, factor: int) -> MetadataImage:
    new = NewTopic(root("t"), partition_count, factor)
    return after(image, create_topics(image, [new], config=CONFIG, new_id=Ids(7)).records)


def replicas_after(image: MetadataImage, brokers: list[int], factor: int | None = None) -> list[tuple[int, ...]]:
    moves = {move.partition: move.after for move in propose_balance(image, brokers, factor)}
    topic = image.topic(root("t"))
    assert topic is not None
    return [moves.get(index, topic.partitions[index].replicas) for index in sorted(topic.partitions)]


def test_a_new_empty_broker_gets_its_share_and_nothing_else_moves() -> None:
    image = after(spread(cluster(3), 40, 3), (broker(4),))
    moves = propose_balance(image, [1, 2, 3, 4])
    assert sum(len(move.adding) for move in moves) == 30
    assert all(move.adding in ((), (4,)) for move in moves)
    placed = replicas_after(image, [1, 2, 3, 4])
    assert Counter(member for replicas in placed for member in replicas) == {1: 30, 2: 30, 3: 30, 4: 30}
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.values()) <= 1


def test_growing_from_one_broker_to_three_copies_everything_twice() -> None:
    image = after(with_topic(cluster(1), *([1] for _ in range(9))), (broker(2), broker(3)))
    topic = image.topic(root("t"))
    assert topic is not None
    sizes = {(topic.id, index): 100 for index in range(8)}
    moves = propose_balance(image, [1, 2, 3], 3, bytes_of=sizes)
    assert [move.bytes_copied for move in moves] == [200] * 8 + [None]
    assert Counter(move.after[0] for move in moves) == {1: 3, 2: 3, 3: 3}
    assert all(sorted(move.after) == [1, 2, 3] for move in moves)


def test_a_broker_is_emptied_by_leaving_it_out() -> None:
    image = spread(cluster(4), 20, 3)
    placed = replicas_after(image, [1, 2, 3])
    assert all(sorted(replicas) == [1, 2, 3] for replicas in placed)
    assert all(len(move.adding) == 1 for move in propose_balance(image, [1, 2, 3]) if 4 in move.before)


def test_a_balanced_cluster_has_nothing_to_move() -> None:
    assert propose_balance(spread(cluster(3), 30, 2), [1, 2, 3]) == []


def test_leaders_are_evened_out_without_copying() -> None:
    image = with_topic(cluster(3), *([1, 2, 3] for _ in range(6)))
    moves = propose_balance(image, [1, 2, 3])
    assert [move.bytes_copied for move in moves] == [0] * len(moves)
    assert Counter(replicas[0] for replicas in replicas_after(image, [1, 2, 3])) == {1: 2, 2: 2, 3: 2}


def test_racks_are_kept_apart_then_hosts() -> None:
    image = EMPTY_IMAGE.replay(
        [
            broker(1, rack="a", host="h1"),
            broker(2, rack="a", host="h2"),
            broker(3, rack="b", host="h3"),
            broker(4, rack="b", host="h3"),
        ],
        0,
    )
    image = with_topic(image, *([1] for _ in range(8)))
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    for replicas in replicas_after(image, [1, 2, 3, 4], 2):
        assert {racks[member] for member in replicas} == {"a", "b"}
    for replicas in replicas_after(image, [1, 2, 3, 4], 3):
        assert not {3, 4} <= set(replicas)


def test_only_what_is_asked_for_moves_and_telemetry_never() -> None:
    image = after(EMPTY_IMAGE, register(EMPTY_IMAGE, 1).records)
    image = after(image, register(image, 2).records)
    image = with_topic(with_topic(image, [1], [1]), [1], name=root("other"))
    assert {move.name for move in propose_balance(image, [1, 2], 2)} == {root("t"), root("other")}
    assert {move.name for move in propose_balance(image, [1, 2], 2, topics=[root("t")])} == {root("t")}
    assert propose_balance(image, [2], topics=[TELEMETRY_TOPIC]) == []


@pytest.mark.parametrize(
    ("brokers", "factor", "code"),
    [([1, 2], 3, ErrorCode.INVALID_REPLICATION_FACTOR), ([1, 9], None, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_what_cannot_be_is_said(brokers: list[int], factor: int | None, code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as caught:
        propose_balance(spread(cluster(3), 2, 1), brokers, factor)
    assert caught.value.code is code


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 40), st.integers(0, 3), st.integers(0, 2))
def test_proposals_are_even_complete_and_on_allowed_brokers(
    count: int, factor: int, partition_count: int, new_count: int, gone_count: int
) -> None:
    factor = min(factor, count)
    image = spread(cluster(count), partition_count, factor)
    image = after(image, [broker(count + 1 + n) for n in range(new_count)])
    allowed = list(range(1 + min(gone_count, count + new_count - factor), count + new_count + 1))
    placed = replicas_after(image, allowed)
    assert all(len(set(replicas)) == factor and set(replicas) <= set(allowed) for replicas in placed)
    load = Counter(dict.fromkeys(allowed, 0))
    load.update(member for replicas in placed for member in replicas)
    assert max(load.values()) - min(load.values()) <= 1
