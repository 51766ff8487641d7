"""Members of a group, waited for together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from broker_engine.client import Membership, TopicPartition


async def until_shared(members: Sequence[Membership], count: int) -> list[tuple[TopicPartition, ...]]:
    """Until together they have that many partitions in one generation."""
    while True:
        assignments = [await member.wait_assigned() for member in members]
        generations = {member.identity.generation for member in members}
        if len(generations) == 1 and sum(map(len, assignments)) == count:
            return assignments
        await asyncio.sleep(0.01)
