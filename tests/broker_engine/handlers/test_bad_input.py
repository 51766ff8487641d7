"""Odd and hostile input on the wire: what Kafka 4.3.1 did, the broker does; it lives, and nothing is appended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker_engine.handlers import CLIENT_APIS
from broker_engine.handlers.api import AnyApi
from broker_engine.wire import registry
from broker_engine.wire.framing import encode_request
from broker_engine.wire.messages.produce import ProduceRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import (
    batch_of,
    create,
    describe,
    fetch,
    new_name,
    produce,
    produce_request,
    values_of,
)
from tests.broker_engine.raw_client import RawClient

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
SPECIAL = [json.loads(line) for line in (GOLDEN / "special.jsonl").read_text().splitlines()]
BATCHES = [json.loads(line) for line in (GOLDEN / "batches.jsonl").read_text().splitlines()]

# A key that we do not have: Kafka answers 71 although it does not advertise it, we close, as with every unknown key.
NOT_OURS = {"key 71 v0"}

# Seen only by looking inside the batch (contracts.md section 7): refused with record.validation=full, else accepted.
NEEDS_A_LOOK_INSIDE = {
    "count 2 but 1 record",
    "count 1 but 2 records",
    "codec gzip, body not gzip",
    "zstd flag v7 (body junk)",
    "record length wrong",
    "record header count -1",
    "header null key",
    "compressed bad record offset delta",
}


@pytest.fixture(scope="module")
def topic_sw(broker: BrokerProcess) -> str:
    """The topic that stood there when the frames were captured."""
    with RawClient(broker.address()) as client:
        return create(client, "sw", partitions=2)


OURS = [case for case in SPECIAL if case["name"] not in NOT_OURS]


@pytest.mark.parametrize("case", OURS, ids=lambda case: case["name"])
def test_odd_frames_are_met_as_kafka_meets_them(broker: BrokerProcess, topic_sw: str, case: dict[str, Any]) -> None:
    *answers, end = case["outcome"]
    with RawClient(broker.address()) as client:
        for request in map(bytes.fromhex, case["requests"]):
            client.send(request) if case.get("unframed") else client.send_frame(request)
        got = []
        for _ in answers:
            frame = client.receive_frame()
            assert frame is not None, "closed instead of answered"
            got.append(frame)
        assert client.is_closed_by_peer() if end == "closed" else client.is_open()
    for mine, kafkas in zip(got, answers, strict=True):
        _assert_same_shape(mine, bytes.fromhex(kafkas), bytes.fromhex(case["requests"][-1]))
    with RawClient(broker.address()) as client:
        assert describe(client, topic_sw).error_code == 0


def _assert_same_shape(mine: bytes, kafkas: bytes, request: bytes) -> None:
    """Same correlation id; and the same error codes, decoded in the version that was answered."""
    assert mine[:4] == kafkas[:4]
    key, version = int.from_bytes(request[:2], "big"), int.from_bytes(request[2:4], "big", signed=True)
    spec = registry.api(key)
    if not spec.has_version(version):
        assert mine == kafkas  # the fallback of ApiVersions: byte for byte
        return
    header_bytes = 5 if spec.is_flexible(version) and key != 18 else 4
    ours, theirs = (spec.response.decode(frame[header_bytes:], version) for frame in (mine, kafkas))
    assert getattr(ours, "error_code", 0) == getattr(theirs, "error_code", 0)
    asked_for_all = not hasattr(theirs, "topics") or len(theirs.topics) > 1
    if not asked_for_all:
        assert [topic.error_code for topic in ours.topics] == [topic.error_code for topic in theirs.topics]


@pytest.mark.parametrize("validation", ["header", "full"])
@pytest.mark.parametrize("case", BATCHES, ids=lambda case: case["name"])
def test_batches_get_kafkas_verdict_over_the_wire(root: RawClient, case: dict[str, Any], validation: str) -> None:
    configs = {name.replace(".", "_"): value for name, value in case["topic_config"].items()}
    topic = create(root, record_validation=validation, message_timestamp_before_max_ms=str(2**63 - 1), **configs)
    answer = produce(root, topic, bytes.fromhex(case["records"]), version=case["produce_version"])
    expected = {case["error"]}
    if case["error"] == -1:
        expected = {-1, 2, 87, 76}  # undecodable: a better code than Kafka's is no incompatibility
    if validation == "header" and case["name"] in NEEDS_A_LOOK_INSIDE:
        expected |= {0}
    assert answer.error_code in expected, answer
    if "record_errors" in case:
        assert [each.batch_index for each in answer.record_errors] == case["record_errors"]
    assert fetch(root, topic).high_watermark == (0 if answer.error_code else answer.base_offset + _count(case))


def _count(case: dict[str, Any]) -> int:
    return int.from_bytes(bytes.fromhex(case["records"])[57:61], "big")


@pytest.mark.parametrize("api", CLIENT_APIS, ids=lambda api: api.spec.name)
def test_every_cut_of_a_request_is_closed_or_answered_and_the_broker_lives(broker: BrokerProcess, api: AnyApi) -> None:
    for version in {api.spec.min_version, api.advertised[1]}:
        whole = b"".join(bytes(part) for part in encode_request(7, "raw", api.request(), version))  # type: ignore[arg-type]
        for size in range(1, len(whole)):
            with RawClient(broker.address()) as client:
                client.send_frame(whole[:size])
                client.send((0).to_bytes(4, "big"))  # whatever becomes of the first, the second ends the connection
                while client.receive_frame() is not None:
                    pass
    with RawClient(broker.address()) as client:
        assert describe(client, "nobody-made-this").error_code == 3


def test_a_null_records_field_is_refused(root: RawClient) -> None:
    topic = create(root)
    assert produce(root, topic, None).error_code == 87  # type: ignore[arg-type]
    assert fetch(root, topic).high_watermark == 0


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_senseless_acks_are_refused(root: RawClient, acks: int) -> None:
    topic = create(root)
    assert produce(root, topic, batch_of(b"x"), acks=acks).error_code == 21
    assert fetch(root, topic).high_watermark == 0


def test_a_failed_request_without_acks_closes_and_a_good_one_does_not(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client:
        topic = create(client)
        client.send_request(_without_acks(topic, batch_of(b"kept")), 9)
        assert values_of(fetch(client, topic)) == [b"kept"]
        client.send_request(_without_acks(new_name("absent"), batch_of(b"lost")), 9)
        assert client.is_closed_by_peer()


def test_a_refusal_of_the_whole_request_closes_where_no_answer_is_expected(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client:
        client.send_request(_without_acks(create(client), batch_of(b"x", is_transactional=True)), 9)
        assert client.is_closed_by_peer()


def _without_acks(topic: str, records: bytes) -> ProduceRequest:
    return produce_request(topic, records, acks=0)
