"""AlterReplicaLogDirs (key 34, v1-2).

Moves partitions to other log directories of this broker. The response says whether the move has
begun. It continues in the background, and DescribeLogDirs reports its progress. A request for the
directory that a partition is already moving to changes nothing. A request for the directory that
the partition is in cancels the move."""

import asyncio

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def handle(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    is_allowed = context.authorize_cluster(AclOperation.ALTER)
    # The requested directory of each partition, by topic and partition index.
    wanted: dict[str, dict[int, str]] = {}
    for directory in context.sliced(request.dirs):
        for topic in context.sliced(directory.topics):
            for index in context.sliced(topic.partitions):
                # If the request names a partition in several directories, the last one counts.
                wanted.setdefault(topic.name, {})[index] = directory.path
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index,
                        error_code=await begin_move(context, name, index, path)
                        if is_allowed
                        else ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    )
                    for index, path in context.sliced(iter(paths.items()))
                ],
            )
            for name, paths in context.sliced(iter(wanted.items()))
        ]
    )


async def begin_move(context: RequestContext, topic: str, index: int, path: str) -> ErrorCode:
    """Begin to move a partition. Returns when its new directory is prepared, or that failed."""
    try:
        preparation = context.broker.maintenance.mover.alter(topic, index, path)
    except ApiError as error:
        return error.code
    if preparation is None:  # the partition is in this directory, or already moving to it
        return ErrorCode.NONE
    # The move sets the result of this future. A request that is cancelled must not cancel it.
    failure = await asyncio.shield(preparation)
    return ErrorCode.NONE if failure is None else failure.code
