"""DescribeLogDirs (key 35): log directories, their partitions and sizes.

From v4 on, responses have total and usable bytes.
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    since,
)


class DescribeLogDirsRequestTopic(Struct):
    topic: String
    partitions: list[Int32]


class DescribeLogDirsRequest(Message, key=ApiKey.DESCRIBE_LOG_DIRS, versions="1-5", flexible="2+"):
    topics: list[DescribeLogDirsRequestTopic] | None


class DescribeLogDirsPartition(Struct):
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


class DescribeLogDirsTopic(Struct):
    name: String
    partitions: list[DescribeLogDirsPartition]


class DescribeLogDirsResult(Struct):
    error_code: Int16 = 0
    log_dir: String
    topics: list[DescribeLogDirsTopic]
    total_bytes: Annotated[Int64, since(4), IGNORABLE] = -1
    usable_bytes: Annotated[Int64, since(4), IGNORABLE] = -1
    is_cordoned: Annotated[Bool, since(5), IGNORABLE] = False


class DescribeLogDirsResponse(Message, key=ApiKey.DESCRIBE_LOG_DIRS, versions="1-5", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3), IGNORABLE] = 0
    results: list[DescribeLogDirsResult] = []
