"""Look-alike integers get their own types, so that mypy tells an offset from a file position."""

from __future__ import annotations

from typing import NewType
from uuid import UUID

Offset = NewType("Offset", int)
"""The number of a record in its partition; "end offsets" name the next record."""

FilePosition = NewType("FilePosition", int)
"""A byte position inside one segment file."""

LeaderEpoch = NewType("LeaderEpoch", int)
NodeId = NewType("NodeId", int)
PartitionIndex = NewType("PartitionIndex", int)
ProducerId = NewType("ProducerId", int)
TopicId = NewType("TopicId", UUID)

NO_TOPIC_ID = TopicId(UUID(int=0))
"""Kafka's null topic id: a request or answer that goes by name."""

NO_LEADER = NodeId(-1)
