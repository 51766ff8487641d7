"""What a seed adds to some topics: they are compacted all the time, and every record has a key of its own.

So nothing may vanish, and whatever a reader misses is lost; but segments are rewritten and put in the place of others
in the midst of faults. Topics that somebody may write duplicates to are left out: of those one would vanish. Retention
is left out for user topics: no reader could tell what was dropped in time from what was lost. Drawn apart from
everything else, so that what a seed draws otherwise stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from broker_engine.simulator.plans import ProducerPlan, TopicPlan

_COMPACTED_RATIO = 0.2
SETTINGS = {"log.cleaner.backoff.ms": "400"}
"""For brokers that have such topics."""
_CONFIGS = {"cleanup.policy": "compact", "segment.ms": "700", "min.cleanable.dirty.ratio": "0.01"}


def draw_compacted(
    seed: int, topics: Sequence[TopicPlan], producers: Sequence[ProducerPlan]
) -> tuple[tuple[TopicPlan, ...], tuple[ProducerPlan, ...]]:
    random = Random(f"{seed}/compact")  # noqa: S311 - a plan, nothing secret
    drawn = {topic.name: random.random() < _COMPACTED_RATIO for topic in topics}
    repeating = {plan.topic.name for plan in producers if not plan.is_idempotent}
    made = {topic.name: _compacted(topic) for topic in topics if drawn[topic.name] and topic.name not in repeating}
    return (
        tuple(made.get(topic.name, topic) for topic in topics),
        tuple(replace(plan, topic=made.get(plan.topic.name, plan.topic)) for plan in producers),
    )


def _compacted(topic: TopicPlan) -> TopicPlan:
    return replace(topic, configs={**topic.configs, **_CONFIGS})
