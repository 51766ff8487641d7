"""The matrix of client x feature, declared once: what is played, by whom, and what a client does not have.

A driver per client (java/, go/, kafkajs/, python_drivers/) plays features by their keys; `prepare.py` makes what must
be there before, `checks.py` looks afterwards from the broker's side, `cells.py` runs it. `make compat` shows a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Feature:
    key: str
    kind: str
    title: str
    partitions: int = 1
    records: int = 0
    """In each partition, before the driver begins: value-0, value-1, ..."""
    is_quick: bool = False
    """Stands for its kind in `make test`."""


_QUICK = ("earliest", "trimmed")

FEATURES: tuple[Feature, ...] = (
    Feature("acks-0", "produce", "acks=0"),
    Feature("acks-1", "produce", "acks=1"),
    Feature("acks-all", "produce", "acks=all", is_quick=True),
    Feature("send-forget", "send", "fire and forget"),
    Feature("send-sync", "send", "synchronous"),
    Feature("send-callback", "send", "asynchronous with callback", is_quick=True),
    Feature("codec-none", "codecs", "none"),
    Feature("codec-gzip", "codecs", "gzip"),
    Feature("codec-snappy", "codecs", "snappy"),
    Feature("codec-lz4", "codecs", "lz4", is_quick=True),
    Feature("codec-zstd", "codecs", "zstd"),
    Feature("headers", "records", "headers", is_quick=True),
    Feature("idempotent", "records", "idempotent producer"),
    Feature("txn-commit", "transactions", "commit over two partitions", 2, is_quick=True),
    Feature("txn-abort", "transactions", "abort"),
    Feature("txn-fencing", "transactions", "an old producer is fenced"),
    Feature("txn-offsets", "transactions", "offsets in the transaction", records=10),
    Feature("read-committed", "transactions", "read_committed", is_quick=True),
    Feature("group-classic", "groups", "classic: three members", 6, 10, is_quick=True),
    Feature("group-848", "groups", "KIP-848: three members", 6, 10, is_quick=True),
    Feature("cooperative", "groups", "cooperative rebalance", 4, 5),
    Feature("assignor-sticky", "groups", "sticky assignor, eager", 6, 10),
    Feature("assignor-custom", "groups", "custom assignor", 6, 10),
    Feature("static-member", "groups", "static member", records=10),
    Feature("rebalance-listener", "groups", "rebalance listener", 4, 5),
    Feature("regex", "reading", "regex subscription", records=5),
    Feature("pause-resume", "reading", "pause and resume", 2, 5),
    Feature("seek", "reading", "seek", records=10, is_quick=True),
    Feature("outside-store", "reading", "offsets in an outside store", records=10),
    Feature("interceptors", "reading", "interceptors"),
    Feature("commit-auto", "commits", "auto commit", records=10),
    Feature("commit-sync", "commits", "commit, synchronous", records=10, is_quick=True),
    Feature("commit-async", "commits", "commit, asynchronous", records=10),
    *(
        Feature(f"reset-{how}-{state}", "resets", f"{how}, {words}", records=10, is_quick=(how, state) == _QUICK)
        for state, words in {"new": "new group", "expired": "expired offset", "trimmed": "trimmed log"}.items()
        for how in ("earliest", "latest", "none")
    ),
    Feature("admin-create", "admin", "create, grow and delete topics", is_quick=True),
    Feature("admin-describe", "admin", "describe topics and cluster", 2),
    Feature("admin-configs", "admin", "describe and change configs"),
    Feature("admin-delete-records", "admin", "delete records", records=10),
    Feature("admin-groups", "admin", "list and describe groups", records=10),
    Feature("admin-delete-group", "admin", "delete a group", records=10),
    Feature("admin-offsets", "admin", "a group's offsets", records=10),
    Feature("admin-alter-offsets", "admin", "change a group's offsets", records=10),
)  # fmt: skip
FEATURE_OF: Mapping[str, Feature] = MappingProxyType({feature.key: feature for feature in FEATURES})


@dataclass(frozen=True, slots=True)
class Client:
    key: str
    title: str
    absent: Mapping[str, str] = field(default_factory=dict)
    """Features that the client itself does not have, and why."""
    marks: tuple[str, ...] = ()


_NO_848 = {"group-848": "classic groups only"}
_NO_INTERCEPTORS = {"interceptors": "has none"}
_BEFORE_3_7 = {"group-848": "came with 3.7"}
_BEFORE_2_5 = {"admin-alter-offsets": "came with 2.5", "cooperative": "came with 2.4", "static-member": "came with 2.3"}
_NO_RESET_NONE = dict.fromkeys(
    ("reset-none-new", "reset-none-expired", "reset-none-trimmed"), "earliest or latest; has no none"
)

CLIENTS: tuple[Client, ...] = (
    Client("java-4.3.1", "Java 4.3.1", marks=("kafka_peer",)),
    Client("java-3.9.1", "Java 3.9.1", marks=("kafka_peer",)),
    Client("java-2.1.0", "Java 2.1.0", {**_BEFORE_3_7, **_BEFORE_2_5}, marks=("kafka_peer",)),
    Client(
        "java-0.11.0.3",
        "Java 0.11.0.3",
        {
            **_BEFORE_3_7,
            **_BEFORE_2_5,
            "codec-zstd": "came with 2.1",
            "admin-delete-records": "came with 1.1",
            "admin-configs": "describes with DescribeConfigs v0, which went with Kafka 4",
            **dict.fromkeys(("admin-groups", "admin-delete-group", "admin-offsets"), "came with 2.0"),
        },
        marks=("kafka_peer",),
    ),
    Client(
        "confluent-kafka",
        "confluent-kafka",
        {
            "interceptors": "librdkafka's are plugins in C",
            "assignor-sticky": "sticky is cooperative only",
            "assignor-custom": "chooses among its own three assignors",
        },
    ),
    Client(
        "aiokafka",
        "aiokafka",
        {
            **_NO_848,
            **_NO_INTERCEPTORS,
            "cooperative": "eager assignors only",
            "admin-delete-group": "has no such call",
            "admin-alter-offsets": "has no such call",
        },
    ),
    Client("kafka-python", "kafka-python", {**_NO_848, **_NO_INTERCEPTORS}),
    Client(
        "kafkajs",
        "kafkajs",
        {
            **_NO_848,
            "cooperative": "eager assignors only",
            "assignor-sticky": "brings round-robin only; others can be plugged in",
            "static-member": "has no group.instance.id",
            "interceptors": "its events can look on, not change",
            **_NO_RESET_NONE,
        },
    ),
    Client(
        "franz-go",
        "franz-go",
        {
            "assignor-sticky": "its eager members forget what they had before they join again",
            **dict.fromkeys(
                ("reset-none-new", "reset-none-expired"), "none is for a trimmed log; else it begins at the start"
            ),
        },
    ),
    Client(
        "sarama",
        "Sarama",
        {
            **_NO_848,
            "cooperative": "eager assignors only",
            "regex": "subscribes to names only",
            "commit-async": "marks offsets; a commit has no callback",
            **_NO_RESET_NONE,
        },
    ),
)
CLIENT_OF: Mapping[str, Client] = MappingProxyType({client.key: client for client in CLIENTS})


def absence(client: Client, feature: Feature) -> str | None:
    return client.absent.get(feature.key)
