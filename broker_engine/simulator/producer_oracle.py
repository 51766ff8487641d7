"""What producers left in one log, read at the end of a run: rules 34 and 36 of reliability.md section 2.

34: within one epoch of a producer the sequence numbers have neither gap nor overlap, and epochs never fall. 36: markers
of one producer come from coordinators whose epochs never fall. What a reader makes of them is the history checker's.
"""

from __future__ import annotations

from collections.abc import Callable

from broker_engine.records.control import read_marker
from broker_engine.records.header import BatchHeader
from broker_engine.server.local_partition import LocalPartition
from broker_engine.simulator.workload import read_bytes

_SEQUENCE_MASK = 0x7FFFFFFF
_NOBODY = -1

Violate = Callable[[str, str], None]


class ProducerCheck:
    """Of a log that nothing was cleaned out of."""

    def __init__(self, name: str, local: LocalPartition, violate: Violate) -> None:
        self._name = name
        self._local = local
        self._violate = violate
        self._last: dict[int, tuple[int, int]] = {}
        """Epoch and last sequence by producer id; sequence -1: only a marker was seen in this epoch."""
        self._coordinator_epochs: dict[int, int] = {}

    def run(self) -> None:
        for header, _ in list(self._local.log.iter_batches(self._local.log.log_start_offset)):
            if header.producer_id == _NOBODY:
                continue
            if header.is_control:
                self._on_marker(header)
            else:
                self._on_batch(header)

    def _on_batch(self, header: BatchHeader) -> None:
        epoch, last = self._last.get(header.producer_id, (-1, -1))
        is_next = header.base_sequence == (last + 1) & _SEQUENCE_MASK
        if header.producer_epoch < epoch:
            self._say(header, f"epoch {header.producer_epoch} after {epoch}")
        elif header.producer_epoch == epoch and last >= 0 and not is_next:
            self._say(header, f"sequence {header.base_sequence} after {last} in epoch {epoch}")
        ends = (header.base_sequence + header.last_offset_delta) & _SEQUENCE_MASK
        self._last[header.producer_id] = (header.producer_epoch, ends)

    def _on_marker(self, header: BatchHeader) -> None:
        epoch, last = self._last.get(header.producer_id, (-1, -1))
        if header.producer_epoch < epoch:
            self._say(header, f"a marker of epoch {header.producer_epoch} after {epoch}")
        self._last[header.producer_id] = (header.producer_epoch, last if header.producer_epoch == epoch else -1)
        marker = read_marker(read_bytes(self._local.log, header.base_offset, header.size_bytes))
        if marker is None:
            return
        known = self._coordinator_epochs.get(header.producer_id, -1)
        if marker.coordinator_epoch < known:
            text = f"{self._name} at {header.base_offset}: coordinator epoch {marker.coordinator_epoch} after {known}"
            self._violate("36 markers of a coordinator that was", text)
        self._coordinator_epochs[header.producer_id] = max(known, marker.coordinator_epoch)

    def _say(self, header: BatchHeader, what: str) -> None:
        text = f"{self._name} at {header.base_offset}, producer {header.producer_id}: {what}"
        self._violate("34 each sequence once, epochs never fall", text)
