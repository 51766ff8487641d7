"""Names keyed by tenant: the one module that turns (tenant, name) into text and back (contracts.md section 3).

Three texts exist for one `Name`:
- physical: stands in records, checkpoint lines and coordinator hashes. Root = `name`, or `/name` where the name itself
  has a `/`; others = `tenant/name`. Decoded at the first `/`. No two names share one text.
- directory: `orders-0` for root, as Kafka writes it, else `tenants/demo/orders-0`.
- wire: what a client sees. Root sees physical texts, a tenant its own short names and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.ids import PartitionIndex

ROOT = ""
"""The tenant whose names pass unchanged: a bare `serve`, the operators, the engine's own topics."""

TENANTS_DIRECTORY = "tenants"
"""Holds one folder per tenant. No partition directory has this name: those end in a dash and a number."""

DIRECTORY_BYTES_MAX = 255
"""The longest file name that common file systems take."""

TOPIC_NAME_LENGTH_MAX = 249
"""Kafka's bound. With a dash and five digits of partition number the directory still fits."""

PARTITION_COUNT_MAX = 100_000
"""Partition numbers of at most five digits, so that every directory name fits."""

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
CLUSTER_METADATA = "__cluster_metadata"
TELEMETRY = "__telemetry"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, CLUSTER_METADATA, TELEMETRY})

_TENANT_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
_PARTITION_DIRECTORY = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>0|[1-9][0-9]*)", re.ASCII)
_RETIRED_DIRECTORY = re.compile(r"[a-zA-Z0-9._-]+\.[0-9a-f]{32}-(?P<fate>delete|stray)", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """A topic, group, transactional id or principal, with the tenant that owns it."""

    tenant: str
    name: str

    @property
    def is_root(self) -> bool:
        return self.tenant == ROOT

    def __str__(self) -> str:
        """As log lines show it."""
        return physical(self)


@dataclass(frozen=True, slots=True)
class PartitionDirectory:
    name: Name
    partition: PartitionIndex


def is_valid_tenant_id(tenant_id: str) -> bool:
    """True for an id that a tenant may have; the root tenant's empty id is not one of them."""
    return _TENANT_ID.fullmatch(tenant_id) is not None


# --- physical texts


def physical(name: Name) -> str:
    if name.tenant != ROOT:
        return f"{name.tenant}/{name.name}"
    return f"/{name.name}" if "/" in name.name else name.name


def parse_physical(text: str) -> Name:
    """The exact inverse of `physical`: a text that it never gives is a ValueError, so that no name has two texts."""
    tenant, slash, rest = text.partition("/")
    if not slash:
        return Name(ROOT, text)
    if tenant == ROOT and "/" not in rest:
        raise ValueError(f"{text!r} has a leading slash that its name does not need")
    if tenant != ROOT and not is_valid_tenant_id(tenant):
        raise ValueError(f"{text!r} does not begin with a tenant id")
    return Name(tenant, rest)


# --- what clients see


def to_wire(name: Name, viewer_tenant: str) -> str:
    if viewer_tenant == ROOT:
        return physical(name)
    assert name.tenant == viewer_tenant, "a tenant never sees another tenant's name"
    return name.name


def from_wire(text: str, viewer_tenant: str) -> Name:
    """What `text` means to that viewer. Never fails: what is no physical text is root's own name, as it stands."""
    if viewer_tenant != ROOT:
        return Name(viewer_tenant, text)
    try:
        return parse_physical(text)
    except ValueError:
        return Name(ROOT, text)


# --- directories, relative to a log directory


def tenant_directory(tenant: str) -> str:
    """Where a tenant's partition directories stand; "" for root."""
    return "" if tenant == ROOT else f"{TENANTS_DIRECTORY}/{tenant}"


def directory(name: Name, partition: int) -> str:
    return _inside(name.tenant, f"{name.name}-{partition}")


def deleted_directory(name: Name, partition: int, unique_hex: str) -> str:
    """Where a partition's directory is renamed to before its files go. `unique_hex` is a random id of 32 hex digits."""
    return _inside(name.tenant, _retired_base(name, partition, unique_hex, "delete"))


def stray_directory(name: Name, partition: int, unique_hex: str) -> str:
    """Where the directory of a partition that the metadata does not know is kept, for a person to look at."""
    return _inside(name.tenant, _retired_base(name, partition, unique_hex, "stray"))


def parse_directory(path: str) -> PartitionDirectory | None:
    """The partition whose live directory `path` is, or None. What Kafka wrote opens as root."""
    tenant, base = _split_tenant(path)
    match = _PARTITION_DIRECTORY.fullmatch(base)
    if tenant is None or match is None or not is_valid_topic_name(match["topic"]):
        return None
    return PartitionDirectory(Name(tenant, match["topic"]), PartitionIndex(int(match["partition"])))


def is_deleted_directory(path: str) -> bool:
    return _fate(path) == "delete"


def is_stray_directory(path: str) -> bool:
    return _fate(path) == "stray"


def _inside(tenant: str, base: str) -> str:
    return base if tenant == ROOT else f"{tenant_directory(tenant)}/{base}"


def _retired_base(name: Name, partition: int, unique_hex: str, fate: str) -> str:
    # The topic gives way, not the id: two long names that differ only at their end must not meet.
    suffix = f"-{partition}.{unique_hex}-{fate}"
    return name.name[: DIRECTORY_BYTES_MAX - len(suffix)] + suffix


def _split_tenant(path: str) -> tuple[str | None, str]:
    parts = path.split("/")
    if len(parts) == 1:
        return ROOT, path
    if len(parts) == 3 and parts[0] == TENANTS_DIRECTORY and is_valid_tenant_id(parts[1]):
        return parts[1], parts[2]
    return None, path


def _fate(path: str) -> str | None:
    tenant, base = _split_tenant(path)
    match = _RETIRED_DIRECTORY.fullmatch(base)
    return match["fate"] if tenant is not None and match is not None else None


# --- topic names


def check_topic_name(name: str) -> None:
    """Kafka's rules for a new topic's name; INVALID_TOPIC_EXCEPTION says which one is broken."""
    problem = _topic_name_problem(name)
    if problem is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def is_valid_topic_name(name: str) -> bool:
    return _topic_name_problem(name) is None


def collision_key(name: str) -> str:
    """Names with one key may not stand side by side: Kafka's metrics cannot tell `a.b` from `a_b`."""
    return name.replace(".", "_")


def is_internal_topic(name: Name) -> bool:
    """The engine's own topics. A tenant's topic of the same name is an ordinary one."""
    return name.tenant == ROOT and name.name in INTERNAL_TOPICS


def _topic_name_problem(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"the length of '{name[:20]}...' is longer than the maximum allowed length {TOPIC_NAME_LENGTH_MAX}"
    if _TOPIC_NAME.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None
