"""The records of the metadata log. A value is: uvarint type, uvarint version, body by the wire codec.

Every record that names something carries its tenant. A type's number and the meaning of a version never change; a new
field raises the version. A node that meets a type or version it does not know stops: skipping it would give it another
image than its peers have.
"""

from __future__ import annotations

from typing import ClassVar

from broker_engine.wire.errors import WireError
from broker_engine.wire.kinds import Array, Bool, Bytes, Int8, Int16, Int32, Int64, String, UInt16, Uuid
from broker_engine.wire.primitives import NULL_UUID, read_uvarint, write_uvarint
from broker_engine.wire.schema import Struct, field

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_GROUP = 32
OWN_OFFSET = -1
"""A broker epoch that is the offset of the record which says so."""


class UnknownRecordError(Exception):
    """The log holds what this version of Highwater does not know, or what is no record: the node must stop."""


class Record(Struct):
    """Base of all types; `TYPE` is the number in the log, `VERSION` the one that is written."""

    TYPE: ClassVar[int]
    VERSION: ClassVar[int] = 0


class TenantRecord(Record):
    """A tenant is there, or its policy changed."""

    TYPE: ClassVar[int] = 1
    tenant: String = ""
    cluster_id: String = ""
    policy_json: String = "{}"


class RemoveTenantRecord(Record):
    """A tenant is gone, and its id is used up. Its topics and credentials were removed by records before this one."""

    TYPE: ClassVar[int] = 2
    tenant: String = ""


class TopicRecord(Record):
    TYPE: ClassVar[int] = 3
    tenant: String = ""
    name: String = ""
    topic_id: Uuid = NULL_UUID


class PartitionRecord(Record):
    """The whole state of one partition. Version 1: more than one broker may hold it."""

    TYPE: ClassVar[int] = 4
    VERSION: ClassVar[int] = 1
    topic_id: Uuid = NULL_UUID
    partition: Int32 = 0
    replicas: Array[Int32] = ()
    isr: Array[Int32] = ()
    elr: Array[Int32] = ()
    leader: Int32 = -1
    leader_epoch: Int32 = 0
    partition_epoch: Int32 = 0
    adding: Array[Int32] = field("1+", default=())
    removing: Array[Int32] = field("1+", default=())
    last_known_elr: Array[Int32] = field("1+", default=())
    leader_recovery_state: Int8 = field("1+", default=0)
    unclean_elections: Int32 = field("1+", default=0)


class RemoveTopicRecord(Record):
    TYPE: ClassVar[int] = 5
    tenant: String = ""
    name: String = ""
    topic_id: Uuid = NULL_UUID


class ConfigRecord(Record):
    """One config of a topic or broker; a null value removes it."""

    TYPE: ClassVar[int] = 6
    tenant: String = ""
    resource_type: Int8 = RESOURCE_TOPIC
    resource_name: String = ""
    name: String = ""
    value: String | None = None


class ScramMechanismField(Struct):
    mechanism: Int8 = 1
    salt: Bytes = b""
    iterations: Int32 = 0
    stored_key: Bytes = b""
    server_key: Bytes = b""


class CredentialRecord(Record):
    TYPE: ClassVar[int] = 7
    tenant: String = ""
    username: String = ""
    principal: String = ""
    mechanisms: Array[ScramMechanismField] = ()


class RemoveCredentialRecord(Record):
    TYPE: ClassVar[int] = 8
    tenant: String = ""
    username: String = ""


class ProducerIdsRecord(Record):
    """All producer ids below `next_producer_id` are given out."""

    TYPE: ClassVar[int] = 9
    broker_id: Int32 = -1
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


class EndpointField(Struct):
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: String = "PLAINTEXT"


class BrokerRegistrationRecord(Record):
    """One life of a broker's process. Its broker epoch is this record's own offset, or `broker_epoch` in a snapshot."""

    TYPE: ClassVar[int] = 10
    VERSION: ClassVar[int] = 1
    broker_id: Int32 = -1
    incarnation_id: Uuid = NULL_UUID
    rack: String | None = None
    endpoints: Array[EndpointField] = ()
    fenced: Bool = False
    directory_id: Uuid = field("1+", default=NULL_UUID)
    controller_endpoint: EndpointField | None = field("1+", default=None)
    is_shutting_down: Bool = field("1+", default=False)
    broker_epoch: Int64 = field("1+", default=OWN_OFFSET)


class FeatureLevelRecord(Record):
    TYPE: ClassVar[int] = 11
    name: String = ""
    level: Int16 = 0


class VoterField(Struct):
    voter_id: Int32 = -1
    directory_id: Uuid = NULL_UUID
    endpoints: Array[EndpointField] = ()


class VotersRecord(Record):
    """Who votes. There is always one at the head of the log, so that a single node can grow later."""

    TYPE: ClassVar[int] = 12
    voters: Array[VoterField] = ()


class BrokerChangeRecord(Record):
    """A broker was fenced or unfenced, or began to shut down, within one life of its process."""

    TYPE: ClassVar[int] = 13
    broker_id: Int32 = -1
    broker_epoch: Int64 = -1
    fenced: Bool = False
    is_shutting_down: Bool = False


class RemoveBrokerRecord(Record):
    """A broker that does not come back: it holds no replica any more."""

    TYPE: ClassVar[int] = 14
    broker_id: Int32 = -1
    broker_epoch: Int64 = -1


RECORD_TYPES: dict[int, type[Record]] = {
    record_type.TYPE: record_type
    for record_type in (
        TenantRecord,
        RemoveTenantRecord,
        TopicRecord,
        PartitionRecord,
        RemoveTopicRecord,
        ConfigRecord,
        CredentialRecord,
        RemoveCredentialRecord,
        ProducerIdsRecord,
        BrokerRegistrationRecord,
        FeatureLevelRecord,
        VotersRecord,
        BrokerChangeRecord,
        RemoveBrokerRecord,
    )
}


def encode_record(record: Record) -> bytes:
    head = bytearray()
    write_uvarint(head, record.TYPE)
    write_uvarint(head, record.VERSION)
    return bytes(head) + record.encode(record.VERSION)


def decode_record(value: bytes | memoryview) -> Record:
    view = memoryview(value)
    type_number, version, position = _read_head(view)
    record_type = RECORD_TYPES.get(type_number)
    if record_type is None:
        raise UnknownRecordError(f"metadata record type {type_number} is not known: run a newer version of Highwater")
    if version > record_type.VERSION:
        text = f"version {version} of {record_type.__name__} is not known: run a newer version of Highwater"
        raise UnknownRecordError(text)
    try:
        return record_type.decode(view[position:], version)
    except WireError as error:
        raise UnknownRecordError(f"{record_type.__name__} cannot be read: {error}") from error


def _read_head(view: memoryview) -> tuple[int, int, int]:
    try:
        type_number, position = read_uvarint(view, 0)
        version, position = read_uvarint(view, position)
    except (WireError, IndexError) as error:
        raise UnknownRecordError("metadata record is cut short") from error
    return type_number, version, position
