"""Finds the logs in a log directory when the node starts.

The name of a partition's directory says what it holds: a log, a deleted log, the copy of a log that
is being moved here, or a stray, which belongs to no partition and is kept for the user. Each log is
returned with its checkpointed offsets and the number of unflushed bytes, which are read before it
can be served.
"""

import logging
from pathlib import Path
from typing import NamedTuple

from odradek.storage.data_directory import DataDirectory
from odradek.storage.filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    DirectoryState,
    PartitionDirectoryName,
    is_foreign_directory,
    parse_partition_directory,
    partition_directory,
)
from odradek.storage.files import Files
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC
from odradek.storage.topic_partition import TopicPartition

from .found_log import FoundLog, unflushed_bytes
from .offset_checkpoints import read_checkpoint

_logger = logging.getLogger(__name__)


class Contents(NamedTuple):
    """The logs to load, and the paths of deleted logs, futures and strays."""

    logs: list[FoundLog]
    deleted: list[Path]
    futures: list[Path]
    strays: list[Path]


def search(files: Files, directory: DataDirectory) -> Contents:
    """Find all logs except the metadata log. Raises OSError."""
    keys: list[TopicPartition] = []
    contents = Contents([], [], [], [])
    for path, name in _partition_directories(files, directory.path):
        if name.state is DirectoryState.LIVE:
            keys.append(name.key)
        elif name.state is DirectoryState.DELETE:
            contents.deleted.append(path)
        elif name.state is DirectoryState.FUTURE:
            contents.futures.append(path)
        else:
            _logger.warning("%s is left alone", path)
            contents.strays.append(path)
    contents.logs.extend(_found_logs(files, directory, keys))
    return contents


def _partition_directories(
    files: Files, directory: Path
) -> list[tuple[Path, PartitionDirectoryName]]:
    found = []
    for name in files.list_directory(directory):
        path = directory / name
        if is_foreign_directory(name) or not files.is_directory(path):
            continue
        parsed = _parse(path)
        if parsed is not None and parsed.topic != CLUSTER_METADATA_TOPIC:
            found.append((path, parsed))
    return found


def _parse(path: Path) -> PartitionDirectoryName | None:
    try:
        return parse_partition_directory(path.name)
    except ValueError as error:
        # Apache Kafka would not start.
        _logger.warning("%s is ignored: %s", path, error)
        return None


def _found_logs(
    files: Files, directory: DataDirectory, keys: list[TopicPartition]
) -> list[FoundLog]:
    recovery_points = read_checkpoint(files, directory, RECOVERY_POINT_CHECKPOINT)
    log_starts = read_checkpoint(files, directory, LOG_START_OFFSET_CHECKPOINT)
    watermarks = read_checkpoint(files, directory, REPLICATION_OFFSET_CHECKPOINT)
    found = []
    for key in keys:
        size_bytes = 0
        if not directory.had_clean_shutdown:
            path = directory.path / partition_directory(*key)
            size_bytes = unflushed_bytes(files, path, recovery_points.get(key, 0))
        found.append(
            FoundLog(
                directory=directory,
                topic=key.topic,
                partition=key.partition,
                recovery_point=recovery_points.get(key),
                log_start_offset=log_starts.get(key),
                high_watermark=watermarks.get(key),
                unflushed_bytes=size_bytes,
            )
        )
    return found
