"""Who gets which partitions: pure functions from subscriptions and the target before to the next target.

Both are blind to racks: a member's rack is kept and shown, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker_engine.groups.consumer.assignors.range import assign_ranges
from broker_engine.groups.consumer.assignors.spec import MemberSpec, TopicSpec
from broker_engine.groups.consumer.assignors.uniform import assign_uniformly
from broker_engine.groups.consumer.partitions import Partitions

Assignor = Callable[[Mapping[str, MemberSpec], Mapping[str, TopicSpec]], dict[str, Partitions]]

UNIFORM, RANGE = "uniform", "range"
ASSIGNORS: dict[str, Assignor] = {UNIFORM: assign_uniformly, RANGE: assign_ranges}

__all__ = ["ASSIGNORS", "RANGE", "UNIFORM", "Assignor", "MemberSpec", "TopicSpec"]
