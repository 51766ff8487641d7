"""DescribeLogDirs (key 35), versions 1-4: sizes of the partitions on disk. Left out: v5 (cordoned directories)."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class DescribableLogDirTopic(Struct):
    topic: String = ""
    partitions: Array[Int32] = ()


class DescribeLogDirsRequest(Message, versions="1-4", flexible="2+"):
    topics: Array[DescribableLogDirTopic] | None = ()


class DescribeLogDirsPartition(Struct):
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: Bool = False


class DescribeLogDirsTopic(Struct):
    name: String = ""
    partitions: Array[DescribeLogDirsPartition] = ()


class DescribeLogDirsResult(Struct):
    error_code: Int16 = 0
    log_dir: String = ""
    topics: Array[DescribeLogDirsTopic] = ()
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)


class DescribeLogDirsResponse(Message, versions="1-4", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("3+", default=0, ignorable=True)
    results: Array[DescribeLogDirsResult] = ()


API = declare(35, "DescribeLogDirs", DescribeLogDirsRequest, DescribeLogDirsResponse)
