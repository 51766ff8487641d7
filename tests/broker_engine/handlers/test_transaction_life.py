"""What becomes of transactions by themselves: time-outs, expiry, restarts. On brokers that look often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_engine.groups.placement import group_partition
from broker_engine.records.batch import iter_batches, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.transactions.records import transaction_record
from broker_engine.transactions.transaction import EPOCH_MAX, Transaction
from broker_engine.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create, fetch
from tests.broker_engine.handlers.transaction_calls import (
    add,
    added,
    describe,
    end,
    init,
    started,
    wait_for_state,
    write,
)
from tests.broker_engine.raw_client import RawClient

READ_COMMITTED = 1
OFTEN = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "50",
    "transaction.state.log.num.partitions": "2",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker", settings=OFTEN) as process:
        yield process
        assert "Traceback" not in process.log, process.log


def test_a_transaction_that_takes_too_long_is_aborted(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client:
        topic = create(client)
        producer = started(client, "slow", timeout_ms=300)
        added(client, producer, (topic, 0))
        assert write(client, producer, topic, b"late").error_code == 0
        found = wait_for_state(client, "slow", "CompleteAbort")
        assert found.producer_epoch == producer.epoch + 1
        partition = fetch(client, topic, isolation_level=READ_COMMITTED)
        assert partition.last_stable_offset == partition.high_watermark
        assert [each.producer_id for each in partition.aborted_transactions] == [producer.id]
        assert add(client, producer, (topic, 0)) == [90]
        assert add(client, producer, (topic, 0), version=1) == [47]
        assert end(client, producer, is_commit=True).error_code == 90
        assert write(client, producer, topic, b"later", sequence=1).error_code == 47
        assert end(client, producer, is_commit=True, version=5).error_code == 48
        assert end(client, producer, is_commit=False, version=5).error_code == 0
        resumed = init(client, "slow", producer_id=producer.id, producer_epoch=producer.epoch)
        assert (resumed.error_code, resumed.producer_epoch) == (0, producer.epoch + 1)


def test_an_id_that_nobody_uses_is_forgotten(tmp_path: Path) -> None:
    settings = {**OFTEN, "transactional.id.expiration.ms": "300"}
    with BrokerProcess(tmp_path / "broker", settings=settings) as broker, RawClient(broker.address()) as client:
        topic = create(client)
        used = started(client, "used", timeout_ms=60_000)
        added(client, used, (topic, 0))
        idle = started(client, "idle")
        wait_for("the idle id to expire", lambda: describe(client, "idle").error_code == 105)
        assert describe(client, "used").transaction_state == "Ongoing"
        assert end(client, idle, is_commit=True).error_code == 49
        again = started(client, "idle")
        assert again.epoch == 0
        assert again.id != idle.id


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_knows_every_id_and_what_was_open(broker: BrokerProcess, is_clean: bool) -> None:
    with RawClient(broker.address()) as client:
        topic = create(client)
        idle, open_one = started(client, "idle"), started(client, "open")
        added(client, open_one, (topic, 0))
        assert write(client, open_one, topic, b"kept").error_code == 0
    broker.stop() if is_clean else broker.kill()
    broker.start()
    with RawClient(broker.address()) as client:
        assert started(client, "idle") == idle._replace(epoch=idle.epoch + 1)
        assert describe(client, "open").transaction_state == "Ongoing"
        assert write(client, open_one, topic, b"too", sequence=1).error_code == 0
        assert end(client, open_one, is_commit=True).error_code == 0
        wait_for_state(client, "open", "CompleteCommit")


def test_epochs_end_and_a_new_producer_id_follows(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client:
        first = started(client, "worn")
    broker.kill()
    write_state(broker, "worn", first.id, EPOCH_MAX - 1)
    broker.start()
    with RawClient(broker.address()) as client:
        last = started(client, "worn")
        assert (last.id, last.epoch) == (first.id, EPOCH_MAX)
        following = started(client, "worn")
        assert following.epoch == 0
        assert following.id != first.id
        assert end(client, last, is_commit=True).error_code == 49
        assert init(client, "worn", producer_id=last.id, producer_epoch=last.epoch).error_code == 90


def write_state(broker: BrokerProcess, name: str, producer_id: int, epoch: int) -> None:
    """As if the id had been used for long: one more record behind the log of a broker that is down."""
    used = Transaction(
        transactional_id=name,
        producer_id=producer_id,
        producer_epoch=epoch,
        previous_producer_id=producer_id,
        timeout_ms=60_000,
        updated_ms=1 << 41,
    )
    path = broker.data_dir / f"__transaction_state-{group_partition(name, 2)}" / f"{0:020}.log"
    header = [parse_header(batch) for batch in iter_batches(path.read_bytes())][-1]
    record = NewRecord(header.max_timestamp, *transaction_record(used))
    epoch_of_leader = header.partition_leader_epoch
    with path.open("ab") as file:
        file.write(build_batch([record], base_offset=header.next_offset, leader_epoch=epoch_of_leader))


def test_an_id_that_is_too_long_is_refused_and_a_long_one_is_not(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client:
        started(client, "x" * 1_024)
        assert [init(client, "x" * 1_025).error_code for _ in range(2)] == [42, 42]
        assert init(client, "x" * 32_767).error_code == 42


def test_the_coordinators_topics_do_not_grow_under_what_is_stored_in_them(broker: BrokerProcess) -> None:
    with RawClient(broker.address()) as client:
        topic = create(client)
        producer = started(client, "open", timeout_ms=2_000)
        added(client, producer, (topic, 0))
        wanted = [
            CreatePartitionsTopic(name=name, count=60, assignments=None)
            for name in ("__transaction_state", topic, "__consumer_offsets")
        ]
        answers = client.call(CreatePartitionsRequest(topics=wanted), 3).results
        assert {each.name: each.error_code for each in answers} == {
            "__transaction_state": 37,
            "__consumer_offsets": 37,
            topic: 0,
        }
        wait_for_state(client, "open", "CompleteAbort")
