"""All logs of this node, over all log directories. Kafka: LogManager.

    manager = LogManager.open(config, files=Files(), now_ms=now)
    metadata = manager.open_metadata_log(topic_id, topic_config, now_ms=now)
    manager.load_logs(config_of_topic, now_ms=now)          the metadata log tells the configs
    ... get, create, delete; housekeeping with the time ...
    manager.close(now_ms=now, broker_epoch=epoch)

A directory that fails takes its own logs offline and no others; without any there is no broker. The
logs that were open in it answer KAFKA_STORAGE_ERROR, and so does making one that may lie there.

The checkpoint files are written from offsets copied at the call, so that the broker may do that,
like removing what `take_due_deletions` gives, on another thread.
"""

import errno
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..config.broker_config import BrokerConfig
from ..config.topic_config import TopicConfig
from ..protocol.batch_header import CorruptRecordError
from ..protocol.errors import ApiError, ErrorCode
from ..protocol.primitives import random_uuid
from .checkpoints import CheckpointError, TopicPartition, read_offsets, read_topic_id, write_offsets
from .data_directory import (
    DataDirectory,
    DirectoryError,
    Inspection,
    OpenedDirectories,
    open_directories,
)
from .deletions import Deletions
from .filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    DirectoryState,
    PartitionDirectoryName,
    is_foreign_directory,
    parse_partition_directory,
    partition_directory,
    retired_directory,
)
from .files import Files
from .flush_plan import FlushPlan
from .found_log import FoundLog, RecoveryTask, divide, unflushed_bytes
from .future_log import FutureLog
from .log import PartitionLog
from .producer_recovery import RecentBatches
from .recovery import LogSource, is_worth_a_line
from .retention import delete_old_segments
from .topic_names import CLUSTER_METADATA_TOPIC

_logger = logging.getLogger(__name__)

# The disk is full, or we hold too many files: that passes, and reading goes on.
_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
_PASSING_ERRORS = _FULL_DISK | {errno.EMFILE, errno.ENFILE}


class LogManager:
    """The logs by topic and partition; the `directories` online, and why others are `offline`."""

    def __init__(
        self,
        config: BrokerConfig,
        files: Files,
        opened: OpenedDirectories,
        report: Callable[[str], None],
    ) -> None:
        """See `open`."""
        self.directories = opened.online
        self.offline = opened.offline
        self.cluster_id = opened.online[0].cluster_id
        self.strays: list[Path] = []
        self.futures: dict[TopicPartition, FutureLog] = {}  # logs on their way, see log_moves.py
        self.found_futures: list[tuple[DataDirectory, Path]] = []  # as the last stop left them
        self.deletions = Deletions()
        self._config = config
        self._files = files
        self._report = report
        self._logs: dict[TopicPartition, PartitionLog] = {}
        # Logs that lie there and are not open: they wait for their recovery, or are unreadable.
        self._not_open: dict[TopicPartition, FoundLog] = {}
        self._unreadable: dict[TopicPartition, str] = {}
        self._locations: dict[TopicPartition, DataDirectory] = {}
        self.on_roll: Callable[[PartitionLog], None] | None = None
        self.on_flush_due: Callable[[PartitionLog], None] | None = None
        self.on_offline: Callable[[DataDirectory], object] | None = None  # called on any thread
        self.on_full: Callable[[DataDirectory], object] | None = None  # called on any thread
        self.on_abandoned: Callable[[FoundLog], None] | None = None  # its recovery must end at once
        self._written: dict[Path, dict[TopicPartition, int]] = {}  # checkpoints as they are

    @classmethod
    def open(
        cls,
        config: BrokerConfig,
        *,
        files: Files,
        cluster_id: str | None = None,
        inspect: Inspection = lambda _: None,
        report: Callable[[str], None] = _logger.info,
    ) -> "LogManager":
        """Lock and check the log directories, and format the empty ones; no log is read yet.

        `inspect` looks at them before that. `report` hears of every log that is recovered. Raises
        DirectoryError, and what `inspect` raises.
        """
        paths = [*config.data_directories, config.metadata_directory]
        opened = open_directories(
            files, paths, node_id=config.node_id, cluster_id=cluster_id, inspect=inspect
        )
        for path, reason in opened.offline.items():
            _logger.error("log directory %s is offline: %s", path, reason)
        return cls(config, files, opened, report)

    # --- what there is

    def logs(self) -> list[PartitionLog]:
        """All logs but the metadata log, in no order."""
        return [log for log in self._logs.values() if log.topic != CLUSTER_METADATA_TOPIC]

    def get(self, topic: str, partition: int) -> PartitionLog:
        """Raises ApiError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR; while the log is being
        recovered NOT_LEADER_OR_FOLLOWER, as Kafka answers for a partition of its metadata that it
        has not opened yet: every client asks for the metadata again, and retries.
        """
        log = self._logs.get((topic, partition))
        if log is None or topic == CLUSTER_METADATA_TOPIC:  # that one is nobody's to ask for
            reason = self._unreadable.get((topic, partition))
            if reason is not None:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
            if (topic, partition) in self._not_open:
                text = f"{topic}-{partition} is being recovered"
                raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition}"
            )
        return log

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        """The log, or None."""
        return self._logs.get((topic, partition))

    def directory_of(self, log: PartitionLog) -> DataDirectory:
        """The log directory in which it lies."""
        return self._locations[log.topic, log.partition]

    def is_moving(self, key: TopicPartition) -> bool:
        """Whether there is a future of that log: a directory that the last stop has left, or one
        that is being filled.
        """
        names = (parse_partition_directory(path.name) for _, path in self.found_futures)
        return key in self.futures or any((name.topic, name.partition) == key for name in names)

    def not_open(self) -> list[FoundLog]:
        """Logs that lie there and are not served: they are waiting, or cannot be read."""
        return list(self._not_open.values())

    def waiting(self) -> list[FoundLog]:
        """Logs that are not open because they are still to be recovered, the smallest first."""
        waiting = [log for key, log in self._not_open.items() if key not in self._unreadable]
        return sorted(waiting, key=lambda log: log.unflushed_bytes)

    # --- start

    def open_metadata_log(
        self, topic_id: bytes, config: TopicConfig, *, now_ms: int
    ) -> PartitionLog:
        """Load or make __cluster_metadata-0. Raises OSError, ApiError."""
        wanted = self._config.metadata_directory.absolute()
        home = next((each for each in self.directories if each.path == wanted), None)
        if home is None:
            raise DirectoryError(f"the metadata directory is offline: {self.offline[wanted]}")
        # Kafka keeps no recovery point of this log and reads it whole at every start.
        log = self._open_log(home, CLUSTER_METADATA_TOPIC, 0, config, now_ms=now_ms)
        log.assign_topic_id(topic_id)
        return log

    def load_logs(
        self,
        config_of: Callable[[str], TopicConfig],
        *,
        now_ms: int,
        may_wait: Callable[[FoundLog], bool] = lambda _: False,
    ) -> None:
        """Open every log of every directory; recover it where the last stop was not clean.

        Large ones that `may_wait` are `waiting` afterwards. Raises DirectoryError where a partition
        lies in two directories, or none is left online.
        """
        found = []
        for directory in list(self.directories):
            try:
                found += self._find_logs(directory, now_ms)
            except OSError as error:
                self.take_offline(directory, f"looking for its logs failed: {error}")
        twins = {log.key: log for log in found}
        for log in found:
            if twins[log.key] is not log:
                name, other = f"{log.topic}-{log.partition}", twins[log.key].path
                raise DirectoryError(f"{name} lies in {other} and in {log.path}: remove one")
        at_once, waiting = divide(found, may_wait)
        self._not_open.update({log.key: log for log in waiting})
        unclean = [log for log in at_once if not log.directory.had_clean_shutdown]
        done = 0
        for log in at_once:
            if not log.directory.had_clean_shutdown:
                if is_worth_a_line(done, len(unclean)):
                    name = f"{log.topic}-{log.partition}"
                    self._report(f"recovering {name}, {done} of {len(unclean)} logs done")
                done += 1
            if log.directory.is_online:
                self._open_found(log, config_of(log.topic), now_ms)
        if not self.directories:
            raise DirectoryError(f"no log directory is left: {self.offline}")

    def _find_logs(self, directory: DataDirectory, now_ms: int) -> list[FoundLog]:
        recovery_points = self._read_checkpoint(directory, RECOVERY_POINT_CHECKPOINT)
        log_starts = self._read_checkpoint(directory, LOG_START_OFFSET_CHECKPOINT)
        watermarks = self._read_checkpoint(directory, REPLICATION_OFFSET_CHECKPOINT)
        found = []
        for topic, partition in self._live_logs(directory, now_ms):
            key = topic, partition
            unread = 0
            if not directory.had_clean_shutdown:
                path = directory.path / partition_directory(*key)
                unread = unflushed_bytes(self._files, path, recovery_points.get(key, 0))
            found.append(
                FoundLog(
                    directory=directory,
                    topic=topic,
                    partition=partition,
                    recovery_point=recovery_points.get(key),
                    log_start_offset=log_starts.get(key),
                    high_watermark=watermarks.get(key),
                    unflushed_bytes=unread,
                )
            )
        return found

    def _open_found(self, found: FoundLog, config: TopicConfig, now_ms: int) -> None:
        """An error makes the log unreadable; one of the disk takes the whole directory offline."""
        try:
            self.open_found(found, config, now_ms=now_ms)
        except OSError as error:
            self.give_up(found, error)
        except CorruptRecordError as error:
            self.give_up(found, error)

    def open_found(
        self,
        found: FoundLog,
        config: TopicConfig,
        *,
        now_ms: int,
        recovered: RecentBatches | None = None,
    ) -> PartitionLog:
        """Open a log that was found. `recovered`: another process has recovered it since.

        Raises OSError, CorruptRecordError.
        """
        source = replace(
            self._source(found.directory, found.path, config, now_ms),
            recovery_point=found.recovery_point or 0,
            log_start_offset=found.log_start_offset or 0,
            recovered=recovered,
        )
        log = self._load_log(source, found.key)
        self._not_open.pop(found.key, None)
        self.adopt(log, found.directory)
        return log

    def give_up(self, found: FoundLog, error: Exception) -> None:
        """A log could not be opened, or not be recovered: it answers KAFKA_STORAGE_ERROR."""
        _logger.error("%s-%d is not served: %s", found.topic, found.partition, error)
        self._not_open[found.key] = found
        self._unreadable[found.key] = f"{found.topic}-{found.partition}: {error}"
        if isinstance(error, OSError):
            self.on_directory_error(found.directory, error)

    def task_of(self, found: FoundLog, config: TopicConfig, now_ms: int) -> RecoveryTask:
        """What another process is told, to recover it."""
        return RecoveryTask(
            directory=found.path,
            config=config,
            recovery_point=found.recovery_point or 0,
            log_start_offset=found.log_start_offset or 0,
            producer_id_expiration_ms=self._config.producer_id_expiration_ms,
            now_ms=now_ms,
        )

    def topic_id_of(self, found: FoundLog) -> bytes | None:
        """To which topic it belongs, where that is written down."""
        return self._topic_id_in(found.path)

    def _live_logs(self, directory: DataDirectory, now_ms: int) -> list[TopicPartition]:
        """The logs to load. Deleted ones are due for removal, strays are left where they are."""
        live = []
        for name in self._files.list_directory(directory.path):
            path = directory.path / name
            if is_foreign_directory(name) or not self._files.is_directory(path):
                continue
            parsed = self._parse(path)
            if parsed is None or parsed.topic == CLUSTER_METADATA_TOPIC:
                continue
            if parsed.state is DirectoryState.LIVE:
                live.append((parsed.topic, parsed.partition))
            elif parsed.state is DirectoryState.DELETE:
                self.deletions.add([path], now_ms + self._delete_delay_ms)
            elif parsed.state is DirectoryState.FUTURE:
                self.found_futures.append((directory, path))
            else:
                _logger.warning("%s is left alone", path)
                self.strays.append(path)
        return live

    def _parse(self, path: Path) -> PartitionDirectoryName | None:
        try:
            return parse_partition_directory(path.name)
        except ValueError as error:
            # Apache Kafka would not start.
            _logger.warning("%s is ignored: %s", path, error)
            return None

    def _read_checkpoint(self, directory: DataDirectory, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._files, directory.path / name)
        except CheckpointError as error:
            _logger.warning("beginning without %s", error)
            return {}

    def _open_log(
        self,
        directory: DataDirectory,
        topic: str,
        partition: int,
        config: TopicConfig,
        *,
        now_ms: int,
        is_new: bool = False,
    ) -> PartitionLog:
        path = directory.path / partition_directory(topic, partition)
        source = self._source(directory, path, config, now_ms)
        if is_new:
            source = replace(source, had_clean_shutdown=True)
        log = self._load_log(source, (topic, partition))
        self.adopt(log, directory)
        return log

    def adopt(self, log: PartitionLog, directory: DataDirectory) -> None:
        """The log lies in that directory, and is the one of its partition."""
        log.on_disk_error = self._on_disk_error
        log.on_roll.add(self._rolled)
        if log.topic != CLUSTER_METADATA_TOPIC:  # that one is synced before each answer anyway
            log.on_flush_due = self._flush_due
        self._logs[log.topic, log.partition] = log
        self._locations[log.topic, log.partition] = directory

    def load_future(
        self,
        directory: DataDirectory,
        path: Path,
        topic: str,
        partition: int,
        config: TopicConfig,
        *,
        now_ms: int,
    ) -> PartitionLog:
        """The log in a `-future` directory, recovered where need be; `adopt` makes it the one."""
        recovery_points = self._read_checkpoint(directory, RECOVERY_POINT_CHECKPOINT)
        log_starts = self._read_checkpoint(directory, LOG_START_OFFSET_CHECKPOINT)
        source = replace(
            self._source(directory, path, config, now_ms),
            recovery_point=recovery_points.get((topic, partition), 0),
            log_start_offset=log_starts.get((topic, partition), 0),
        )
        return self._load_log(source, (topic, partition))

    def _source(
        self, directory: DataDirectory, path: Path, config: TopicConfig, now_ms: int
    ) -> LogSource:
        """Of a log there, of which no checkpoint says anything."""
        return LogSource(
            files=self._files,
            directory=path,
            config=config,
            now_ms=now_ms,
            had_clean_shutdown=directory.had_clean_shutdown,
            recovery_point=0,
            log_start_offset=0,
            producer_id_expiration_ms=self._config.producer_id_expiration_ms,
            deletions=self.deletions,
            report=self._report,
        )

    def _load_log(self, source: LogSource, key: TopicPartition) -> PartitionLog:
        return PartitionLog.open(
            source,
            *key,
            self._topic_id_in(source.directory),
            validate_records=self._config.odradek_validate_records == "full",
        )

    def _topic_id_in(self, path: Path) -> bytes | None:
        try:
            return read_topic_id(self._files, path / PARTITION_METADATA)
        except CheckpointError as error:
            _logger.warning("the topic id is unknown: %s", error)
            return None

    # --- partitions that come and go

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: TopicConfig,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        directory_id: bytes | None = None,
        is_new: bool = True,
    ) -> PartitionLog:
        """The log of a partition, made where it is not there: in the directory of that id, if it is
        online, or else in the one with the fewest logs.

        Not `is_new`: the partition was there before; it may lie in a directory that is offline, and
        is then not made again. Raises ApiError: INCONSISTENT_TOPIC_ID, KAFKA_STORAGE_ERROR, and
        NOT_LEADER_OR_FOLLOWER while the log is being recovered.
        """
        log = self._logs.get((topic, partition))
        if log is None:
            if (topic, partition) in self._not_open:
                return self.get(topic, partition)  # raises what there is to say
            try:
                if self.offline and not is_new:
                    raise ApiError(
                        ErrorCode.KAFKA_STORAGE_ERROR,
                        f"{topic}-{partition} may lie in an offline directory: {self.offline}",
                    )
                directory = self._directory_with(directory_id) or self._emptiest()
                log = self._make(directory, topic, partition, config, now_ms)
            except ApiError as error:
                self._unreadable[topic, partition] = error.message
                raise
        log.assign_topic_id(topic_id)
        log.become_leader(max(leader_epoch, log.leader_epoch))
        return log

    def _make(
        self,
        directory: DataDirectory,
        topic: str,
        partition: int,
        config: TopicConfig,
        now_ms: int,
    ) -> PartitionLog:
        try:
            return self._open_log(directory, topic, partition, config, now_ms=now_ms, is_new=True)
        except OSError as error:
            self.on_directory_error(directory, error)
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{partition} could not be made: {error}"
            ) from error

    def _directory_with(self, directory_id: bytes | None) -> DataDirectory | None:
        return next((one for one in self.directories if one.directory_id == directory_id), None)

    def _emptiest(self) -> DataDirectory:
        homes = {path.absolute() for path in self._config.data_directories}
        usable = [each for each in self.directories if each.path in homes]
        if not usable:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no log directory is online")
        located = [id(directory) for directory in self._locations.values()]
        return min(usable, key=lambda directory: located.count(id(directory)))

    def delete(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Rename their directories away; the records go after file.delete.delay.ms.

        One that is not there is fine. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        self._retire(partitions, DirectoryState.DELETE, now_ms)

    def move_aside(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Rename directories of logs that the metadata does not know to `-stray`, and keep them."""
        self._retire(partitions, DirectoryState.STRAY, now_ms)

    def _retire(
        self, partitions: Iterable[TopicPartition], state: DirectoryState, now_ms: int
    ) -> None:
        touched, failure = [], None
        for key in partitions:
            self._unreadable.pop(key, None)
            self.drop_future(key, now_ms)
            found = self._abandon(key)
            log = self._logs.pop(key, None)
            if log is not None:
                directory, path = self._locations.pop(key), log.directory
                log.take_offline("it was deleted")
            elif found is not None and found.directory.is_online:
                directory, path = found.directory, found.path
            else:
                continue
            target = directory.path / retired_directory(*key, state, random_uuid().hex())
            try:
                self._files.rename(path, target)
            except OSError as error:
                self.on_directory_error(directory, error)
                text = f"{path.name} could not be deleted: {error}"
                failure = failure or ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)
                continue  # nobody may go on using the others
            if log is not None:
                log.move_to(target)
            if state is DirectoryState.DELETE:
                self.deletions.add([target], now_ms + self._delete_delay_ms)
            else:
                self.strays.append(target)
            touched.append(directory)
        # At once: a new log of the same name must not begin with the offsets of this one.
        for directory in dict.fromkeys(touched):
            self._write_checkpoints(directory)
        if failure is not None:
            raise failure

    def _abandon(self, key: TopicPartition) -> FoundLog | None:
        """Nobody recovers that log any more; what was found of it."""
        found = self._not_open.pop(key, None)
        if found is not None and self.on_abandoned is not None:
            self.on_abandoned(found)
        return found

    def drop_future(self, key: TopicPartition, now_ms: int) -> None:
        """Do not move that log; what was copied goes. Nothing to drop is fine."""
        future = self.futures.pop(key, None)
        if future is None:
            return
        future.is_cancelled = True
        self.delete_directory(future.home, future.path, key, now_ms)

    def delete_directory(
        self, home: DataDirectory, path: Path, key: TopicPartition, now_ms: int
    ) -> Path:
        """Rename a log's directory to `-delete`, to go later; where it is then.

        An OSError takes `home` offline, and is not raised.
        """
        target = home.path / retired_directory(*key, DirectoryState.DELETE, random_uuid().hex())
        try:
            self._files.rename(path, target)
        except OSError as error:
            self.on_directory_error(home, error)
            return path
        self.deletions.add([target], now_ms + self._delete_delay_ms)
        return target

    @property
    def _delete_delay_ms(self) -> int:
        return self._config.log_segment_delete_delay_ms

    # --- housekeeping

    def update_config(self, config: BrokerConfig) -> None:
        """The broker's settings changed. What topics inherit is not told here, but to each log."""
        self._config = config
        futures = (future.log for future in self.futures.values())
        for log in (*self._logs.values(), *futures):
            log.producers.expiration_ms = config.producer_id_expiration_ms

    def run_retention(
        self, now_ms: int, is_wanted: Callable[[PartitionLog], bool] = lambda _: True
    ) -> int:
        """Delete segments that the wanted logs need not keep; how many."""
        deleted = 0
        for log in self.logs():
            if log.is_online and is_wanted(log):
                try:
                    deleted += delete_old_segments(log, now_ms)
                except ApiError as error:
                    _logger.error("retention of %s: %s", log.name, error)
        return deleted

    def flush_plans(self, now_ms: int) -> list[tuple[PartitionLog, FlushPlan]]:
        """Logs that flush.ms wants synced now (log.flush.scheduler.interval.ms)."""
        plans = []
        for log in self.logs():
            if log.is_online and now_ms - log.last_flush_ms >= log.config.flush_ms:
                with suppress(ApiError):  # said already, and the other logs are not to suffer
                    plan = log.flush_plan()
                    if plan is not None:
                        plans.append((log, plan))
        return plans

    def expire_producers(self, now_ms: int) -> None:
        """Forget silent producers (producer.id.expiration.check.interval.ms)."""
        for log in self.logs():
            log.producers.remove_expired(now_ms)

    def take_due_deletions(self, now_ms: int) -> list[Path]:
        """What `deletions.remove_paths` may remove now."""
        return self.deletions.take_due(now_ms)

    def release_closed_segments(self, max_open: int) -> None:
        """Let go of the files of closed segments when more than `max_open` are open."""
        opened = [
            segment
            for log in list(self._logs.values())
            for segment in list(log.segments)[:-1]
            if segment.has_open_file
        ]
        if len(opened) > max_open:
            for segment in opened:
                segment.release_files()

    def write_recovery_points(self) -> None:
        """recovery-point-offset-checkpoint (log.flush.offset.checkpoint.interval.ms)."""
        for directory in list(self.directories):
            self._checkpoint(directory, self._write_recovery_points)

    def write_log_starts(self) -> None:
        """log-start-offset-checkpoint (log.flush.start.offset.checkpoint.interval.ms)."""
        for directory in list(self.directories):
            self._checkpoint(directory, self._write_log_starts)

    def write_high_watermarks(self) -> None:
        """replication-offset-checkpoint (replica.high.watermark.checkpoint.interval.ms)."""
        for directory in list(self.directories):
            self._checkpoint(directory, self._write_high_watermarks)

    def _write_checkpoints(self, directory: DataDirectory) -> None:
        self._checkpoint(directory, self._write_recovery_points)
        self._checkpoint(directory, self._write_log_starts)
        self._checkpoint(directory, self._write_high_watermarks)

    def _checkpoint(self, directory: DataDirectory, write: Callable[[DataDirectory], None]) -> None:
        try:
            write(directory)
        except OSError as error:
            self.on_directory_error(directory, error)

    def _write_recovery_points(self, directory: DataDirectory) -> None:
        offsets = {
            log.key: log.recovery_point
            for log in self._not_open_in(directory)
            if log.recovery_point is not None
        }
        offsets |= {key: log.recovery_point for key, log in self._in(directory)}
        for future in self._futures_in(directory):
            offsets[future.key] = future.end_offset
        self._write_offsets(directory.path / RECOVERY_POINT_CHECKPOINT, offsets)

    def _write_log_starts(self, directory: DataDirectory) -> None:
        offsets = {
            log.key: log.log_start_offset
            for log in self._not_open_in(directory)
            if log.log_start_offset is not None
        }
        offsets |= {
            key: log.log_start_offset
            for key, log in self._in(directory)
            if log.log_start_offset > log.segments[0].base_offset
        }
        for future in self._futures_in(directory):
            if future.log.log_start_offset > future.log.segments[0].base_offset:
                offsets[future.key] = future.log.log_start_offset
        self._write_offsets(directory.path / LOG_START_OFFSET_CHECKPOINT, offsets)

    def _write_high_watermarks(self, directory: DataDirectory) -> None:
        offsets = {
            log.key: log.high_watermark
            for log in self._not_open_in(directory)
            if log.high_watermark is not None
        }
        offsets |= {key: log.high_watermark for key, log in self._in(directory)}
        self._write_offsets(directory.path / REPLICATION_OFFSET_CHECKPOINT, offsets)

    def _write_offsets(self, path: Path, offsets: dict[TopicPartition, int]) -> None:
        if self._written.get(path) != offsets:
            write_offsets(self._files, path, offsets)
            self._written[path] = offsets

    def _in(self, directory: DataDirectory) -> list[tuple[TopicPartition, PartitionLog]]:
        """Its logs; Kafka's checkpoints do not speak of the metadata log."""
        return [
            (key, log)
            for key, log in list(self._logs.items())
            if self._locations[key] is directory and log.topic != CLUSTER_METADATA_TOPIC
        ]

    def _not_open_in(self, directory: DataDirectory) -> list[FoundLog]:
        """Logs of which the checkpoints keep what they said."""
        return [log for log in list(self._not_open.values()) if log.directory is directory]

    def _futures_in(self, directory: DataDirectory) -> list[FutureLog]:
        return [future for future in list(self.futures.values()) if future.home is directory]

    def _rolled(self, log: PartitionLog) -> None:
        if self.on_roll is not None:
            self.on_roll(log)

    def _flush_due(self, log: PartitionLog) -> None:
        if self.on_flush_due is not None:
            self.on_flush_due(log)

    # --- disk errors

    def _on_disk_error(self, log: PartitionLog, error: OSError) -> None:
        directory = self._locations.get((log.topic, log.partition))
        if directory is not None:
            self.on_directory_error(directory, error)

    def on_directory_error(self, directory: DataDirectory, error: OSError) -> None:
        """Something failed there: unless that passes, it is offline."""
        if error.errno not in _PASSING_ERRORS:
            self.take_offline(directory, str(error))
        elif error.errno in _FULL_DISK and self.on_full is not None:
            self.on_full(directory)

    def sync_failed(self, log: PartitionLog, error: OSError) -> None:
        """An fsync of one of its files has failed. Whatever the reason, it is not tried again: the
        next one might say that all is well when it is not.
        """
        if self._logs.get((log.topic, log.partition)) is log:
            self.take_offline(self.directory_of(log), f"a sync failed: {error}")

    def take_offline(self, directory: DataDirectory, reason: str) -> None:
        """Stop serving what lies in it: its logs answer KAFKA_STORAGE_ERROR until a restart.

        Also to be called when a sync has failed on a thread.
        """
        if not directory.is_online:
            return
        _logger.error("log directory %s is offline: %s", directory.path, reason)
        directory.offline_reason = reason
        self.directories.remove(directory)
        self.offline[directory.path] = reason
        for key, log in list(self._logs.items()):
            if self._locations[key] is directory:
                log.take_offline(f"{directory.path}: {reason}")
        for found in self._not_open_in(directory):
            self._unreadable[found.key] = f"{directory.path}: {reason}"
            if self.on_abandoned is not None:
                self.on_abandoned(found)
        for key, future in list(self.futures.items()):
            if directory in (future.home, self._locations.get(key)):
                future.is_cancelled = True  # what lies there is looked at when it is online again
                del self.futures[key]
        directory.unlock()
        if self.on_offline is not None:
            self.on_offline(directory)

    # --- end

    def close(self, *, now_ms: int, broker_epoch: int = -1) -> None:
        """Sync and close every log, write the checkpoints, mark the stop as clean, unlock."""
        for directory in list(self.directories):
            try:
                if self._close_logs(directory, now_ms):
                    self._write_recovery_points(directory)
                    self._write_log_starts(directory)
                    self._write_high_watermarks(directory)
                    directory.mark_clean(broker_epoch)
            except OSError as error:
                _logger.error("log directory %s was not closed cleanly: %s", directory.path, error)
            finally:
                directory.unlock()
        self._logs.clear()

    def _close_logs(self, directory: DataDirectory, now_ms: int) -> bool:
        """Close every log in it, whatever happens to the others; whether all could be."""
        all_closed = not self._not_open_in(directory)  # else these are to be recovered yet
        for key, log in list(self._logs.items()):
            if self._locations[key] is directory:
                try:
                    log.close(now_ms)
                except ApiError as error:
                    _logger.error("%s was not closed cleanly: %s", log.name, error)
                    all_closed = False
        return all_closed
