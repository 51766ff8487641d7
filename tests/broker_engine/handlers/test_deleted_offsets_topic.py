"""The topic of the groups is deleted by an operator: its groups are gone, and new ones can be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.names import CONSUMER_OFFSETS
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker_engine.wire.messages.join_group import JoinGroupRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create
from tests.broker_engine.handlers.test_groups import PROTOCOLS, commit, committed, listed, ready
from tests.broker_engine.raw_client import RawClient


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker", settings={"group.initial.rebalance.delay.ms": "60000"}) as process:
        yield process


def test_groups_go_with_their_topic_and_come_again_with_the_next_one(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client, RawClient(broker.address()) as member:
        group, topic = ready(client, "readers"), create(client)
        assert commit(client, group, topic, 5) == 0
        join = JoinGroupRequest(
            group_id="others",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=PROTOCOLS,
        )
        member.send_request(join, 3)
        wait_for("a member that waits for others", lambda: "others" in listed(client))
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=CONSUMER_OFFSETS)], timeout_ms=10_000)
        assert client.call(request, 6).responses[0].error_code == 0
        assert member.receive(join, 3).error_code == ErrorCode.NOT_COORDINATOR, "nobody waits for a group that is gone"
        ready(client, group)
        wait_for("the new topic", lambda: commit(client, group, topic, 6) == 0)
        assert committed(client, group, topic) == 6
        assert listed(client) == [group]
