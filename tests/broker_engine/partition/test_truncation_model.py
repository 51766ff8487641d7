"""Leaders change, logs part and are cut together again: held against logs as plain lists of epochs.

One leader per epoch gives each offset one record, so that a record is known by (offset, epoch) and two logs agree as
far as their lists do. The rules are those of KIP-101, 279 and 320: the leader names its largest epoch not above the
follower's last and where it ends, the follower cuts, until nothing diverges.
"""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.log.checkpoints import EpochCache
from broker_engine.partition.follower_core import FollowerCore

REPLICAS = (0, 1, 2)

Log = list[int]
Term = tuple[int, int, tuple[int, int]]
"""Who leads, how many records it appends, how many of them each of the others gets."""

terms = st.tuples(st.sampled_from(REPLICAS), st.integers(0, 3), st.tuples(st.integers(0, 4), st.integers(0, 4)))


def epochs_of(log: Log) -> EpochCache:
    cache = EpochCache()
    for offset, epoch in enumerate(log):
        cache.assign(epoch, offset)
    return cache


def common_length(first: Log, second: Log) -> int:
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def leader_end(log: Log, leader_epoch: int, asked_epoch: int) -> tuple[int, int]:
    """As LocalPartition.end_offset_for_epoch: a term that appended nothing is not in the log yet."""
    cache = epochs_of(log)
    if cache.latest_epoch < asked_epoch <= leader_epoch:
        return (asked_epoch if asked_epoch == leader_epoch else cache.latest_epoch), len(log)
    return cache.end_offset_for(asked_epoch, len(log))


def follower_core(log: Log, leader_epoch: int) -> FollowerCore:
    return FollowerCore(
        leader_epoch=leader_epoch,
        replicas=REPLICAS,
        isr=REPLICAS,
        log_start_offset=0,
        log_end_offset=len(log),
        durable_end_offset=len(log),
    )


def converge(follower: Log, leader: Log, leader_epoch: int) -> int:
    """Cut the follower's log until it is a prefix of the leader's; answers how many rounds that took."""
    for round_count in range(len(REPLICAS) * 20):
        if not follower:
            return round_count
        epoch, end_offset = leader_end(leader, leader_epoch, follower[-1])
        if epoch < 0:
            follower.clear()  # the leader has nothing at all: the follower begins anew
            continue
        if epoch == follower[-1] and end_offset >= len(follower):
            return round_count
        _, own_end_offset = epochs_of(follower).end_offset_for(epoch, len(follower))
        cut = follower_core(follower, leader_epoch).truncation_offset(max(0, own_end_offset), end_offset)
        assert cut < len(follower), "each round cuts something"
        assert cut >= common_length(follower, leader), "and nothing that both have"
        del follower[cut:]
    raise AssertionError("it never ended")


@settings(max_examples=400, deadline=None)
@given(st.lists(terms, max_size=12))
def test_after_any_history_of_leaders_a_follower_is_cut_to_what_both_have(history: list[Term]) -> None:
    logs: dict[int, Log] = {replica: [] for replica in REPLICAS}
    for leader_epoch, (leader, appended_count, copied) in enumerate(history):
        logs[leader] += [leader_epoch] * appended_count
        others = [replica for replica in REPLICAS if replica != leader]
        for follower, copied_count in zip(others, copied, strict=True):
            if copied_count == 0:
                continue  # it heard nothing of this term
            shared = common_length(logs[follower], logs[leader])
            converge(logs[follower], logs[leader], leader_epoch)
            assert len(logs[follower]) == shared, "exactly what both have is left"
            end = len(logs[follower])
            logs[follower] += logs[leader][end : end + copied_count - 1]
