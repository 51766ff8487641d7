"""The short way of Produce (server/produce_lane.py) answers, appends and refuses as the ordinary one does.

The first request of a connection takes the ordinary way, those like it the short one.
"""

from __future__ import annotations

import pytest

from broker_engine.wire.framing import encode_request, encode_response, parse_response
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import (
    batch_of,
    create,
    fetch,
    fetch_request,
    produce,
    produce_request,
    topic_id_of,
    values_of,
)
from tests.broker_engine.raw_client import RawClient


def request_frame(request: ProduceRequest, version: int = 9, correlation_id: int = 7) -> bytes:
    parts = encode_request(correlation_id, "raw", request, version)
    return b"".join(bytes(part) for part in parts)


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("version", [9, 10, 11, 12, 13])
def test_every_answer_is_what_the_codec_would_write(root: RawClient, durability: str, acks: int, version: int) -> None:
    topic = create(root, ack_durability=durability)
    request = produce_request(topic, b"", acks=acks)
    if version == 13:
        request.topic_data[0].name, request.topic_data[0].topic_id = "", topic_id_of(root, topic)
    for number in range(4):
        request.topic_data[0].partition_data[0].records = batch_of(b"%d" % number)
        root.send_frame(request_frame(request, version, correlation_id=100 + number))
        answer = root.receive_frame()
        assert answer is not None
        correlation_id, response = parse_response(answer, ProduceRequest.API, version)
        assert answer == b"".join(encode_response(correlation_id, response, version))
        assert correlation_id == 100 + number
        (partition,) = response.responses[0].partition_responses  # type: ignore[attr-defined]
        assert (partition.index, partition.error_code, partition.base_offset) == (0, 0, number)
        assert (partition.log_append_time_ms, partition.log_start_offset) == (-1, 0)


def of_partitions(topic: str, batches: dict[int, bytes], *, acks: int = -1) -> ProduceRequest:
    request = produce_request(topic, b"", acks=acks)
    request.topic_data[0].partition_data = [PartitionProduceData(index=i, records=b) for i, b in batches.items()]
    return request


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("version", [9, 10, 11, 12, 13])
def test_an_answer_for_several_partitions_is_what_the_codec_would_write(
    root: RawClient, durability: str, acks: int, version: int
) -> None:
    topic = create(root, partitions=3, ack_durability=durability)
    for number in range(4):
        request = of_partitions(topic, {index: batch_of(b"%d-%d" % (index, number)) for index in (2, 0, 1)}, acks=acks)
        if version == 13:
            request.topic_data[0].name, request.topic_data[0].topic_id = "", topic_id_of(root, topic)
        root.send_frame(request_frame(request, version, correlation_id=100 + number))
        answer = root.receive_frame()
        assert answer is not None
        correlation_id, response = parse_response(answer, ProduceRequest.API, version)
        assert answer == b"".join(encode_response(correlation_id, response, version))
        partitions = response.responses[0].partition_responses  # type: ignore[attr-defined]
        assert [(each.index, each.error_code, each.base_offset) for each in partitions] == [
            (2, 0, number),
            (0, 0, number),
            (1, 0, number),
        ]
    for index in range(3) if acks == -1 else ():
        assert values_of(fetch(root, topic, partition=index)) == [b"%d-%d" % (index, number) for number in range(4)]


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("refused", [0, 1, 2])
def test_a_refusal_among_several_is_the_one_that_a_first_request_gets(
    broker: BrokerProcess, root: RawClient, refused: int, acks: int
) -> None:
    topic, other = (create(root, partitions=3, ack_durability="page-cache") for _ in range(2))
    good = {index: batch_of(b"%d" % index) for index in range(3)}
    bad = {**good, refused: good[refused][:-1] + b"!"}
    for _ in range(2):
        root.call(of_partitions(topic, good, acks=acks), 9)
        root.call(of_partitions(other, good, acks=acks), 9)
    with RawClient(broker.address()) as fresh:
        expected = fresh.call(of_partitions(other, bad, acks=acks), 9)
    answer = root.call(of_partitions(topic, bad, acks=acks), 9)
    assert answer.responses[0].partition_responses == expected.responses[0].partition_responses
    assert [each.error_code != 0 for each in answer.responses[0].partition_responses] == [
        index == refused for index in range(3)
    ]
    for index in range(3):
        assert len(values_of(fetch(root, topic, partition=index))) == (2 if index == refused else 3)


def test_a_refusal_among_several_without_acks_closes(root: RawClient) -> None:
    topic = create(root, partitions=2)
    good = {index: batch_of(b"%d" % index) for index in range(2)}
    for _ in range(2):
        root.call(of_partitions(topic, good), 9)
    root.send_frame(request_frame(of_partitions(topic, {**good, 1: good[1][:-1] + b"!"}, acks=0)))
    root.send_frame(request_frame(of_partitions(topic, {**good, 1: good[1][:-1] + b"!"}, acks=0)))
    assert root.receive_frame() is None


def test_a_partition_that_is_named_twice_gets_one_answer(root: RawClient) -> None:
    topic = create(root, partitions=2)
    for number in range(3):
        request = of_partitions(topic, {index: batch_of(b"%d" % number) for index in range(2)})
        request.topic_data[0].partition_data.append(request.topic_data[0].partition_data[0])  # type: ignore[attr-defined]
        partitions = root.call(request, 9).responses[0].partition_responses
        assert [(each.index, each.base_offset) for each in partitions] == [(0, number), (1, number)]


def test_topics_and_partitions_are_not_mixed_up(root: RawClient) -> None:
    topics = [create(root, name, partitions=2) for name in ("lane-a", "lane-b", "a-lane-with-a-longer-name")]
    for number in range(3):
        for topic in topics:
            for index in (0, 1):
                answer = produce(root, topic, batch_of(f"{topic} {index} {number}".encode()), partition=index)
                assert (answer.error_code, answer.index, answer.base_offset) == (0, index, number)
    for topic in topics:
        for index in (0, 1):
            expected = [f"{topic} {index} {number}".encode() for number in range(3)]
            assert values_of(fetch(root, topic, partition=index)) == expected


def test_a_refusal_is_the_one_that_a_first_request_gets(broker: BrokerProcess, root: RawClient) -> None:
    topic = create(root)
    good = batch_of(b"good")
    assert produce(root, topic, good).error_code == 0
    for bad in (good[:-1] + b"!", good[:40], b"", batch_of(b"x", is_transactional=True, producer_id=1)):
        with RawClient(broker.address()) as fresh:
            expected = produce(fresh, topic, bad)
        assert produce(root, topic, bad) == expected
        assert expected.error_code != 0
    assert produce(root, topic, good).base_offset == 1, "nothing of the others was appended"


def test_a_resend_answers_the_first_offset(root: RawClient) -> None:
    topic = create(root)
    batches = [batch_of(b"%d" % n, producer_id=9, producer_epoch=0, base_sequence=n) for n in range(3)]
    for number in (0, 1, 1, 2, 0):
        answer = produce(root, topic, batches[number])
        assert (answer.error_code, answer.base_offset) == (0, number)
    gap = batch_of(b"later", producer_id=9, producer_epoch=0, base_sequence=7)
    assert produce(root, topic, gap).error_code == 45


def test_a_topic_that_is_gone_is_not_written_to_and_a_new_one_begins_anew(root: RawClient) -> None:
    topic = create(root)
    for number in range(3):
        assert produce(root, topic, batch_of(b"old")).base_offset == number
    root.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5)
    assert produce(root, topic, batch_of(b"nowhere")).error_code == 3
    create(root, topic)
    for number in range(3):
        assert produce(root, topic, batch_of(b"new")).base_offset == number


def test_a_topic_whose_rules_change_is_held_to_the_new_ones(root: RawClient) -> None:
    topic = create(root, max_message_bytes="200")
    large = batch_of(b"x" * 300)
    assert [produce(root, topic, batch_of(b"x")).error_code for _ in range(3)] == [0, 0, 0]
    assert produce(root, topic, large).error_code == 10


def test_acks_0_is_appended_without_an_answer(root: RawClient) -> None:
    topic = create(root)
    for number in range(3):
        root.send_frame(request_frame(produce_request(topic, batch_of(b"%d" % number), acks=0)))
    assert produce(root, topic, batch_of(b"3")).base_offset == 3


def test_what_is_not_of_the_plain_form_takes_the_ordinary_way(root: RawClient) -> None:
    topic = create(root)
    for number in range(2):
        assert produce(root, topic, batch_of(b"%d" % number)).base_offset == number
    plain = request_frame(produce_request(topic, batch_of(b"more")))
    tagged = plain[:-1] + b"\x01\x05\x02hi"  # an unknown tag at the end of the request
    for frame in (plain + b"left over", tagged):
        root.send_frame(frame)
        answer = root.receive_frame()
        assert answer is not None
        response = parse_response(answer, ProduceRequest.API, 9)[1]
        assert response.responses[0].partition_responses[0].error_code == 0  # type: ignore[attr-defined]
    assert values_of(fetch(root, topic)) == [b"0", b"1", b"more", b"more"]


@pytest.mark.parametrize("key", [1, 3, 999])
def test_another_request_with_the_same_bytes_is_no_produce(root: RawClient, broker: BrokerProcess, key: int) -> None:
    topic = create(root)
    frame = request_frame(produce_request(topic, batch_of(b"x")))
    for number in range(2):
        assert produce(root, topic, batch_of(b"x")).base_offset == number
    root.send_frame(key.to_bytes(2, "big") + frame[2:])
    with RawClient(broker.address()) as other:
        assert produce(other, topic, batch_of(b"x")).base_offset == 2


# --- several requests that are read together


def send_together(client: RawClient, frames: list[bytes]) -> None:
    """One segment on the wire, so that the broker reads all of them at once."""
    client.send(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))


def receive_produced(client: RawClient, version: int = 9) -> list[tuple[int, int, int, int]]:
    """Correlation id, and each partition's index, error code and base offset."""
    answer = client.receive_frame()
    assert answer is not None
    correlation_id, response = parse_response(answer, ProduceRequest.API, version)
    assert answer == b"".join(encode_response(correlation_id, response, version))
    partitions = response.responses[0].partition_responses  # type: ignore[attr-defined]
    return [(correlation_id, each.index, each.error_code, each.base_offset) for each in partitions]


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("version", [9, 13])
def test_requests_that_come_together_are_answered_one_by_one(
    root: RawClient, durability: str, acks: int, version: int
) -> None:
    topic = create(root, ack_durability=durability)
    topic_id = topic_id_of(root, topic)
    frames = []
    for number in range(40):  # more than may be under way at once; some of them longer than others
        value = b"%d" % number + b"x" * (number % 3 * 70)
        batch = batch_of(value, producer_id=5, producer_epoch=0, base_sequence=number)
        request = produce_request(topic, batch, acks=acks)
        if version == 13:
            request.topic_data[0].name, request.topic_data[0].topic_id = "", topic_id
        frames.append(request_frame(request, version, correlation_id=100 + number))
    send_together(root, frames)
    for number in range(40):
        assert receive_produced(root, version) == [(100 + number, 0, 0, number)]
    if acks == -1:
        values = [value.rstrip(b"x") for value in values_of(fetch(root, topic)) if value is not None]
        assert values == [b"%d" % number for number in range(40)]


def test_a_refusal_in_the_middle_of_a_run_leaves_the_others_as_they_are(root: RawClient) -> None:
    topic = create(root)
    assert produce(root, topic, batch_of(b"first")).base_offset == 0
    good = [request_frame(produce_request(topic, batch_of(b"%d" % number))) for number in range(4)]
    broken = batch_of(b"broken")
    bad = request_frame(produce_request(topic, broken[:-1] + b"!"))
    send_together(root, [good[0], good[1], bad, good[2], good[3]])
    answers = [receive_produced(root)[0][2:] for _ in range(5)]
    assert answers == [(0, 1), (0, 2), (2, -1), (0, 3), (0, 4)]
    assert values_of(fetch(root, topic)) == [b"first", b"0", b"1", b"2", b"3"]


def test_a_run_with_a_resend_in_it_stores_nothing_twice(root: RawClient) -> None:
    topic = create(root)
    batches = [batch_of(b"%d" % n, producer_id=9, producer_epoch=0, base_sequence=n) for n in range(4)]
    assert produce(root, topic, batches[0]).base_offset == 0
    send_together(root, [request_frame(produce_request(topic, batches[number])) for number in (1, 2, 1, 2, 3)])
    assert [receive_produced(root)[0][3] for _ in range(5)] == [1, 2, 1, 2, 3]
    assert values_of(fetch(root, topic)) == [b"0", b"1", b"2", b"3"]


def test_a_run_ends_where_another_partition_topic_or_api_begins(root: RawClient) -> None:
    topic, other = create(root, partitions=2), create(root)
    targets = [(topic, 0), (topic, 0), (topic, 1), (topic, 1), (other, 0), (topic, 0)]
    for name, index in dict.fromkeys(targets):
        produce(root, name, batch_of(b"first"), partition=index)
    frames = [request_frame(produce_request(name, batch_of(b"more"), partition=index)) for name, index in targets]
    asked = b"".join(bytes(part) for part in encode_request(9, "raw", fetch_request(other), 12))
    send_together(root, [*frames[:2], asked, *frames[2:]])
    assert [receive_produced(root)[0][1:] for _ in range(2)] == [(0, 0, 1), (0, 0, 2)]
    assert root.receive_frame() is not None, "the fetch is answered in its place"
    assert [receive_produced(root)[0][1:] for _ in range(4)] == [(1, 0, 1), (1, 0, 2), (0, 0, 1), (0, 0, 3)]


def test_a_run_without_acks_is_appended_without_an_answer(root: RawClient) -> None:
    topic = create(root)
    frames = [request_frame(produce_request(topic, batch_of(b"%d" % number), acks=0)) for number in range(6)]
    send_together(root, frames)
    assert produce(root, topic, batch_of(b"6")).base_offset == 6
