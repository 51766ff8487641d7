"""One assigned partition: where the reader is, what is fetched ahead, what went wrong. Pure."""

from __future__ import annotations

from collections import deque

from broker_engine.client.errors import KafkaError
from broker_engine.client.fetching import FetchedBatches
from broker_engine.client.model import Record, Start, TopicPartition


class PartitionState:
    """Made anew by every assign and seek, so that an answer to an earlier fetch finds no one to take it."""

    def __init__(self, target: TopicPartition, start: Start) -> None:
        self.target = target
        self.start = start
        self.is_paused = False
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.retry_at_ms = 0
        self.failure_count = 0
        self.error: KafkaError | None = None
        self.position = start if isinstance(start, int) else None
        """The next record that the caller gets; None until the start is looked up."""
        self._fetch_offset = self.position
        self._chunks: deque[FetchedBatches] = deque()
        self._decoded: list[Record] = []
        self._decoded_index = 0

    @property
    def fetch_offset(self) -> int | None:
        """Where the next fetch goes on: behind what is fetched ahead."""
        return self._fetch_offset

    @property
    def buffered_bytes(self) -> int:
        return sum(chunk.size_bytes for chunk in self._chunks)

    def begin_at(self, offset: int) -> None:
        assert not self._chunks, "the start is looked up before anything is fetched"
        self.position = self._fetch_offset = offset

    def start_over(self, start: Start) -> None:
        """The offset is gone: look up where to go on."""
        self.start = start
        self.position = self._fetch_offset = None

    def add(self, chunk: FetchedBatches) -> None:
        self._fetch_offset = chunk.end_offset
        self._chunks.append(chunk)

    def take(self, count_max: int) -> list[Record]:
        """The next records, decoded as needed. A batch that cannot be read leaves its error in `error`."""
        taken: list[Record] = []
        while len(taken) < count_max and self.error is None and self._fill_decoded():
            stop = min(self._decoded_index + count_max - len(taken), len(self._decoded))
            taken += self._decoded[self._decoded_index : stop]
            self._decoded_index = stop
        if self._decoded_index < len(self._decoded):
            self.position = self._decoded[self._decoded_index].offset
        elif self._chunks:
            self.position = self._chunks[0].next_offset
        else:
            self.position = self._fetch_offset  # also behind markers and aborted records at the end
        return taken

    def _fill_decoded(self) -> bool:
        """Make sure that a decoded record waits; False when there is none to be had."""
        while self._decoded_index == len(self._decoded):
            if not self._chunks:
                return False
            self._decode_next()
            if self.error is not None:
                return False
        return True

    def _decode_next(self) -> None:
        chunk = self._chunks[0]
        try:
            records = chunk.next_records()
        except KafkaError as error:
            self._drop_from(chunk, error)
            return
        if records is None:
            self.position = chunk.next_offset
            self._chunks.popleft()
        else:
            self._decoded, self._decoded_index = records, 0

    def _drop_from(self, chunk: FetchedBatches, error: KafkaError) -> None:
        """Stay before the batch that cannot be read: the caller may seek over it."""
        self.error = error
        self.position = self._fetch_offset = chunk.next_offset
        self._chunks.clear()
        self._decoded, self._decoded_index = [], 0
