"""DescribeLogDirs (key 35, v1-5).

The log directories, and how much of each the asked partitions take. Nothing is being moved between
directories and nothing is behind, so no future replicas and no lag. v4 total and usable bytes · v5
cordoned directories: none."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from ...protocol.errors import ErrorCode
from ...protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ...storage.log import PartitionLog
from ..context import RequestContext


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
    try:
        total_bytes = context.broker.files.total_bytes(path)
        usable_bytes = context.broker.files.free_bytes(path)
    except OSError:
        return refused(path)
    logs = [log for log in manager.logs() if manager.directory_of(log).path == path]
    if wanted is not None:
        logs = [log for log in logs if (log.topic, log.partition) in wanted]
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=list(by_topic(logs)),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def refused(path: Path) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path), topics=[]
    )


def by_topic(logs: Iterable[PartitionLog]) -> Iterator[DescribeLogDirsTopic]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in logs:
        partition = DescribeLogDirsPartition(
            partition_index=log.partition,
            partition_size=log.size_bytes,
            offset_lag=0,
            is_future_key=False,
        )
        topics.setdefault(log.topic, []).append(partition)
    for name, partitions in topics.items():
        yield DescribeLogDirsTopic(name=name, partitions=partitions)
