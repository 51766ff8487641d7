"""What must be true on the broker after a driver said that a feature went well; read by `Observer`, not the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broker_engine.records.batch import Codec
from tests.compatibility.observer import Observer

Check = Callable[[Observer, str, Mapping[str, Any]], None]


def check(observer: Observer, key: str, name: str, said: Mapping[str, Any]) -> None:
    """`name`: of the feature's topic, which is also its group."""
    if key in _CHECKS:
        _CHECKS[key](observer, name, said)


def _ten_values(observer: Observer, name: str, said: Mapping[str, Any]) -> None:
    assert observer.values(name) == [f"value-{i}" for i in range(10)]
    if said.get("offsets"):
        assert list(map(int, said["offsets"])) in (list(range(10)), [-1] * 10), said


def _codec(codec: Codec) -> Check:
    def look(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
        assert {batch.header.codec for batch in observer.batches(name)} == {codec}, "not stored in the codec"
        assert len(observer.values(name)) == 50

    return look


def _headers(observer: Observer, name: str, said: Mapping[str, Any]) -> None:
    (batch,) = observer.batches(name)
    wanted = (("empty", b""), ("trace", b"1"), ("trace", b"2"))
    assert tuple(sorted(batch.records[0].headers)) == wanted
    assert sorted(said["headers"]) == ["empty=", "trace=1", "trace=2"]


def _idempotent(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    headers = [batch.header for batch in observer.batches(name)]
    assert observer.values(name) == [f"value-{i}" for i in range(20)]
    assert len({header.producer_id for header in headers}) == 1
    assert headers[0].producer_id >= 0
    assert [header.base_sequence for header in headers] == [header.base_offset for header in headers]


def _txn_commit(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    for partition in range(2):
        assert observer.committed_values(name, partition) == [f"kept-{i}" for i in range(5)]
        assert observer.markers(name, partition) == ["commit"]


def _txn_abort(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    """An old producer is fenced: its records stay, aborted. Or it was told to abort."""
    kept = [f"kept-{i}" for i in range(5)]
    assert observer.committed_values(name) == kept
    assert observer.values(name) == [f"dropped-{i}" for i in range(5)] + kept
    assert observer.markers(name) == ["abort", "commit"]


def _txn_offsets(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    assert observer.committed_values(f"{name}-out") == [f"seen-value-{i}" for i in range(10)]
    assert observer.committed(name, name) == 10


def _interceptors(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    assert observer.values(name) == [f"value-{i}-marked" for i in range(5)]


def _committed(offset: int | None) -> Check:
    def look(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
        assert observer.committed(name, name) == offset

    return look


def _static(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    members = observer.instance_ids(name)
    assert members == ["fixed"], f"it did not leave, so it keeps its place for a session: {members}"


def _created(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    assert observer.partition_count(f"{name}-made") == 3
    assert observer.partition_count(f"{name}-gone") is None


def _deleted_records(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    assert observer.start_offset(name) == 4


def _deleted_group(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
    assert name not in observer.groups()


def _group_type(wanted: str) -> Check:
    """A client that does not find the consumer protocol may fall back to the classic one without a word."""

    def look(observer: Observer, name: str, _: Mapping[str, Any]) -> None:
        found = observer.groups().get(name)
        assert found is not None, "the group is gone"
        assert found.lower() == wanted, f"the group is {found}"

    return look


_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("acks-0", "acks-1", "acks-all", "send-forget", "send-sync", "send-callback"), _ten_values),
    **{f"codec-{codec.name.lower()}": _codec(codec) for codec in Codec},
    "headers": _headers,
    "idempotent": _idempotent,
    "txn-commit": _txn_commit,
    "txn-abort": _txn_abort,
    "txn-fencing": _txn_abort,
    "txn-offsets": _txn_offsets,
    "group-classic": _group_type("classic"),
    **dict.fromkeys(("assignor-sticky", "assignor-custom"), _group_type("classic")),
    "group-848": _group_type("consumer"),
    "static-member": _static,
    "outside-store": _committed(None),
    "interceptors": _interceptors,
    "commit-auto": _committed(10),
    "commit-sync": _committed(4),
    "commit-async": _committed(6),
    "admin-create": _created,
    "admin-delete-records": _deleted_records,
    "admin-delete-group": _deleted_group,
    "admin-alter-offsets": _committed(3),
}
