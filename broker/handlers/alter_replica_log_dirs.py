"""AlterReplicaLogDirs (key 34, v1-2).

Moves partitions to other log directories of this broker. The answer says that a move has begun; it
goes on in the background, and DescribeLogDirs tells how far it is. The directory a partition moves
to already: nothing changes. The one it lies in: the move is cancelled."""

from odradek.broker.requests.context import RequestContext
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                # Of several directories for one partition the last counts.
                wanted.setdefault(topic.name, {})[index] = directory.path
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[move(context, name, index, path) for index, path in paths.items()],
            )
            for name, paths in wanted.items()
        ]
    )


def move(
    context: RequestContext, topic: str, index: int, path: str
) -> AlterReplicaLogDirPartitionResult:
    try:
        context.broker.log_mover.alter(topic, index, path)
    except ApiError as error:
        return AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error.code)
    return AlterReplicaLogDirPartitionResult(partition_index=index, error_code=ErrorCode.NONE)
