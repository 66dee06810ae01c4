"""AlterReplicaLogDirs (key 34): move replicas between log directories of one broker."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Message, String, Struct


class AlterReplicaLogDirTopic(Struct):
    name: String
    partitions: list[Int32]


class AlterReplicaLogDir(Struct):
    path: String
    topics: list[AlterReplicaLogDirTopic]


class AlterReplicaLogDirsRequest(
    Message, key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="1-2", flexible="2+"
):
    dirs: list[AlterReplicaLogDir]


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16 = 0


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: String
    partitions: list[AlterReplicaLogDirPartitionResult]


class AlterReplicaLogDirsResponse(
    Message, key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="1-2", flexible="2+"
):
    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult]
