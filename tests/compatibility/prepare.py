"""What stands on the broker before a driver begins: topics, records, commits, for each feature that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import Producer

from tests.broker_engine.cluster.cluster_process import wait_for
from tests.compatibility.matrix import FEATURE_OF, Feature
from tests.compatibility.observer import Observer

EXPIRY_S = 10.0


def prepare(bootstrap: str, prefix: str, keys: Iterable[str]) -> dict[str, str]:
    """What went wrong, of the features that cannot be played therefore."""
    observer = Observer(bootstrap)
    features = [FEATURE_OF[key] for key in keys]
    partitions_of: dict[str, int] = {}
    for feature in features:
        partitions_of |= dict.fromkeys(_topics(feature, f"{prefix}-{feature.key}"), feature.partitions)
    if partitions_of:
        observer.create(partitions_of)
    problems: dict[str, str] = {}
    for step in (_fill, _settle):
        for feature in features:
            try:
                step(observer, bootstrap, feature, f"{prefix}-{feature.key}")
            except Exception as error:
                problems.setdefault(feature.key, f"before it began: {error or type(error).__name__}")
    return problems


def _topics(feature: Feature, name: str) -> list[str]:
    special = {
        "regex": [f"{name}-a", f"{name}-b"],
        "txn-offsets": [name, f"{name}-out"],
        "admin-create": [],
    }
    return special.get(feature.key, [name])


def _fill(observer: Observer, bootstrap: str, feature: Feature, name: str) -> None:
    if feature.records:
        values = [f"value-{i}".encode() for i in range(feature.records)]
        for topic in _topics(feature, name):
            if not topic.endswith("-out"):
                for partition in range(feature.partitions):
                    observer.seed(topic, partition, values)
    ending = feature.key.rpartition("-")[2] if feature.kind == "resets" else feature.key
    if ending in _SPECIAL:
        _SPECIAL[ending](observer, bootstrap, name)


def _settle(observer: Observer, _: str, feature: Feature, name: str) -> None:
    if feature.key.endswith("-expired"):
        wait_for("the expiry of a commit", lambda: observer.committed(name, name) is None, timeout_s=EXPIRY_S)


def _committed(observer: Observer, _: str, name: str) -> None:
    observer.commit(name, name, 7)


def _expiring(observer: Observer, _: str, name: str) -> None:
    """A commit that counts for a millisecond: the broker forgets it at its next look."""
    observer.commit(name, name, 2, retention_ms=1)


def _trimmed(observer: Observer, _: str, name: str) -> None:
    observer.commit(name, name, 2)
    observer.trim(name, 5)


def _transactions(_: Observer, bootstrap: str, name: str) -> None:
    """Kept, dropped, kept: five records each."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{name}-writer", "log_level": 3})
    producer.init_transactions(30)
    for word, end in (
        ("kept", producer.commit_transaction),
        ("dropped", producer.abort_transaction),
        ("kept-too", producer.commit_transaction),
    ):
        producer.begin_transaction()
        for i in range(5):
            producer.produce(name, f"{word}-{i}".encode(), partition=0)
        producer.flush(30)
        end(30)


_SPECIAL: Mapping[str, Callable[[Observer, str, str], None]] = {
    **dict.fromkeys(("admin-groups", "admin-delete-group", "admin-offsets", "admin-alter-offsets"), _committed),
    "expired": _expiring,
    "trimmed": _trimmed,
    "read-committed": _transactions,
}
