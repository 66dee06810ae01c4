"""DescribeLogDirs (key 35, v1-5).

Lists the log directories, and the size of each requested partition in them. A log that is being
moved into a directory is listed there as a future log, with its lag. A log that is not open yet, or
that cannot be read, has the lag -1.
v4 adds total and usable bytes · v5 adds whether the directory is cordoned, which means that it gets
no new partitions."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.features import FIRST_VERSION_WITH_CORDONED
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.storage.topic_partition import TopicPartition

UNKNOWN_LAG = -1


async def handle(
    context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    if not context.authorize_cluster(AclOperation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, index): None
            for topic in context.sliced(request.topics)
            for index in context.sliced(topic.partitions)
        }
    paths = dict.fromkeys(path.absolute() for path in context.broker.config.data_directories)
    return DescribeLogDirsResponse(
        results=[await describe(context, path, wanted) for path in paths]
    )


class Sizes(NamedTuple):
    """Sizes in one directory; `not_open` has the bytes of each log that is not open."""

    total_bytes: int
    usable_bytes: int
    not_open: Mapping[TopicPartition, int]


def sizes_in(context: RequestContext, path: Path) -> Sizes:
    """Measure a directory. Can run on any thread. Raises OSError."""
    manager = context.broker.log_manager
    files = manager.files
    not_open = [log for log in manager.not_open() if log.directory.path == path]
    return Sizes(
        files.total_bytes(path),
        files.free_bytes(path),
        {log.key: manager.stored_bytes(log) for log in not_open},
    )


async def describe(
    context: RequestContext, path: Path, wanted: Collection[TopicPartition] | None
) -> DescribeLogDirsResult:
    manager = context.broker.log_manager
    sizes: Sizes | None = None
    if path not in manager.offline:
        with suppress(OSError):
            sizes = await context.broker.disk.run(sizes_in, context, path)
    if sizes is None or path in manager.offline:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path), topics=[]
        )
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in logs_in(context, path, sizes, wanted):
        topic, index = log.partition
        if wanted is None or log.partition in wanted:
            partition = DescribeLogDirsPartition(
                partition_index=index,
                partition_size=log.size_bytes,
                offset_lag=log.offset_lag,
                is_future_key=log.is_future,
            )
            topics.setdefault(topic, []).append(partition)
    knows_cordoned = (
        context.broker.metadata.features.metadata_version >= FIRST_VERSION_WITH_CORDONED
    )
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in context.sliced(iter(topics.items()))
        ],
        total_bytes=sizes.total_bytes,
        usable_bytes=sizes.usable_bytes,
        is_cordoned=knows_cordoned and path in context.broker.config.cordoned_directories,
    )


class LogInDirectory(NamedTuple):
    """One log of a directory; `is_future` if it is being moved into the directory."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int = 0
    is_future: bool = False


def logs_in(
    context: RequestContext, path: Path, sizes: Sizes, wanted: Collection[TopicPartition] | None
) -> Iterator[LogInDirectory]:
    """The logs of a directory. Of the open ones, only those that are wanted."""
    manager = context.broker.log_manager
    for key in context.sliced(manager.open_keys() if wanted is None else iter(wanted)):
        log = manager.find(*key)  # None if it was deleted meanwhile
        if log is not None and manager.directory_of(log).path == path:
            yield LogInDirectory(key, log.size_bytes)
    for not_open in context.sliced(manager.not_open()):
        if not_open.key in sizes.not_open:
            yield LogInDirectory(not_open.key, sizes.not_open[not_open.key], UNKNOWN_LAG)
    for future in context.sliced(manager.futures.values()):
        if future.home.path == path:
            yield LogInDirectory(future.key, future.size_bytes, future.lag, is_future=True)
