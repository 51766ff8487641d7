from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.metadata import records as r
from broker_engine.metadata.records import UnknownRecordError, decode_record, encode_record

UUIDS = st.uuids()
TEXT = st.text(max_size=20)
IDS = st.lists(st.integers(0, 1 << 30), max_size=3)
EPOCHS = st.integers(0, (1 << 31) - 1)
ENDPOINT = st.builds(r.EndpointField, name=TEXT, host=TEXT, port=st.integers(0, 65_535))
ENDPOINTS = st.lists(ENDPOINT, max_size=2)
MECHANISMS = st.lists(
    st.builds(
        r.ScramMechanismField,
        mechanism=st.integers(1, 2),
        salt=st.binary(max_size=40),
        iterations=EPOCHS,
        stored_key=st.binary(max_size=64),
        server_key=st.binary(max_size=64),
    ),
    max_size=2,
)
RECORDS: st.SearchStrategy[Any] = st.one_of(
    st.builds(r.TenantRecord, tenant=TEXT, cluster_id=TEXT, policy_json=TEXT),
    st.builds(r.RemoveTenantRecord, tenant=TEXT),
    st.builds(r.TopicRecord, tenant=TEXT, name=TEXT, topic_id=UUIDS),
    st.builds(
        r.PartitionRecord,
        topic_id=UUIDS,
        partition=EPOCHS,
        replicas=IDS,
        isr=IDS,
        elr=IDS,
        leader=st.integers(-1, 9),
        leader_epoch=EPOCHS,
        partition_epoch=EPOCHS,
        adding=IDS,
        removing=IDS,
        last_known_elr=IDS,
        leader_recovery_state=st.integers(0, 1),
        unclean_elections=EPOCHS,
    ),
    st.builds(r.RemoveTopicRecord, tenant=TEXT, name=TEXT, topic_id=UUIDS),
    st.builds(
        r.ConfigRecord,
        tenant=TEXT,
        resource_type=st.integers(0, 99),
        resource_name=TEXT,
        name=TEXT,
        value=st.none() | TEXT,
    ),
    st.builds(r.CredentialRecord, tenant=TEXT, username=TEXT, principal=TEXT, mechanisms=MECHANISMS),
    st.builds(r.RemoveCredentialRecord, tenant=TEXT, username=TEXT),
    st.builds(
        r.ProducerIdsRecord,
        broker_id=EPOCHS,
        broker_epoch=st.integers(0, 1 << 62),
        next_producer_id=st.integers(0, 1 << 62),
    ),
    st.builds(
        r.BrokerRegistrationRecord,
        broker_id=EPOCHS,
        incarnation_id=UUIDS,
        rack=st.none() | TEXT,
        endpoints=ENDPOINTS,
        fenced=st.booleans(),
        directory_id=UUIDS,
        controller_endpoint=st.none() | ENDPOINT,
        is_shutting_down=st.booleans(),
        broker_epoch=st.integers(-1, 1 << 62),
    ),
    st.builds(r.RemoveBrokerRecord, broker_id=EPOCHS, broker_epoch=st.integers(0, 1 << 62)),
    st.builds(
        r.BrokerChangeRecord,
        broker_id=EPOCHS,
        broker_epoch=st.integers(0, 1 << 62),
        fenced=st.booleans(),
        is_shutting_down=st.booleans(),
    ),
    st.builds(r.FeatureLevelRecord, name=TEXT, level=st.integers(0, 99)),
    st.builds(
        r.VotersRecord,
        voters=st.lists(st.builds(r.VoterField, voter_id=EPOCHS, directory_id=UUIDS, endpoints=ENDPOINTS), max_size=3),
    ),
)


@given(RECORDS)
def test_a_record_survives_its_bytes(record: r.Record) -> None:
    assert decode_record(encode_record(record)) == record


@given(RECORDS, st.data())
def test_a_record_cut_short_stops_the_node(record: r.Record, data: st.DataObject) -> None:
    value = encode_record(record)
    cut = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(UnknownRecordError):
        decode_record(value[:cut])


@given(st.binary(max_size=40))
def test_no_bytes_crash_the_decoder(value: bytes) -> None:
    try:
        decode_record(memoryview(value))
    except UnknownRecordError:
        return


@pytest.mark.parametrize("value", [b"\x63\x00", b"\x00\x00", b"\xff\xff\xff\xff\x0f\x00"])
def test_an_unknown_type_stops_the_node(value: bytes) -> None:
    with pytest.raises(UnknownRecordError, match="not known"):
        decode_record(value)


def test_an_unknown_version_stops_the_node() -> None:
    value = bytearray(encode_record(r.RemoveTenantRecord(tenant="demo")))
    value[1] = 1
    with pytest.raises(UnknownRecordError, match="version 1 of RemoveTenantRecord"):
        decode_record(bytes(value))


def test_the_numbers_in_the_log_never_change() -> None:
    assert {number: kind.__name__ for number, kind in r.RECORD_TYPES.items()} == {
        1: "TenantRecord", 2: "RemoveTenantRecord", 3: "TopicRecord", 4: "PartitionRecord", 5: "RemoveTopicRecord",
        6: "ConfigRecord", 7: "CredentialRecord", 8: "RemoveCredentialRecord", 9: "ProducerIdsRecord",
        10: "BrokerRegistrationRecord", 11: "FeatureLevelRecord", 12: "VotersRecord", 13: "BrokerChangeRecord",
        14: "RemoveBrokerRecord",
    }  # fmt: skip
    topic = r.TopicRecord(tenant="demo", name="orders", topic_id=UUID(int=1))
    assert encode_record(topic).hex() == "0300" + "0564656d6f" + "076f7264657273" + "00" * 15 + "01" + "00"


def test_what_the_first_version_wrote_is_still_read() -> None:
    """A directory made by a single broker, before partitions had more than one replica."""
    partition = r.PartitionRecord(topic_id=UUID(int=1), replicas=[1], isr=[1], leader=1, leader_epoch=3)
    assert decode_record(b"\x04\x00" + partition.encode(0)) == partition
    endpoint = r.EndpointField(name="default", host="localhost", port=9092)
    registration = r.BrokerRegistrationRecord(broker_id=1, incarnation_id=UUID(int=2), endpoints=[endpoint])
    assert decode_record(b"\x0a\x00" + registration.encode(0)) == registration
