"""What brokers tell, without brokers: rows of telemetry put into the snapshot, heard when the test says so."""

from __future__ import annotations

import json
from typing import Any

from control_plane.live.snapshot import Snapshot


class Stream:
    """What the brokers tell, and when it is heard."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.snapshot = Snapshot(clock=lambda: self.now_s)

    def tell(self, kind: str, row: dict[str, Any], **key: Any) -> None:
        subject = {"v": 1, "broker": 1, "broker_epoch": 1, "kind": kind, "tenant": "", "name": "", "partition": -1}
        self.snapshot.apply(json.dumps({**subject, **key}).encode(), json.dumps(row).encode())

    def cluster(self, *brokers: int, fenced: tuple[int, ...] = (), controller: int = 1) -> None:
        members = [
            {
                "broker": broker,
                "broker_epoch": 1,
                "host": f"host-{broker}",
                "rack": "",
                "is_fenced": broker in fenced,
                "is_shutting_down": False,
            }
            for broker in brokers
        ]
        row = {"at_ms": 1, "metadata_offset": 40, "controller": controller, "controller_epoch": 3, "voters": [1, 2, 3]}
        self.tell("cluster", {**row, "brokers": members, "unclean_election_count": 2})

    def broker(self, broker: int, **more: Any) -> None:
        counts = {"connection_count": 4, "partition_count": 7, "bytes_in": 2**60, "bytes_out": 5, "loop_lag_ms": 1}
        self.tell("broker", {"at_ms": 1, "started_ms": 1, **counts, **more}, broker=broker)

    def partition(self, name: str = "orders", partition: int = 0, tenant: str = "demo", **more: Any) -> None:
        row = {
            "at_ms": 1, "topic_id": "t", "leader": 1, "leader_epoch": 3, "isr": [1, 2, 3], "log_start_offset": 0,
            "replicas": [{"broker": broker, "log_end_offset": 100} for broker in (1, 2, 3)], "high_watermark": 100,
            "last_stable_offset": 100, "log_end_offset": 100, "size_bytes": 1000, "last_append_ms": 1, "min_insync": 2,
        }  # fmt: skip
        self.tell("partition", {**row, **more}, tenant=tenant, name=name, partition=partition)

    def group(self, name: str = "readers", tenant: str = "demo", broker: int = 1, **more: Any) -> None:
        row = {
            "at_ms": 1, "coordinator_epoch": 2, "offsets_partition": 7, "state": "Stable", "protocol": "classic",
            "protocol_type": "consumer", "generation": 4, "assignor": "range", "leader": "", "state_since_ms": 5,
            "member_count": 0, "members": [], "events": [],
        }  # fmt: skip
        members = more.get("members", [])
        self.tell("group", {**row, "member_count": len(members), **more}, tenant=tenant, name=name, broker=broker)

    def offset(
        self, offset: int, partition: int = 0, *, group: str = "readers", topic: str = "orders", tenant: str = "demo",
        **more: Any,
    ) -> None:  # fmt: skip
        row = {
            "at_ms": 1, "coordinator_epoch": 2, "topic_id": "t", "offset": offset, "commit_ms": 1, "metadata": "",
            "commit_count": 1, "unread_ms": -2,
        }  # fmt: skip
        self.tell("group_offset", {**row, **more}, tenant=tenant, name=topic, partition=partition, group=group)

    def readers(self, *readers: tuple[str, str, int, int], partition: int = 0, topic: str = "orders") -> None:
        names = ("client_id", "host", "offset", "connection_count")
        rows = [dict(zip(names, reader, strict=True)) for reader in readers]
        row = {"at_ms": 1, "leader_epoch": 3, "reader_count": len(rows), "readers": rows}
        self.tell("readers", row, tenant="demo", name=topic, partition=partition)


def member(name: str, *partitions: int, client_id: str = "app", host: str = "/10.0.0.1", topic: str = "orders") -> Any:
    owned = {topic: list(partitions)} if partitions else {}
    return {"id": name, "client_id": client_id, "host": host, "instance_id": "", "partitions": owned}
