"""Consumer groups: how long a group of 100 takes to settle, and what the heartbeats of 2,000 members cost."""

from __future__ import annotations

from benchmarks.bars import at_most, value_at_most
from benchmarks.loads import child, group_members, group_settle
from benchmarks.rows.row import Metrics, Row, Stage

MEMBERS, PARTITIONS = 100, 300
BEATING_MEMBERS = 2_000
BEAT_SECONDS = 30.0
NAMES = {"classic": "classic", "consumer": "KIP-848"}


def settle_row(protocol: str) -> Row:
    def measure(stage: Stage) -> Metrics:
        broker, members = stage.broker, stage.sized(MEMBERS, 4)
        with stage.topic(members * PARTITIONS // MEMBERS) as topic:
            settled = child.run(
                group_settle.settle, broker.bootstrap, broker.pid, topic, group=f"settle-{protocol}-{topic}",
                protocol=protocol, member_count=members, partition_count=members * PARTITIONS // MEMBERS,
            )  # fmt: skip
        return {"settled s": settled.seconds, "CPU s": settled.used.cpu_s}

    return Row(
        key=f"group-settle-{protocol}",
        title=f"group of {MEMBERS} members (librdkafka) on {PARTITIONS} partitions, {NAMES[protocol]}: until steady",
        measure=measure,
        bars={"settled s": at_most(1.0)},
        is_quick=protocol == "classic",
    )


def heartbeat_row(protocol: str) -> Row:
    def measure(stage: Stage) -> Metrics:
        broker = stage.broker
        with stage.topic(PARTITIONS) as topic:
            beaten = child.run(
                group_members.beat, broker.port, broker.pid, topic, protocol=protocol,
                member_count=stage.sized(BEATING_MEMBERS, 100), seconds=max(6.0, BEAT_SECONDS * stage.scale),
            )  # fmt: skip
        return beaten.metrics()

    return Row(
        key=f"group-heartbeats-{protocol}",
        title=f"heartbeats of {BEATING_MEMBERS:,} members in groups of 100, {NAMES[protocol]}, raw",
        measure=measure,
        bars={"CPU % of a core": value_at_most(15.0)},
    )


ROWS = (*(settle_row(protocol) for protocol in NAMES), *(heartbeat_row(protocol) for protocol in NAMES))
