"""Two transformers with one transactional id: what they note is enough to find a commit that had to be refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from broker_engine.simulator.history import History, Kind, Poll, check
from broker_engine.simulator.history.rows import Partition, Row
from tests.chaos.client_log import ClientLog, last_identity
from tests.chaos.journal import Journal, read_journal
from tests.chaos.signals import Signals
from tests.chaos.transformer import HUNG_S, Fatal, Transformer, TransformerPlan
from tests.chaos.watchdog import Watchdog

ORDERS: Partition = ("orders", 0)
OUTPUT: Partition = ("output", 0)
LOG = b"""\
%7|1794898800.101|TXNSTATE|transformer-0.1-1#producer-1| [thrd:main]: Transaction state change Init -> WaitPID
%7|1794898800.105|GETPID|transformer-0.1-1#producer-1| [thrd:main]: Acquired PID{Id:7,Epoch:4}
%7|1794898800.909|GETPID|transformer-0.1-2#producer-2| [thrd:main]: Acquired PID{Id:7,Epoch:9}
%7|1794898801.105|GETPID|transformer-0.1-1#producer-1| [thrd:main]: Acquired PID{Id:7,Epoch:5} (previous PID{..})
"""


class Broker:
    """One that answers a producer as it is told: by default it fences nobody."""

    def __init__(self, log: Path, epoch: int, on_offsets: Callable[[], None] = lambda: None) -> None:
        self._log, self._epoch, self._on_offsets = log, epoch, on_offsets
        self.is_fencing = False

    def init_transactions(self, _: float) -> None:
        with self._log.open("a") as log:
            log.write(f"%7|1.0|GETPID|c#producer-1| [thrd:main]: Acquired PID{{Id:7,Epoch:{self._epoch}}}\n")

    def begin_transaction(self) -> None:
        pass

    def produce(self, *_: object, **__: object) -> None:
        pass

    def send_offsets_to_transaction(self, *_: object) -> None:
        self._on_offsets()

    def commit_transaction(self, _: float) -> None:
        if self.is_fencing:
            raise KafkaException(KafkaError(KafkaError._FENCED, "a newer producer has this id", fatal=True))


class OneRecord:
    """Of the transformer's source: the message, and the consumer that hands it over once."""

    def __init__(self) -> None:
        self._left = [self]

    def poll(self, _: float) -> OneRecord | None:
        return self._left.pop() if self._left else None

    def consumer_group_metadata(self) -> None:
        return None

    def topic(self) -> str:
        return ORDERS[0]

    def partition(self) -> int:
        return ORDERS[1]

    def offset(self) -> int:
        return 0

    def value(self) -> bytes:
        return b"order"

    def error(self) -> None:
        return None


def transformer(folder: Path, life: int) -> Transformer:
    log = folder / f"{life}.log"
    log.touch()
    plan = TransformerPlan("", "group", "id", (ORDERS[0],), lambda _, __, value: [(OUTPUT, value)], life)
    journal = Journal(folder / f"{life}.journal", f"transformer.{life}")
    return Transformer(plan, journal, ClientLog(log), Signals(), Watchdog(HUNG_S, lambda: None))


def two_lives(folder: Path, *, is_fencing: bool) -> Transformer:
    """The first has its offsets in a transaction when the second is given the next epoch; then it asks to commit."""
    first, second = transformer(folder, 1), transformer(folder, 2)
    broker = Broker(folder / "1.log", 0, lambda: second.begin(Broker(folder / "2.log", 1), "c"))  # type: ignore[arg-type]
    broker.is_fencing = is_fencing
    first.begin(broker, "c")  # type: ignore[arg-type]
    first.play_batch(broker, OneRecord())  # type: ignore[arg-type]
    return first


def kinds_in(folder: Path, *read: tuple[int, str]) -> list[Kind]:
    history = History()
    for life in (1, 2):
        history.extend(row for row in read_journal(folder / f"{life}.journal") if isinstance(row, Row))
    history.ok("final", "poll", [Poll(OUTPUT, read), Poll(ORDERS, ((0, "order"),))], time=float("inf"))
    return [anomaly.kind for anomaly in check(history).violations if anomaly.kind is not Kind.UNKNOWN_VALUE]


def test_the_log_tells_the_last_epoch_of_each_producer() -> None:
    assert last_identity(LOG, "transformer-0.1-1") == (7, 5)
    assert last_identity(LOG, "transformer-0.1-2") == (7, 9)
    assert last_identity(LOG, "transformer-0.2-1") is None


def test_a_line_that_is_half_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "client.log"
    path.write_bytes(b"of somebody before\n")
    log = ClientLog(path)
    with path.open("ab", buffering=0) as file:
        file.write(LOG[:200])
        assert log.new_lines() == LOG[: LOG[:200].rindex(b"\n") + 1]
        file.write(LOG[200:])
    assert last_identity(log.new_lines(), "transformer-0.1-1") == (7, 5)


def test_a_commit_after_another_one_was_given_the_next_epoch_is_found(tmp_path: Path) -> None:
    two_lives(tmp_path, is_fencing=False)
    assert kinds_in(tmp_path, (0, "order@transformer.1.1")) == [Kind.ZOMBIE_COMMIT]


def test_a_zombie_whose_commit_is_refused_is_as_it_should_be(tmp_path: Path) -> None:
    with pytest.raises(Fatal):
        two_lives(tmp_path, is_fencing=True)
    assert kinds_in(tmp_path) == []


def test_a_transformer_that_is_not_told_its_epoch_does_not_go_on(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nobody could tell zombies"):
        transformer(tmp_path, 1).begin(Broker(tmp_path / "elsewhere.log", 0), "c")  # type: ignore[arg-type]
