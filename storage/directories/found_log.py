"""A log found in a data directory and not opened yet: its checkpointed offsets, and how many bytes
must be read before it can be served.

After an unclean stop a log is read from its recovery point on. Small logs are recovered at once.
Large ones wait, and the others are served meanwhile: see recovering/task.py.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from odradek.storage.data_directory import DataDirectory
from odradek.storage.filenames import (
    FileKind,
    live_offsets,
    partition_directory,
    segment_file,
)
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition

# The most that is read before the broker listens: less than a second's work.
READ_AT_ONCE_BYTES = 64 << 20


class FoundLog(Struct, frozen=True, kw_only=True):
    """A log on disk. An offset that no checkpoint has is None."""

    directory: DataDirectory
    topic: str
    partition: int
    recovery_point: int | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    unflushed_bytes: int = 0  # 0 if nothing needs to be read

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def name(self) -> str:
        return partition_directory(self.topic, self.partition)

    @property
    def path(self) -> Path:
        return self.directory.path / self.name


def unflushed_bytes(files: Files, directory: Path, recovery_point: int) -> int:
    """The size of the segments that may hold records that were not synced."""
    bases = live_offsets(files.list_directory(directory), FileKind.LOG)
    first = max((base for base in bases if base <= recovery_point), default=0)
    return sum(
        files.size(directory / segment_file(base, FileKind.LOG)) for base in bases if base >= first
    )


def stored_bytes(files: Files, directory: Path) -> int:
    """The size of all segments, except files that are removed or renamed meanwhile.

    0 if the directory is missing: that concerns one log, and not the others beside it.
    """
    total = 0
    names: list[str] = []
    with suppress(FileNotFoundError):
        names = files.list_directory(directory)
    for base_offset in live_offsets(names, FileKind.LOG):
        with suppress(FileNotFoundError):
            total += files.size(directory / segment_file(base_offset, FileKind.LOG))
    return total


def divide(
    found: Sequence[FoundLog], may_wait: Callable[[FoundLog], bool]
) -> tuple[list[FoundLog], list[FoundLog]]:
    """Divide logs into those to open at once and those that wait.

    At once: the logs that must not wait, then the smallest, up to READ_AT_ONCE_BYTES together.
    """
    at_once = [log for log in found if not log.unflushed_bytes or not may_wait(log)]
    chosen = {log.key for log in at_once}
    others = sorted(
        (log for log in found if log.key not in chosen), key=lambda log: log.unflushed_bytes
    )
    left_bytes = READ_AT_ONCE_BYTES
    for count, log in enumerate(others):
        left_bytes -= log.unflushed_bytes
        if left_bytes < 0:
            return at_once + others[:count], others[count:]
    return at_once + others, []
