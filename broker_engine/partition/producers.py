"""What idempotent producers did last on one partition: each sequence is appended once, a resend answers its offset.

Rules by Kafka 4.3.1 (protocol text 2.6 and 2.7). Bounded: five batches per producer, idle producers are forgotten after
a day, and beyond a number of them the one idle longest goes. A forgotten producer may go on with any sequence, as in
Kafka. Transactions that are open, or whose marker is not committed yet, hold the last stable offset back.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import ItemsView, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.partition.producer_snapshot import ProducerEntry
from broker_engine.partition.verification import Guard, Verifications
from broker_engine.records.control import EndedTransaction, LastBatch, OpenTransactions, TxnMarker
from broker_engine.records.header import NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_END, TRANSACTIONAL_BIT, BatchHeader

REMEMBERED_BATCHES = 5
EXPIRATION_MS_DEFAULT = 24 * 3600 * 1000
PRODUCERS_MAX_DEFAULT = 20_000
NO_COORDINATOR_EPOCH = -1
NO_OFFSET = -1
EPOCH_RAISING_VERSION = 2
"""From this version of transactions on every marker raises the producer's epoch."""


class BatchMetadata(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_seen_ms", "last_timestamp")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[BatchMetadata] = deque(maxlen=REMEMBERED_BATCHES)
        self.last_seen_ms = 0
        self.last_timestamp = NO_TIMESTAMP
        self.coordinator_epoch = NO_COORDINATOR_EPOCH

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def next_sequence(self) -> int:
        return (self.last_sequence + 1) % SEQUENCE_END

    def last_offset_below(self, safe_offset: int) -> int:
        """NO_OFFSET where there are no batches; 0, which is below all, where none that is remembered is safe."""
        if not self.batches:
            return NO_OFFSET
        safe = (batch.last_offset for batch in reversed(self.batches) if batch.last_offset < safe_offset)
        return next(safe, 0)

    def find(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch that this one is a resend of."""
        if header.producer_epoch != self.epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None


class ProducerStates:
    def __init__(
        self,
        *,
        expiration_ms: int = EXPIRATION_MS_DEFAULT,
        producers_max: int = PRODUCERS_MAX_DEFAULT,
        high_watermark: int = 0,
    ) -> None:
        self.expiration_ms = expiration_ms
        self._producers_max = producers_max
        self._producers: OrderedDict[int, Producer] = OrderedDict()
        """Longest idle first."""
        self.transactions = OpenTransactions()
        self.verifications = Verifications()
        self.unread_end_offset = 0
        """Below it are batches that could not be read when this was restored, and nobody knows of whom; 0: there are
        none, or they are waited for no more."""
        self.is_partial = False
        """It was restored while some of the log could not be read as it was written, and has not been since."""
        self.replayed = range(0)
        """Offsets of which the batches on the disk told, and nobody has verified those."""
        self.doubtful_from: int | None = None
        """What could not be read, or not as it was written, began or ended transactions from here on: only all of the
        log can tell which are open."""
        self._high_watermark = high_watermark
        self._unsettled: deque[EndedTransaction] = deque()
        """Ended, but their markers are not committed yet: as many as markers wait for their acknowledgement."""

    def __len__(self) -> int:
        return len(self._producers)

    def find(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def items(self) -> ItemsView[int, Producer]:
        return self._producers.items()

    def check(self, header: BatchHeader, guard: Guard | None = None) -> BatchMetadata | None:
        """None if the batch may be appended; the earlier batch if this one is a resend of it; else BrokerError."""
        if not header.has_producer_id:
            if header.attributes & TRANSACTIONAL_BIT:
                raise BrokerError(ErrorCode.INVALID_RECORD, "a transactional batch without a producer id")
            return None
        producer = self._producers.get(header.producer_id)
        if header.attributes & TRANSACTIONAL_BIT or self.transactions:
            return self._check_with_transaction(header, producer, guard)
        return None if producer is None else _check_order(producer, header)

    def in_order_count(self, headers: Sequence[BatchHeader]) -> int:
        """How many of these batches, from the first on, simply come next: of one producer that is known here, in its
        sequence, or of none, and outside of any transaction. About the one behind them `check` has its say.
        """
        first = headers[0]
        producer = self._producers.get(first.producer_id)
        if self.transactions or (producer is None and first.has_producer_id):
            return 0
        producer_id = first.producer_id
        epoch = first.producer_epoch if producer is None else producer.epoch
        sequence = first.base_sequence if producer is None else producer.next_sequence
        for count, header in enumerate(headers):
            if (
                header.base_sequence != sequence
                or header.producer_id != producer_id
                or header.producer_epoch != epoch
                or header.attributes & TRANSACTIONAL_BIT
            ):
                return count
            if producer is not None:
                sequence = (sequence + header.record_count) % SEQUENCE_END
        return len(headers)

    def is_unread(self, header: BatchHeader) -> bool:
        """May what this producer did last be among the batches that could not be read?"""
        if not self.unread_end_offset or not header.has_producer_id:
            return False
        producer = self._producers.get(header.producer_id)
        return producer is None or not producer.batches or producer.batches[-1].last_offset < self.unread_end_offset

    def is_ahead(self, header: BatchHeader, offset: int) -> bool:
        """Does the batch leave a gap, and has its producer appended nothing from `offset` on?"""
        producer = self._producers.get(header.producer_id)
        if producer is None or not producer.batches or header.producer_epoch != producer.epoch:
            return False
        gap = (header.base_sequence - producer.next_sequence) % SEQUENCE_END
        return 0 < gap < SEQUENCE_END // 2 and producer.batches[-1].last_offset < offset

    def _check_with_transaction(
        self, header: BatchHeader, producer: Producer | None, guard: Guard | None
    ) -> BatchMetadata | None:
        earlier = None if producer is None else producer.find(header)
        if earlier is not None:
            return earlier
        if header.is_transactional and not self.is_open(header.producer_id, header.producer_epoch):
            self.verifications.check(header, guard)
            if producer is None and guard is not None and guard.is_adding and header.base_sequence != 0:
                raise _out_of_order(header, 0)
        if producer is not None:
            _check_order(producer, header)
        if not header.is_transactional and self.transactions.first_offset_of(header.producer_id) is not None:
            text = f"producer {header.producer_id} has an open transaction, and the batch is not part of it"
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, text)
        return None

    def check_coordinated(self, header: BatchHeader, guard: Guard | None) -> None:
        """As `check`, for what a coordinator writes in a producer's name: without sequences."""
        producer = self._producers.get(header.producer_id)
        if not self.is_open(header.producer_id, header.producer_epoch):
            self.verifications.check(header, guard)
        if producer is not None:
            _check_epoch(producer, header.producer_id, header.producer_epoch)

    def check_marker(self, producer_id: int, producer_epoch: int, marker: TxnMarker, transaction_version: int) -> None:
        """BrokerError 47 or 52 where an earlier coordinator, or an earlier transaction, speaks."""
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        _check_epoch(producer, producer_id, producer_epoch)
        is_open = self.transactions.first_offset_of(producer_id) is not None
        if transaction_version >= EPOCH_RAISING_VERSION and producer_epoch == producer.epoch and is_open:
            text = f"the marker's epoch {producer_epoch} is that of the open transaction, not above it"
            raise BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH, text)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            text = f"coordinator epoch {marker.coordinator_epoch}, known is {producer.coordinator_epoch}"
            raise BrokerError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, text)

    def is_open(self, producer_id: int, producer_epoch: int) -> bool:
        """Has this life of the producer a transaction here that began?"""
        producer = self._producers.get(producer_id)
        return (
            producer is not None
            and producer.epoch == producer_epoch
            and self.transactions.first_offset_of(producer_id) is not None
        )

    def begin_verification(self, header: BatchHeader, *, is_adding: bool) -> Guard | None:
        """None where the batch needs no word of the coordinator's: its transaction is open, or it is a resend."""
        producer = self._producers.get(header.producer_id)
        is_resend = producer is not None and producer.find(header) is not None
        if is_resend or self.is_open(header.producer_id, header.producer_epoch):
            return None
        return self.verifications.begin(header, is_adding=is_adding)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction began that is open or may be, or whose marker is not committed."""
        first_offset = self.transactions.first_offset
        if not self._unsettled and self.doubtful_from is None:
            return first_offset
        unsettled = (ended.first_offset for ended in self._unsettled)
        return min(offset for offset in (*unsettled, first_offset, self.doubtful_from) if offset is not None)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Markers below it are committed."""
        self._high_watermark = high_watermark
        while self._unsettled and self._unsettled[0].last_offset < high_watermark:
            self._unsettled.popleft()

    def record(
        self, header: BatchHeader, base_offset: int, now_ms: int, marker: TxnMarker | None = None
    ) -> EndedTransaction | None:
        """Take note of a batch that is in the log now, from a produce or from a recovery.

        A control batch comes with its marker; the answer is the transaction that it ended, if one was open.
        """
        if not header.has_producer_id:
            return None
        producer = self._producer_of(header)
        self._producers.move_to_end(header.producer_id)
        producer.last_seen_ms = now_ms
        producer.last_timestamp = header.max_timestamp
        if header.base_sequence != NO_SEQUENCE:  # control batches have none
            last_offset = base_offset + header.last_offset_delta
            producer.batches.append(
                BatchMetadata(
                    header.base_sequence, header.last_sequence, base_offset, last_offset, header.max_timestamp
                )
            )
        if len(self._producers) > self._producers_max:
            self._drop_longest_idle()
        if marker is not None:
            producer.coordinator_epoch = marker.coordinator_epoch
        return self._record_transaction(header, base_offset, marker) if header.is_transactional else None

    def record_mended(self, header: BatchHeader, now_ms: int) -> None:
        """Take note of a batch that can be read again: it lies before, between or behind those that are known.

        Of its transaction only that there is one: whether it has ended since, the batches behind it tell.
        """
        if header.is_transactional:
            self._doubt_from(header.base_offset)
        known = self._producers.get(header.producer_id)
        if header.base_sequence == NO_SEQUENCE or (known is not None and known.epoch > header.producer_epoch):
            return
        producer = self._producer_of(header)
        self._producers.move_to_end(header.producer_id)
        producer.last_seen_ms = now_ms
        producer.last_timestamp = max(producer.last_timestamp, header.max_timestamp)
        sequences, offsets = (header.base_sequence, header.last_sequence), (header.base_offset, header.last_offset)
        batches = {*producer.batches, BatchMetadata(*sequences, *offsets, header.max_timestamp)}
        producer.batches = deque(sorted(batches, key=attrgetter("base_offset")), REMEMBERED_BATCHES)
        if len(self._producers) > self._producers_max:
            self._drop_longest_idle()

    def note_misread(self, offset: int) -> None:
        """What is known of the batch there is wrong, or nothing: only all of the log can tell what it did."""
        self.is_partial = True
        self._doubt_from(offset)

    def _doubt_from(self, offset: int) -> None:
        self.doubtful_from = offset if self.doubtful_from is None else min(self.doubtful_from, offset)

    def record_run(self, headers: Sequence[BatchHeader], base_offset: int, now_ms: int) -> None:
        """Take note of batches that `in_order_count` counted, and that are in the log now, one behind the other."""
        last = headers[-1]
        if not last.has_producer_id:
            return
        producer = self._producers[last.producer_id]
        self._producers.move_to_end(last.producer_id)
        producer.last_seen_ms = now_ms
        producer.last_timestamp = last.max_timestamp
        for header in headers:
            first, delta = header.base_sequence, header.last_offset_delta
            offsets = (base_offset, base_offset + delta)
            producer.batches.append(
                BatchMetadata(first, (first + delta) % SEQUENCE_END, *offsets, header.max_timestamp)
            )
            base_offset += delta + 1

    def _record_transaction(
        self, header: BatchHeader, base_offset: int, marker: TxnMarker | None
    ) -> EndedTransaction | None:
        self.verifications.forget(header.producer_id)
        ended = self.transactions.observe(header, base_offset, marker)
        if ended is not None and ended.last_offset >= self._high_watermark:
            self._unsettled.append(ended)
        return ended

    def _producer_of(self, header: BatchHeader) -> Producer:
        known = self._producers.get(header.producer_id)
        if known is not None and known.epoch == header.producer_epoch:
            return known
        producer = self._producers[header.producer_id] = Producer(header.producer_epoch)
        if known is not None:
            producer.coordinator_epoch = known.coordinator_epoch
        return producer

    def entries(self) -> Iterator[ProducerEntry]:
        """Everything known, for a snapshot. Each producer's newest batch comes last."""
        for producer_id, producer in self._producers.items():
            first_offset = self.transactions.first_offset_of(producer_id)
            yield from _entries_of(producer_id, producer, NO_OFFSET if first_offset is None else first_offset)

    def last_batches(self, safe_offset: int) -> dict[int, LastBatch]:
        """What compaction must leave of every producer. From `safe_offset` on, a crash or another leader may take away
        what is there: what was last before it will be last again then.
        """
        return {
            producer_id: LastBatch(producer.epoch, producer.last_offset_below(safe_offset))
            for producer_id, producer in self._producers.items()
        }

    def restore(self, entries: Iterable[ProducerEntry], now_ms: int) -> None:
        """Know what the entries say and nothing else. All count as seen now: batch times are the clients' word."""
        self._producers.clear()
        self._unsettled.clear()
        opened = {}
        for entry in entries:
            producer = self._producers.get(entry.producer_id)
            if producer is None or producer.epoch != entry.producer_epoch:
                producer = self._producers[entry.producer_id] = Producer(entry.producer_epoch)
            producer.last_seen_ms = now_ms
            producer.last_timestamp = entry.timestamp
            producer.coordinator_epoch = entry.coordinator_epoch
            opened[entry.producer_id] = entry.txn_first_offset
            _restore_batch(producer, entry)
        self.transactions = OpenTransactions((offset, number) for number, offset in opened.items() if offset >= 0)
        for _ in range(len(self._producers) - self._producers_max):
            self._drop_longest_idle()

    def _drop_longest_idle(self) -> None:
        """But none with an open transaction: nobody could end it, and the bound is exceeded rather."""
        idle = (number for number in self._producers if self.transactions.first_offset_of(number) is None)
        producer_id = next(idle, None)
        if producer_id is not None:
            del self._producers[producer_id]

    def expire(self, now_ms: int) -> int:
        """Forget producers that were idle for too long. Answers how many."""
        count = 0
        while self._producers:
            producer_id, longest_idle = next(iter(self._producers.items()))
            if now_ms - longest_idle.last_seen_ms <= self.expiration_ms:
                break
            if self.transactions.first_offset_of(producer_id) is not None:
                longest_idle.last_seen_ms = now_ms  # its open transaction keeps it
                self._producers.move_to_end(producer_id)
            else:
                del self._producers[producer_id]
                count += 1
        return count


def _entries_of(producer_id: int, producer: Producer, txn_first_offset: int) -> Iterator[ProducerEntry]:
    def entry(last_sequence: int, last_offset: int, delta: int, timestamp: int) -> ProducerEntry:
        transaction = (producer.coordinator_epoch, txn_first_offset)
        return ProducerEntry(producer_id, producer.epoch, last_sequence, last_offset, delta, timestamp, *transaction)

    for batch in producer.batches:
        delta = batch.last_offset - batch.base_offset
        yield entry(batch.last_sequence, batch.last_offset, delta, batch.timestamp)
    if not producer.batches:
        yield entry(NO_SEQUENCE, NO_OFFSET, 0, producer.last_timestamp)
    elif producer.batches[-1].timestamp != producer.last_timestamp:
        # A marker came later: the last batch once more, with the time that Kafka keeps.
        last = producer.batches[-1]
        yield entry(last.last_sequence, last.last_offset, last.last_offset - last.base_offset, producer.last_timestamp)


def _restore_batch(producer: Producer, entry: ProducerEntry) -> None:
    is_known = bool(producer.batches) and producer.batches[-1].last_offset == entry.last_offset
    if entry.last_sequence == NO_SEQUENCE or is_known:
        return
    first_sequence = (entry.last_sequence - entry.offset_delta) % SEQUENCE_END
    base_offset = entry.last_offset - entry.offset_delta
    producer.batches.append(
        BatchMetadata(first_sequence, entry.last_sequence, base_offset, entry.last_offset, entry.timestamp)
    )


def _check_order(producer: Producer, header: BatchHeader) -> BatchMetadata | None:
    if header.producer_epoch == producer.epoch:
        if header.base_sequence == producer.next_sequence:
            return None
        earlier = producer.find(header)
        if earlier is None:
            raise _out_of_order(header, producer.next_sequence)
        return earlier
    _check_epoch(producer, header.producer_id, header.producer_epoch)
    if header.base_sequence != 0:
        raise _out_of_order(header, 0)
    return None


def _check_epoch(producer: Producer, producer_id: int, producer_epoch: int) -> None:
    if producer_epoch < producer.epoch:
        text = f"producer {producer_id} has epoch {producer_epoch}, known is {producer.epoch}"
        raise BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH, text)


def _out_of_order(header: BatchHeader, expected: int) -> BrokerError:
    text = f"producer {header.producer_id} sent sequence {header.base_sequence}, expected {expected}"
    return BrokerError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
