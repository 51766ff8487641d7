"""Every message at every version against kio, and against kafka-python where kio cannot hold the value."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_engine.wire import registry
from broker_engine.wire.api import ApiSpec
from broker_engine.wire.schema import Message, Struct
from tests.broker_engine.wire import kio_oracle
from tests.broker_engine.wire.strategies import NULL_UUID, structs

Case = tuple[ApiSpec, type[Message], int]

QUICK = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
THOROUGH = settings(QUICK, max_examples=60)


def cases(apis: list[ApiSpec]) -> list[Any]:
    return [
        pytest.param((spec, message_type, version), id=f"{message_type.__name__}-v{version}")
        for spec in apis
        for message_type in (spec.request, spec.response)
        for version in range(message_type.__wire_versions__.first, message_type.__wire_versions__.last + 1)
    ]


PUBLIC = cases([spec for spec in registry.all_apis() if not spec.is_internal])
PRIVATE = cases([spec for spec in registry.all_apis() if spec.is_internal])


def kafka_python_class(name: str) -> Any:
    packages = (kafka.protocol.admin, kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer)
    found = [getattr(package, name) for package in (*packages, kafka.protocol.sasl) if hasattr(package, name)]
    return found[0] if found else None


def check_against_kio(case: Case, data: st.DataObject) -> None:
    spec, message_type, version = case
    twin = kio_oracle.twin_of(spec, message_type, version)
    message = data.draw(structs(message_type, version, twin))
    theirs = kio_oracle.to_kio(message, twin)
    ours = message.encode(version)
    assert ours == kio_oracle.encode(theirs)
    assert kio_oracle.decode(twin, ours) == theirs
    assert message_type.decode(ours, version) == message


def check_against_kafka_python(case: Case, data: st.DataObject) -> None:
    _, message_type, version = case
    theirs = kafka_python_class(message_type.__name__)
    message = data.draw(structs(message_type, version))
    ours = message.encode(version)
    decoded = theirs.decode(ours, version=version)
    assert_same_values(message, decoded, version)
    assert message_type.decode(ours, version) == message


def assert_same_values(ours: Any, theirs: Any, version: int) -> None:
    if isinstance(ours, Struct):
        for name, mark in ours.__wire_marks__.items():
            if version in mark.versions and name != "durable_offset":
                assert_same_values(getattr(ours, name), getattr(theirs, name), version)
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same_values(our_item, their_item, version)
    else:
        assert ours == (NULL_UUID if theirs is None and isinstance(ours, UUID) else theirs)


@pytest.mark.parametrize("case", PUBLIC)
@QUICK
@given(data=st.data())
def test_bytes_are_those_of_kio(case: Case, data: st.DataObject) -> None:
    check_against_kio(case, data)


@pytest.mark.slow
@pytest.mark.parametrize("case", PUBLIC)
@THOROUGH
@given(data=st.data())
def test_bytes_are_those_of_kio_at_length(case: Case, data: st.DataObject) -> None:
    check_against_kio(case, data)


# These carry error codes and times that kio turns into enums and datetimes, and so cannot hold all of.
WITH_TIMES = [case for case in PUBLIC if case.values[0][1].__name__ in ("ProduceResponse", "OffsetCommitRequest")]


@pytest.mark.parametrize("case", WITH_TIMES)
@QUICK
@given(data=st.data())
def test_values_beyond_kio_are_read_by_kafka_python(case: Case, data: st.DataObject) -> None:
    check_against_kafka_python(case, data)


# kafka-python turns authorized operations into sets under other names, and guesses a version at an ApiVersions error.
SPECIAL_IN_KAFKA_PYTHON = (
    "MetadataResponse",
    "DescribeClusterResponse",
    "DescribeGroupsResponse",
    "ApiVersionsResponse",
)


def is_plain_in_kafka_python(message_type: type[Message], version: int) -> bool:
    """It has no messages between brokers, and not all of the newest: those are held against kio alone."""
    theirs = kafka_python_class(message_type.__name__)
    is_known = theirs is not None and version <= theirs.max_version
    return is_known and message_type.__name__ not in SPECIAL_IN_KAFKA_PYTHON


PLAIN = [case for case in PUBLIC if is_plain_in_kafka_python(*case.values[0][1:])]


@pytest.mark.slow
@pytest.mark.parametrize("case", PLAIN)
@settings(QUICK, max_examples=20)
@given(data=st.data())
def test_values_are_read_by_kafka_python_at_length(case: Case, data: st.DataObject) -> None:
    check_against_kafka_python(case, data)


@pytest.mark.parametrize("case", PRIVATE)
@QUICK
@given(data=st.data())
def test_private_messages_round_trip(case: Case, data: st.DataObject) -> None:
    _, message_type, version = case
    message = data.draw(structs(message_type, version))
    assert message_type.decode(message.encode(version), version) == message


def test_ranges_are_those_that_the_product_implements() -> None:
    ranges = {spec.name: (spec.min_version, spec.max_version) for spec in registry.all_apis() if not spec.is_internal}
    assert ranges == {
        "AddOffsetsToTxn": (0, 4),
        "AddPartitionsToTxn": (0, 5),
        "AddRaftVoter": (0, 1),
        "AllocateProducerIds": (0, 0),
        "AlterConfigs": (0, 2),
        "AlterPartition": (2, 3),
        "AlterPartitionReassignments": (0, 1),
        "ApiVersions": (0, 4),
        "BeginQuorumEpoch": (0, 1),
        "BrokerHeartbeat": (0, 1),
        "BrokerRegistration": (0, 4),
        "ConsumerGroupDescribe": (0, 1),
        "ConsumerGroupHeartbeat": (0, 1),
        "CreatePartitions": (0, 3),
        "CreateTopics": (2, 7),
        "DeleteGroups": (0, 2),
        "DeleteRecords": (0, 2),
        "DeleteTopics": (1, 6),
        "DescribeCluster": (0, 2),
        "DescribeConfigs": (1, 4),
        "DescribeGroups": (0, 6),
        "DescribeLogDirs": (1, 4),
        "DescribeProducers": (0, 0),
        "DescribeQuorum": (0, 2),
        "DescribeTopicPartitions": (0, 0),
        "DescribeTransactions": (0, 0),
        "ElectLeaders": (0, 2),
        "EndQuorumEpoch": (0, 1),
        "EndTxn": (0, 5),
        "Envelope": (0, 0),
        "Fetch": (4, 17),
        "FetchSnapshot": (0, 1),
        "FindCoordinator": (0, 6),
        "Heartbeat": (0, 4),
        "IncrementalAlterConfigs": (0, 1),
        "InitProducerId": (0, 5),
        "JoinGroup": (0, 9),
        "LeaveGroup": (0, 5),
        "ListConfigResources": (0, 1),
        "ListGroups": (0, 5),
        "ListOffsets": (1, 11),
        "ListPartitionReassignments": (0, 0),
        "ListTransactions": (0, 2),
        "Metadata": (0, 13),
        "OffsetCommit": (2, 10),
        "OffsetDelete": (0, 0),
        "OffsetFetch": (1, 10),
        "OffsetForLeaderEpoch": (2, 4),
        "Produce": (3, 13),
        "RemoveRaftVoter": (0, 0),
        "SaslAuthenticate": (0, 2),
        "SaslHandshake": (0, 1),
        "SyncGroup": (0, 5),
        "TxnOffsetCommit": (0, 5),
        "UnregisterBroker": (0, 0),
        "UpdateFeatures": (0, 2),
        "Vote": (0, 2),
        "WriteTxnMarkers": (1, 2),
    }
