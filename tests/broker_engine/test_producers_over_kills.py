"""What a broker knows of producers after SIGKILL: resends, open and aborted transactions, and ids given out before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce
from tests.broker_engine.handlers.test_groups import committed, ready
from tests.broker_engine.handlers.txn_producer import READ_COMMITTED, TxnProducer, stable_offset, wait_until_stable
from tests.broker_engine.raw_client import RawClient


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker") as process:
        yield process


def restart(broker: BrokerProcess) -> RawClient:
    broker.kill()
    broker.start()
    return RawClient(broker.address())


def new_ids(client: RawClient, count: int) -> list[int]:
    request = InitProducerIdRequest(transactional_id=None)
    return [client.call(request, 4).producer_id for _ in range(count)]


def test_no_producer_id_is_given_out_twice_though_the_broker_was_killed(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client:
        seen = new_ids(client, 5)
    for _ in range(2):
        with restart(broker) as client:
            seen += new_ids(client, 5)
    assert len(set(seen)) == 15
    assert seen == sorted(seen)


def test_the_last_five_batches_are_answered_again_after_a_kill(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client:
        topic = create(client)
        batches = [batch_of(b"%d" % n, producer_id=7, producer_epoch=0, base_sequence=n) for n in range(7)]
        assert [produce(client, topic, batch).base_offset for batch in batches] == list(range(7))
    with restart(broker) as client:
        answers = [produce(client, topic, batch) for batch in batches]
        assert [(each.error_code, each.base_offset) for each in answers[2:]] == [(0, n) for n in range(2, 7)]
        assert [each.error_code for each in answers[:2]] == [45, 45]
        more = batch_of(b"7", producer_id=7, producer_epoch=0, base_sequence=7)
        assert produce(client, topic, more).base_offset == 7


def test_transactions_and_their_offsets_outlive_a_kill(broker: BrokerProcess) -> None:
    """One is aborted, one open with an offset of a group: after the kill it commits."""
    with RawClient(broker.address()) as client:
        topic, group = create(client), ready(client, "workers")
        first, second = TxnProducer(client, "first").init(), TxnProducer(client, "second").init()
        first.add(topic)
        first.send(topic, b"aborted")
        first.end(is_commit=False)
        wait_until_stable(client, topic)
        second.add(topic)
        assert second.send(topic, b"kept").error_code == 0
        assert second.add_group(group) == 0
        assert second.commit_offset(group, topic, 9) == 0
    with restart(broker) as client:
        ready(client, group)
        assert stable_offset(client, topic) == 2
        assert committed(client, group, topic) == -1
        second.client = client
        wait_for("its coordinator", lambda: second.end().error_code not in (14, 15, 16))
        wait_until_stable(client, topic)
        wait_for("the offset", lambda: committed(client, group, topic) == 9)
        answer = fetch(client, topic, isolation_level=READ_COMMITTED)
        assert [(each.producer_id, each.first_offset) for each in answer.aborted_transactions] == [(first.id, 0)]
