"""DescribeLogDirs (key 35, v1-5).

The log directories, and how much of each the asked partitions take. A log that is being moved here
from another directory is told beside those that lie here, with how far it is behind; one that is
still to be recovered, or cannot be read, with lag -1: nobody knows. v4 total and
usable bytes · v5 whether it is cordoned: gets no new partitions."""

from collections.abc import Collection, Iterator
from pathlib import Path

from odradek.broker.requests.context import RequestContext
from odradek.coordinator.metadata.features import FIRST_VERSION_WITH_CORDONED
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.storage.checkpoints import TopicPartition
from odradek.storage.log_manager import LogManager

UNKNOWN_LAG = -1


def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    paths = dict.fromkeys(path.absolute() for path in context.broker.config.data_directories)
    return DescribeLogDirsResponse(results=[describe(context, path, wanted) for path in paths])


def describe(
    context: RequestContext, path: Path, wanted: Collection[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    manager = context.broker.log_manager
    if path in manager.offline:
        return refused(path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    try:
        total_bytes = context.broker.files.total_bytes(path)
        usable_bytes = context.broker.files.free_bytes(path)
        for (topic, index), partition in partitions_in(manager, path):
            if wanted is None or (topic, index) in wanted:
                topics.setdefault(topic, []).append(partition)
    except OSError:
        return refused(path)
    knows_cordoned = (
        context.broker.metadata.features.metadata_version >= FIRST_VERSION_WITH_CORDONED
    )
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=knows_cordoned and path in context.broker.config.cordoned_directories,
    )


def refused(path: Path) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path), topics=[]
    )


def partitions_in(
    manager: LogManager, path: Path
) -> Iterator[tuple[TopicPartition, DescribeLogDirsPartition]]:
    for log in manager.logs():
        if manager.directory_of(log).path == path:
            partition = DescribeLogDirsPartition(
                partition_index=log.partition,
                partition_size=log.size_bytes,
                offset_lag=0,
                is_future_key=False,
            )
            yield log.key, partition
    for found in manager.not_open():
        if found.directory.path == path:
            partition = DescribeLogDirsPartition(
                partition_index=found.partition,
                partition_size=manager.stored_bytes(found),
                offset_lag=UNKNOWN_LAG,
                is_future_key=False,
            )
            yield found.key, partition
    for future in manager.futures.values():
        if future.home.path == path:
            partition = DescribeLogDirsPartition(
                partition_index=future.log.partition,
                partition_size=future.size_bytes,
                offset_lag=future.lag,
                is_future_key=True,
            )
            yield future.key, partition
