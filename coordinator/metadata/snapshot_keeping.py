"""When a snapshot of the metadata log is due, how it is written, and when old ones are deleted.

A snapshot is due when the log has grown by a number of bytes since the last one, or when an
interval has passed and there are new records. It is written to another name (`.checkpoint.part`),
synced, made read-only and renamed, so a file with the name of a snapshot is complete.

Snapshots and log together have a size limit and an age limit. While there are two snapshots, the
older one may be deleted, and the log before the newer one with it: the log start offset moves
there, and whole segments before it are deleted. As all files that the store deletes, a snapshot is
renamed to `.deleted` first.

Kafka: SnapshotGenerator, FileRawSnapshotWriter, KafkaRaftLog.maybeClean.
"""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from odradek.config.broker_config import BrokerConfig
from odradek.protocol.batch_header import CorruptRecordError, read_header
from odradek.protocol.record import read_records
from odradek.protocol.records.control import SnapshotHeaderRecord
from odradek.protocol.schema import DecodeError
from odradek.storage.deletions import Deletions
from odradek.storage.filenames import MetadataSnapshotName, metadata_snapshot_file
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.metadata_snapshots import snapshots_in
from odradek.storage.retention import delete_old_segments

from .metadata_snapshot import CONTROL_VERSION

_logger = logging.getLogger(__name__)

FIRST_BATCH_BYTES = 64 * 1024  # more than a snapshot's header and voters take
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".deleted"


class SnapshotRules(Struct, frozen=True, kw_only=True):
    """When to write (interval 0: not by time) and how much to keep (-1: no limit)."""

    max_new_bytes: int = 20 << 20
    max_interval_ms: int = 3_600_000
    retention_bytes: int = 100 << 20
    retention_ms: int = 7 * 24 * 3_600_000
    delete_delay_ms: int = 60_000

    @classmethod
    def of(cls, config: BrokerConfig) -> "SnapshotRules":
        """Make the rules of a broker's configuration."""
        return cls(
            max_new_bytes=config.metadata_log_max_record_bytes_between_snapshots,
            max_interval_ms=config.metadata_log_max_snapshot_interval_ms,
            retention_bytes=config.metadata_max_retention_bytes,
            retention_ms=config.metadata_max_retention_ms,
            delete_delay_ms=config.internal_metadata_delete_delay_millis,
        )


class SnapshotKeeper:
    """The snapshots of one metadata log."""

    def __init__(
        self,
        log: PartitionLog,
        files: Files,
        deletions: Deletions,
        rules: SnapshotRules,
        *,
        now_ms: int,
    ) -> None:
        """`now_ms`, here and when a snapshot is due or started, is of a clock that never jumps.

        `clean` compares the wall clock with the times in the snapshots.
        """
        self._log = log
        self._files = files
        self._deletions = deletions
        self._rules = rules
        self._last_ms = now_ms
        names = snapshots_in(files, log.directory)
        self._last_end_offset = names[-1].end_offset if names else 0
        self._seen_end_offset = -1
        self._new_bytes = 0
        self._written_at: dict[MetadataSnapshotName, int] = {}

    # -- writing --------------------------------------------------------------------------------

    def due_reason(self, now_ms: int) -> str | None:
        """Return why a snapshot is due now; None if it is not."""
        if self._log.log_end_offset <= self._last_end_offset:
            return None
        if self._bytes_since_last() >= self._rules.max_new_bytes:
            return f"{self._new_bytes} bytes were logged since the last one"
        interval_ms = self._rules.max_interval_ms
        if interval_ms and now_ms - self._last_ms >= interval_ms:
            return f"{(now_ms - self._last_ms) // 60_000} minutes passed since the last one"
        return None

    def _bytes_since_last(self) -> int:
        log = self._log
        if log.log_end_offset != self._seen_end_offset:
            first, *rest = log.segments.between(self._last_end_offset)
            found = first.find(self._last_end_offset)
            position = found.position if found is not None else first.size_bytes
            self._new_bytes = sum(segment.size_bytes for segment in rest)
            self._new_bytes += first.size_bytes - position
            self._seen_end_offset = log.log_end_offset
        return self._new_bytes

    def note_started(self, end_offset: int, now_ms: int) -> None:
        """Note that a snapshot up to `end_offset` is being written: the next is counted from it."""
        self._last_end_offset, self._last_ms, self._seen_end_offset = end_offset, now_ms, -1

    def store(self, name: MetadataSnapshotName, pieces: Iterable[bytes]) -> Path:
        """Write a snapshot, on any thread.

        Raises OSError: then there is no file, or it is complete and a power cut may undo its name.
        """
        directory = self._log.directory
        path = directory / metadata_snapshot_file(*name)
        part = path.with_name(path.stem + PART_SUFFIX)
        try:
            self._files.write(part, b"".join(pieces))
            self._files.make_read_only(part)
            self._files.rename(part, path)
        except OSError:
            self._files.remove(part)
            raise
        self._files.fsync_directory(directory)
        return path

    # -- cleaning -------------------------------------------------------------------------------

    def load_headers(self, now_ms: int) -> None:
        """Read the file sizes and headers that `clean` needs; change nothing. Raises OSError.

        The headers are cached, so that `clean` does not wait for a cold disk.
        """
        for name in self._names():
            self._files.size(self._path(name))
            self._last_contained_ms(name, now_ms)

    def clean(self, now_ms: int) -> int:
        """Delete old snapshots over the limits. Returns their number. Raises OSError, ApiError."""
        return self._clean_size(now_ms) + self._clean_age(now_ms)

    def _clean_size(self, now_ms: int) -> int:
        limit = self._rules.retention_bytes
        if limit < 0:
            return 0
        sizes = {name: self._files.size(self._path(name)) for name in self._names()}
        left = sum(sizes.values())

        def is_over(name: MetadataSnapshotName) -> bool:
            nonlocal left
            over = self._log.size_bytes + left > limit
            left -= sizes[name]
            return over

        return self._clean_while(is_over, "over metadata.max.retention.bytes", now_ms)

    def _clean_age(self, now_ms: int) -> int:
        limit_ms = self._rules.retention_ms
        if limit_ms < 0:
            return 0

        def is_old(name: MetadataSnapshotName) -> bool:
            return now_ms - self._last_contained_ms(name, now_ms) > limit_ms

        return self._clean_while(is_old, "over metadata.max.retention.ms", now_ms)

    def _clean_while(
        self, may_go: Callable[[MetadataSnapshotName], bool], reason: str, now_ms: int
    ) -> int:
        names = self._names()
        deleted = 0
        while deleted < len(names) - 1 and may_go(names[deleted]):
            if not self._drop_before(names[deleted + 1], names[deleted], reason, now_ms):
                break
            deleted += 1
        return deleted

    def _drop_before(
        self, kept: MetadataSnapshotName, old: MetadataSnapshotName, reason: str, now_ms: int
    ) -> bool:
        if not self._log.increment_log_start_offset(kept.end_offset):
            return False
        delete_old_segments(self._log, now_ms)
        path = self._path(old)
        deleted_path = path.with_name(path.name + DELETED_SUFFIX)
        _logger.info("%s is deleted: %s", path, reason)
        self._files.rename(path, deleted_path)
        self._deletions.add([deleted_path], self._rules.delete_delay_ms)
        self._written_at.pop(old, None)
        return True

    def _names(self) -> list[MetadataSnapshotName]:
        return snapshots_in(self._files, self._log.directory)

    def _path(self, name: MetadataSnapshotName) -> Path:
        return self._log.directory / metadata_snapshot_file(*name)

    def _last_contained_ms(self, name: MetadataSnapshotName, default_ms: int) -> int:
        """Return the time in a snapshot's header; `default_ms` if it cannot be read."""
        if name not in self._written_at:
            file = self._files.open(self._path(name), read_only=True)
            data = memoryview(self._files.pread(file, FIRST_BATCH_BYTES, 0))
            try:
                header = read_header(data)
                first = next(read_records(data[: header.size_bytes], header=header))
                header_record = SnapshotHeaderRecord.decode(first.value or b"", CONTROL_VERSION)
            except (CorruptRecordError, DecodeError) as error:
                _logger.warning("%s has no readable header: %s", self._path(name), error)
                return default_ms
            self._written_at[name] = header_record.last_contained_log_timestamp
        return self._written_at[name]
