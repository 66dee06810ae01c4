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
    wanted: dict[str, dict[int, str]] = {}
    for directory in context.sliced(request.dirs):
        for topic in context.sliced(directory.topics):
            for index in context.sliced(topic.partitions):
                # Of several directories for one partition the last one is used.
                wanted.setdefault(topic.name, {})[index] = directory.path
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index,
                        error_code=await move(context, name, index, path)
                        if is_allowed
                        else ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    )
                    for index, path in context.sliced(iter(paths.items()))
                ],
            )
            for name, paths in context.sliced(iter(wanted.items()))
        ]
    )


async def move(context: RequestContext, topic: str, index: int, path: str) -> ErrorCode:
    try:
        preparation = context.broker.maintenance.mover.alter(topic, index, path)
    except ApiError as error:
        return error.code
    if preparation is None:  # the partition is there, or moves there already
        return ErrorCode.NONE
    refusal = await asyncio.shield(preparation)
    return ErrorCode.NONE if refusal is None else refusal.code
