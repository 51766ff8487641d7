"""The states of groups, by Kafka's names, and which may follow which in a classic one."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    ASSIGNING = "Assigning"
    """Of the consumer protocol: something changed, and there is no target for it yet."""
    RECONCILING = "Reconciling"
    """Of the consumer protocol: not everybody has reached the target."""


_E, _P, _C, _S, _D, *_ = GroupState

NEXT_STATES: dict[GroupState, frozenset[GroupState]] = {
    _E: frozenset({_P, _D}),  # the first member comes, or the last offset expires
    _P: frozenset({_C, _E, _D}),  # everybody who is coming has come, or nobody
    _C: frozenset({_S, _P, _D}),  # the leader has assigned, or somebody came, left or was silent
    _S: frozenset({_P, _D}),
    _D: frozenset(),
}
