"""A partition's leader, pure: decides about each batch, how far the log is committed, and who is in sync.

The shell calls decide_produce, log.append and on_appended without awaiting in between; flushes report by on_flushed,
followers' fetches by on_follower_fetch, the controller by on_isr_answer and on_metadata. Times are of the monotonic
clock. Numbers in comments are the rules of reliability.md section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.partition.effects import (
    APPEND,
    NEED_FLUSH,
    NO_BROKER_EPOCH,
    AdvanceHighWatermark,
    Append,
    Duplicate,
    Effect,
    FailAcks,
    IsrProposal,
    NeedFlush,
    NoteAborted,
    ProduceDecision,
    ProposeIsr,
)
from broker_engine.partition.followers import Follower
from broker_engine.partition.producers import PRODUCERS_MAX_DEFAULT, ProducerStates
from broker_engine.partition.refusals import REMEMBERED_MS, Refusals
from broker_engine.partition.replica import AckDurability, PartitionSettings, ReplicaCore
from broker_engine.partition.verification import Guard
from broker_engine.records.control import TxnMarker
from broker_engine.records.header import NO_TIMESTAMP, BatchHeader

__all__ = [
    "AckDurability",
    "AdvanceHighWatermark",
    "Append",
    "Duplicate",
    "Effect",
    "FailAcks",
    "IsrProposal",
    "NeedFlush",
    "NoteAborted",
    "PartitionCore",
    "PartitionSettings",
    "PartitionState",
    "ProduceDecision",
    "ProposeIsr",
]

ACKS_ALL = -1
_REFUSED_MS_MIN, _REFUSED_MS_MAX = 10, 2_000
IsEligible = Callable[[int, int], bool]
"""(broker id, broker epoch): is this life of the broker registered, unfenced and not shutting down?"""

_REFUSED_FOR_GOOD = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The proposal was not and will not be carried out: the next one may differ."""
_NEWS_UNDER_WAY = frozenset(
    {
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""The controller knows more than we do: metadata will tell."""


class Appended(Protocol):
    """What the core needs to know of log.AppendResult."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def log_append_time_ms(self) -> int: ...


class PartitionState(Protocol):
    """What the core needs to know of metadata.PartitionImage."""

    @property
    def replicas(self) -> tuple[int, ...]: ...

    @property
    def isr(self) -> tuple[int, ...]: ...

    @property
    def partition_epoch(self) -> int: ...


class PartitionCore(ReplicaCore):
    def __init__(
        self,
        *,
        leader_epoch: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        log_start_offset: int,
        log_end_offset: int,
        durable_end_offset: int,
        node_id: int | None = None,
        high_watermark: int | None = None,
        partition_epoch: int = 0,
        settings: PartitionSettings | None = None,
        producers: ProducerStates | None = None,
        producers_max: int = PRODUCERS_MAX_DEFAULT,
        refusals: Refusals | None = None,
        is_eligible: IsEligible = lambda broker_id, broker_epoch: True,
        now_ms: int = 0,
    ) -> None:
        """`node_id`: the leader itself; without one the first replica."""
        super().__init__(
            leader_epoch=leader_epoch,
            replicas=replicas,
            isr=isr,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            durable_end_offset=durable_end_offset,
            high_watermark=high_watermark,
            partition_epoch=partition_epoch,
            settings=settings,
            producers=producers,
            producers_max=producers_max,
            refusals=refusals,
        )
        self.epoch_start_offset = log_end_offset
        self.proposal: IsrProposal | None = None
        """In flight: the controller may or may not have carried it out."""
        self._node_id = replicas[0] if node_id is None else node_id
        self._is_eligible = is_eligible
        self._latest_ms = self._term_start_ms = now_ms
        self._refused_count = 0
        """Proposals in a row that the controller would not carry out: the next one waits longer each time."""
        self._propose_at_ms = now_ms
        self._followers: dict[int, Follower] = {}
        self._note_replicas(now_ms)
        self._advance()

    def _note_replicas(self, now_ms: int) -> None:
        known, self._followers = self._followers, {}
        for replica in self.replicas:
            if replica != self._node_id:
                caught_up_ms = now_ms if replica in self.isr else -self.settings.lag_time_ms_max - 1
                self._followers[replica] = known.get(replica) or Follower(caught_up_ms=caught_up_ms)

    # --- produce

    def decide_produce(
        self, header: BatchHeader, acks: int, now_ms: int, guard: Guard | None = None
    ) -> ProduceDecision:
        """What to do with a checked batch. BrokerError refuses it; only the refusal itself is remembered."""
        if acks == ACKS_ALL and not self._has_enough_replicas:
            self.refusals.note(header, ErrorCode.NOT_ENOUGH_REPLICAS, now_ms)
            raise self._too_few_replicas()
        self.producers.expire(now_ms)
        if self.producers.unread_end_offset:
            self._check_readable(header, now_ms)
        try:
            earlier = self.producers.check(header, guard)
        except BrokerError as error:
            if error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._check_refused_before(header, now_ms)
                self._check_new_term(header, now_ms)
            raise
        if earlier is None:
            if self.refusals and self.producers.find(header.producer_id) is None:
                self._check_refused_before(header, now_ms)  # of an unknown producer any sequence would be the first
            return APPEND
        return Duplicate(earlier.base_offset, earlier.last_offset, earlier.timestamp)

    def run_length(self, headers: Sequence[BatchHeader], acks: int, now_ms: int) -> int:
        """How many of these checked batches, from the first on, may be appended together. 0: ask `decide_produce`."""
        if self.refusals or self.producers.unread_end_offset or (acks == ACKS_ALL and not self._has_enough_replicas):
            return 0
        self.producers.expire(now_ms)
        return self.producers.in_order_count(headers)

    def _check_refused_before(self, header: BatchHeader, now_ms: int) -> None:
        code = self.refusals.explain(header, now_ms)
        if code is not None:
            raise BrokerError(code, "the batch before this one was refused")

    def _check_new_term(self, header: BatchHeader, now_ms: int) -> None:
        """The batch before may have been refused by the last leader, and be on its way here: see refusals.py."""
        is_new = now_ms - self._term_start_ms < REMEMBERED_MS
        if is_new and self.producers.is_ahead(header, self.epoch_start_offset):
            raise BrokerError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, "a batch before this one has not come to the new leader"
            )

    def _check_readable(self, header: BatchHeader, now_ms: int) -> None:
        """What is damaged here may be the producer's last batches, and this one a resend. Another replica may mend it:
        that is waited for, but not for ever.
        """
        if len(self.replicas) == 1 or now_ms - self._term_start_ms >= REMEMBERED_MS:
            self.producers.unread_end_offset = 0
        elif self.producers.is_unread(header):
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "what the producer sent before cannot be read yet")

    def check_coordinated(self, header: BatchHeader, guard: Guard | None) -> None:
        """May a coordinator append this batch in a producer's transaction? BrokerError where not."""
        if not self._has_enough_replicas:
            raise self._too_few_replicas()
        self.producers.check_coordinated(header, guard)

    def check_marker(self, producer_id: int, producer_epoch: int, marker: TxnMarker, transaction_version: int) -> None:
        """May a marker be appended? BrokerError where not."""
        if not self._has_enough_replicas:
            raise self._too_few_replicas()
        self.producers.check_marker(producer_id, producer_epoch, marker, transaction_version)

    def _too_few_replicas(self) -> BrokerError:
        text = f"{len(self.isr)} replicas in sync, {self._needed_replicas} are needed (min.insync.replicas)"
        return BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, text)

    def on_appended(
        self, result: Appended, header: BatchHeader, now_ms: int, marker: TxnMarker | None = None
    ) -> list[Effect]:
        assert result.base_offset == self.log_end_offset, "appended where the log ended"
        self.log_end_offset = result.last_offset + 1
        if result.log_append_time_ms != NO_TIMESTAMP:
            header = header._replace(max_timestamp=result.log_append_time_ms)
        ended = self.producers.record(header, result.base_offset, now_ms, marker)
        self.refusals.forget(header.producer_id)
        is_fsync = self.settings.ack_durability is AckDurability.FSYNC
        effects: list[Effect] = [NEED_FLUSH] if is_fsync else self._advance()
        return [NoteAborted(ended), *effects] if ended is not None and ended.is_aborted else effects

    def on_run_appended(
        self, headers: Sequence[BatchHeader], base_offset: int, end_offset: int, now_ms: int
    ) -> list[Effect]:
        """As many as `run_length` said are in the log now, one behind the other."""
        assert base_offset == self.log_end_offset, "appended where the log ended"
        self.log_end_offset = end_offset
        self.producers.record_run(headers, base_offset, now_ms)
        return [NEED_FLUSH] if self.is_fsync else self._advance()

    def on_flushed(self, durable_end_offset: int) -> list[Effect]:
        self._note_flushed(durable_end_offset)
        return self._advance()

    def configure(self, settings: PartitionSettings) -> list[Effect]:
        """New topic configuration, in force from now on."""
        self._take_over(settings)
        effects = [*self._advance(), *self._fail_acks_below_min()]
        return [*effects, NEED_FLUSH] if self.is_flush_due else effects

    def is_committed(self, last_offset: int) -> bool:
        """May acks=-1 be answered for a batch that ends here? (23)"""
        return last_offset < self.high_watermark

    @property
    def knows_latest_offset(self) -> bool:
        """Until everything of earlier terms is committed here too, the true high watermark may be above ours. (15)"""
        return self.high_watermark >= self.epoch_start_offset

    # --- followers

    def on_follower_fetch(
        self, replica: int, broker_epoch: int, fetch_offset: int, durable_offset: int, now_ms: int
    ) -> list[Effect]:
        """A fetch of this leader epoch, from inside our log, whose epochs agree with ours: it has what is below."""
        follower = self._followers.get(replica)
        if follower is None or broker_epoch < follower.broker_epoch:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{replica} is no replica here, or an earlier life")
        assert fetch_offset <= self.log_end_offset, "nobody is ahead of the leader"
        self._latest_ms = max(self._latest_ms, now_ms)
        follower.on_fetch(broker_epoch, fetch_offset, durable_offset)
        follower.note_time(self.log_end_offset, now_ms)
        effects = self._advance()
        if replica not in self.isr and self._may_join(replica, follower):
            effects.append(self._propose((*self.isr, replica)))
        return effects

    def on_tick(self, now_ms: int, *, stalled_ms: int = 0) -> list[Effect]:
        """From time to time: whoever has not kept up leaves the ISR, and who could not join with its fetch joins now.

        A follower of an idle partition fetches it once: another proposal may have been under way, or the image that
        says that it is unfenced. `stalled_ms`: so long this process stood still and read no fetches, which is nobody's
        lag but its own.
        """
        self._latest_ms = max(self._latest_ms, now_ms)
        for follower in self._followers.values():
            follower.forgive(stalled_ms, now_ms)
            if follower.end_offset >= self.log_end_offset:
                follower.caught_up_ms = now_ms  # its quiet fetches do not name the partition
        staying = tuple(member for member in self.isr if not self._is_out_of_sync(member, now_ms))
        if self.proposal is None and staying != self.isr:
            return [self._propose(staying)]
        return [*self._advance(), *self.admit()]

    def admit(self) -> list[Effect]:
        """Whoever may join the ISR now, without having to fetch once more: brokers or the ISR have changed."""
        joining = self._joining() if self.proposal is None else ()
        return [self._propose((*self.isr, *joining))] if joining else []

    def _joining(self) -> tuple[int, ...]:
        """Outside of the ISR with nothing left to fetch: those who lack something will fetch again."""
        outside = [(replica, each) for replica, each in self._followers.items() if replica not in self.isr]
        complete = [(replica, each) for replica, each in outside if self._counted_end(each) >= self.log_end_offset]
        return tuple(replica for replica, follower in complete if self._may_join(replica, follower))

    def replica_end_offsets(self) -> dict[int, int]:
        own = {self._node_id: self.log_end_offset}
        return own | {replica: follower.end_offset for replica, follower in self._followers.items()}

    def _is_out_of_sync(self, member: int, now_ms: int) -> bool:
        follower = self._followers.get(member)
        return follower is not None and follower.lags(self.log_end_offset, now_ms, self.settings.lag_time_ms_max)

    def _may_join(self, replica: int, follower: Follower) -> bool:
        """(16)"""
        return (
            self.proposal is None
            and self._latest_ms >= self._propose_at_ms
            and self._has_caught_up(follower)
            and self._is_eligible(replica, follower.broker_epoch)
        )

    def _has_caught_up(self, follower: Follower) -> bool:
        return self._counted_end(follower) >= max(self.high_watermark, self.epoch_start_offset)

    def _propose(self, isr: tuple[int, ...]) -> ProposeIsr:
        assert self._node_id in isr, "the leader is in sync with itself"
        return self._ask_for(isr)

    def _ask_for(self, isr: tuple[int, ...]) -> ProposeIsr:
        assert self.proposal is None, "one proposal at a time"
        epochs = tuple(self._broker_epoch_of(member) for member in isr)
        self.proposal = IsrProposal(self.leader_epoch, self.partition_epoch, isr, epochs)
        return ProposeIsr(self.proposal)

    def resign(self) -> list[Effect]:
        """Another one who is in sync should lead. Nothing where nobody is, or while another proposal is under way."""
        others = tuple(member for member in self.isr if member != self._node_id)
        return [self._ask_for(others)] if others and self.proposal is None else []

    def _broker_epoch_of(self, member: int) -> int:
        follower = self._followers.get(member)
        return NO_BROKER_EPOCH if follower is None else follower.broker_epoch

    # --- what the controller decides

    def on_isr_answer(
        self, proposal: IsrProposal, code: ErrorCode, isr: tuple[int, ...] = (), partition_epoch: int = -1
    ) -> list[Effect]:
        """The controller's word on a proposal. Where it has none yet (a broken connection) the shell asks again."""
        if proposal is not self.proposal:
            return []  # metadata was faster
        if code is ErrorCode.NONE or code in _REFUSED_FOR_GOOD:
            self.proposal = None
            return self._accept(isr, partition_epoch) if code is ErrorCode.NONE else self._on_refused()
        if code in _NEWS_UNDER_WAY:
            return []  # until then it counts as carried out, whether it was or not
        return [ProposeIsr(proposal)]

    def _on_refused(self) -> list[Effect]:
        """Once may be chance: it is proposed again at once. Then who may not join is left alone for a while."""
        if self._refused_count:
            self._propose_at_ms = self._latest_ms + min(_REFUSED_MS_MAX, _REFUSED_MS_MIN << min(self._refused_count, 9))
        self._refused_count += 1
        return self._advance()

    def on_metadata(self, state: PartitionState) -> list[Effect]:
        """The partition as a newer image shows it, in the same leader epoch."""
        if state.partition_epoch < self.partition_epoch:
            return []  # the controller's answer was faster
        if state.replicas != self.replicas:
            self.replicas = state.replicas
            self._note_replicas(self._latest_ms)
        return self._accept(state.isr, state.partition_epoch)

    def _accept(self, isr: tuple[int, ...], partition_epoch: int) -> list[Effect]:
        if partition_epoch > self.partition_epoch:
            self.partition_epoch = partition_epoch
            for member in isr:
                if member in self._followers and member not in self.isr:
                    # It has all that is committed, which may be far below the end: it has a lag time to get there.
                    follower = self._followers[member]
                    follower.caught_up_ms = max(follower.caught_up_ms, self._latest_ms)
            self.isr = isr
            self.proposal = None  # made on top of an older one: it was carried out, or is refused
            self._refused_count, self._propose_at_ms = 0, self._latest_ms
        return [*self._advance(), *self._fail_acks_below_min(), *self.admit()]

    def _fail_acks_below_min(self) -> list[Effect]:
        return [] if self._has_enough_replicas else [FailAcks(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)]

    # --- high watermark

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Everybody whom the controller may count as in sync. (12)"""
        if self.proposal is None:
            return self.isr
        return (*self.isr, *(member for member in self.proposal.isr if member not in self.isr))

    @property
    def _has_enough_replicas(self) -> bool:
        return len(self.isr) >= self._needed_replicas

    @property
    def _needed_replicas(self) -> int:
        """Never more than there are: so counts the controller, and so does Kafka (its effective min ISR)."""
        return min(self.settings.min_insync_replicas, len(self.replicas))

    def _advance(self) -> list[Effect]:
        """(14)"""
        if not self._has_enough_replicas:
            return []
        committed = self.durable_end_offset if self.is_fsync else self.log_end_offset
        if self._followers:
            committed = min(committed, self._followers_end())
        # After a change from page-cache to fsync the durable end may be behind what was shown already.
        if committed <= self.high_watermark:
            return []
        self._set_high_watermark(committed)
        return [AdvanceHighWatermark(committed)]

    def _followers_end(self) -> int:
        """What all have that must have it."""
        members = self.maximal_isr
        return min(
            (
                self._counted_end(follower)
                for replica, follower in self._followers.items()
                if replica in members or self._is_about_to_join(replica, follower)
            ),
            default=self.log_end_offset,
        )

    def _counted_end(self, follower: Follower) -> int:
        return follower.durable_end_offset if self.is_fsync else follower.end_offset

    def _is_about_to_join(self, replica: int, follower: Follower) -> bool:
        """Without waiting for it the high watermark would run ahead of its every fetch, and it would never join."""
        return (
            follower.has_fetched
            and self._latest_ms - follower.caught_up_ms <= self.settings.lag_time_ms_max
            and self._is_eligible(replica, follower.broker_epoch)
        )
