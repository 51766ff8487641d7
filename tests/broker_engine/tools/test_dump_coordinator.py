"""`dump-log` of `__consumer_offsets`: what it prints of commits, classic groups and KIP-848 groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker_engine.groups.consumer.member import ClassicFacts, MemberState, Standing, Subscription
from broker_engine.groups.consumer.records import REGEX, STANDING, SUBSCRIPTION, ConsumerRecord, Key, Regex, encode
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.tools.dump_log import dump

FIRST = f"{0:020d}.log"
GOLDEN = Path(__file__).parents[2] / "golden" / "segments" / "__consumer_offsets-0"


def by_offset(lines: list[str]) -> dict[int, str]:
    """The records' lines without offset and time."""
    return {int(line.split()[2]): line.split(maxsplit=5)[5] for line in lines if line.startswith("| offset ")}


PRINTED = by_offset(list(dump(GOLDEN / FIRST)))
DECODED_BY_KAFKA = {row["offset"]: row for row in map(json.loads, (GOLDEN / "decoded.jsonl").read_text().splitlines())}


def of_type(number: str) -> list[int]:
    return [offset for offset, row in DECODED_BY_KAFKA.items() if row["key"]["type"] == number and row["value"]]


@pytest.mark.parametrize("offset", of_type("1"))
def test_a_commit_is_printed_with_all_that_kafka_prints(offset: int) -> None:
    row = DECODED_BY_KAFKA[offset]
    key, value = row["key"]["data"], row["value"]["data"]
    assert PRINTED[offset] == (
        f"offset commit group={key['group']} topic={key['topic']} partition={key['partition']}: "
        f"offset={value['offset']} leader_epoch={value['leaderEpoch']} metadata={value['metadata']} "
        f"commit_timestamp={value['commitTimestamp']}"
    )


@pytest.mark.parametrize("offset", of_type("2"))
def test_a_classic_group_is_printed_with_its_members(offset: int) -> None:
    row = DECODED_BY_KAFKA[offset]
    value = row["value"]["data"]
    members = ", ".join(member["memberId"] for member in value["members"])
    assert PRINTED[offset] == (
        f"group group={row['key']['data']['group']}: protocol_type={value['protocolType']} "
        f"generation={value['generation']} protocol={value['protocol']} leader={value['leader']} members=[{members}]"
    )


MEMBER = "group=gold-consumer member=NU93-UgiSfqh_0Yufe7BqA"
GOLDEN_ID, APPEND_TIME_ID = "Dpd66VKyRR2NJ5WN0xWUCA", "O_bihNDZT2KEimpiSLCWWA"


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (12, f"consumer group member {MEMBER}: instance_id=None rack_id=None client_id=consumer-gold-consumer-3 "
             "client_host=/127.0.0.1 topic_names=[golden, golden-append-time] topic_regex= "
             "rebalance_timeout_ms=300000 server_assignor=None classic=None"),
        (13, "consumer group group=gold-consumer: epoch=2 metadata_hash=-7791113761970870241"),
        (14, f"consumer group target assignment of member {MEMBER}: "
             f"partitions=[{GOLDEN_ID}: 0, {APPEND_TIME_ID}: 0]"),
        (15, "consumer group target assignment group=gold-consumer: epoch=2 timestamp=1794816832831"),
        (16, f"consumer group current assignment {MEMBER}: epoch=2 previous_epoch=0 state=STABLE "
             f"assigned=[{GOLDEN_ID}: 0@2, {APPEND_TIME_ID}: 0@2] revoking=[]"),
        (19, f"consumer group current assignment {MEMBER}: removed"),
    ],
)  # fmt: skip
def test_a_group_of_the_new_protocol_is_printed_in_words(offset: int, text: str) -> None:
    assert PRINTED[offset] == text


def dumped(folder: Path, *records: tuple[bytes, bytes | None]) -> list[str]:
    (folder / "__consumer_offsets-3").mkdir()
    path = folder / "__consumer_offsets-3" / FIRST
    path.write_bytes(build_batch([NewRecord(1, key, value) for key, value in records]))
    return list(by_offset(list(dump(path))).values())


@pytest.mark.parametrize(
    ("number", "value", "text"),
    [
        (REGEX, Regex(("a.1", "a.2"), 5, 6), "topics=[a.1, a.2] version=5 timestamp=6"),
        (SUBSCRIPTION, Subscription(classic=ClassicFacts(9000, (("range", b"\x00secret"),))),
         "classic=(session_timeout_ms=9000 protocols=[range])"),
        (STANDING, Standing(epoch=5, previous_epoch=4, state=MemberState.UNREVOKED_PARTITIONS,
                            assigned={UUID(int=7): {4: 5, 1: 2}}, revoking={UUID(int=7): {0: 2}}),
         "state=UNREVOKED_PARTITIONS assigned=[AAAAAAAAAAAAAAAAAAAABw: 1@2 4@5] "
         "revoking=[AAAAAAAAAAAAAAAAAAAABw: 0@2]"),
    ],
)  # fmt: skip
def test_what_the_golden_log_has_none_of(tmp_path: Path, number: int, value: Any, text: str) -> None:
    (line,) = dumped(tmp_path, encode(ConsumerRecord(Key(number, "g", "m"), value)))
    assert line.endswith(text)
    assert "secret" not in line


def test_a_value_of_a_version_that_is_not_known_is_told_by_its_size(tmp_path: Path) -> None:
    key, value = encode(ConsumerRecord(Key(REGEX, "g", "m"), Regex(("a",))))
    assert value is not None
    lines = dumped(tmp_path, (key, b"\x00\x09" + value[2:]), (key, value[:-3]), (key, b"\x00"))
    assert lines[0].endswith(f": version 9, {len(value)} bytes")
    assert lines[1].endswith(f": version 0, {len(value) - 3} bytes")
    assert lines[2].startswith("not a value of __consumer_offsets: ")
