"""All logs of this node, in all its log directories. Kafka: LogManager.

    manager = LogManager.open(config, files=Files(), timer_ms=timer)
    metadata = manager.open_metadata_log(topic_id, topic_config, now_ms=now)
    manager.load_logs(config_of_topic, now_ms=now)          configs are in the metadata log
    ... get, create, delete; periodic tasks ...
    manager.close(now_ms=now, broker_epoch=epoch)

If a directory fails, only its logs go offline. At least one directory must be online. Logs that
were open in a failed directory answer KAFKA_STORAGE_ERROR, and so does creating a log that may
exist there.

The methods that write checkpoint files copy the offsets first, and may be called on any thread. The
paths that `deletions` returns may also be removed on any thread.

The broker uses only this class; its parts are in directories/.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import random_uuid
from odradek.storage.data_directory import (
    DataDirectory,
    DirectoryError,
    Inspection,
    OpenedDirectories,
    open_directories,
)
from odradek.storage.directories.checkpoint_files import CheckpointFiles
from odradek.storage.directories.found_log import FoundLog, divide, stored_bytes
from odradek.storage.directories.log_creation import CreatedLog, LogCreation, NewLog
from odradek.storage.directories.log_opening import LogOpening
from odradek.storage.directories.log_removal import LogRemoval, LogRemover
from odradek.storage.directories.log_search import search
from odradek.storage.directories.log_table import LogTable
from odradek.storage.directories.offset_checkpoints import OffsetCheckpoints
from odradek.storage.disk_errors import is_full_disk, is_transient
from odradek.storage.recovering.producer_recovery import RecentBatches
from odradek.storage.recovering.task import RecoveryTask
from odradek.storage.recovering.unflushed import should_report

from .deletions import Deletions
from .filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    DirectoryState,
    parse_partition_directory,
    renamed_directory,
)
from .files import Files
from .log import PartitionLog
from .topic_names import CLUSTER_METADATA_TOPIC
from .topic_partition import TopicPartition

_logger = logging.getLogger(__name__)

# Ids of directories that begin so name none: they mean unassigned, lost or migrating. Kafka:
# DirectoryId.reserved.
RESERVED_PREFIX = bytes(15)

METADATA_LOG = TopicPartition(CLUSTER_METADATA_TOPIC, 0)

# If more files of inactive segments than this may be open, all of them are closed.
MAX_INACTIVE_FILES_OPEN = 2_000
LOGS_PER_RELEASE = 500  # whose files are closed in one turn
# The number of threads that close logs at the stop. Each log needs some fsyncs, which wait for the
# disk. A file system writes those of several threads together.
CLOSING_THREADS = 8


class LogManager:
    """The logs by topic and partition; `directories` online, and `offline` ones with the reason."""

    def __init__(
        self,
        config: BrokerConfig,
        files: Files,
        opened: OpenedDirectories,
        timer_ms: Callable[[], int],
        report: Callable[[str], None] = _logger.info,
    ) -> None:
        """`open` makes the manager. `timer_ms` is a clock that never jumps."""
        self.files = files
        self.directories = opened.online
        self.offline = opened.offline
        self.cluster_id = opened.online[0].cluster_id
        self.checkpoint_files = CheckpointFiles(files)
        self.deletions = Deletions(timer_ms)
        # The `-future` directories found at start, each with its log directory. LogMoves takes
        # them.
        self.found_futures: list[tuple[DataDirectory, Path]] = []
        # Callbacks, which the broker sets: after a roll; when flush.messages asks for a sync; when
        # a directory goes offline, or is full (these two on any thread); and when a log that waits
        # for recovery is deleted or goes offline, so that its recovery must be stopped at once.
        self.on_roll: Callable[[PartitionLog], object] = _ignore
        self.on_flush_due: Callable[[PartitionLog], None] = _ignore
        self.on_offline: Callable[[DataDirectory], object] = _ignore
        self.on_full: Callable[[DataDirectory], object] = _ignore
        self.on_abandoned: Callable[[FoundLog], None] = _ignore
        # Called by the thread that removes a log with its path: returns when no other opens it.
        self.wait_for_opening: Callable[[Path], None] = _ignore
        self._to_release: list[PartitionLog] = []  # see release_inactive_segments
        self._going_offline = Lock()  # threads that close logs may find the same disk error
        self._config = config
        self._report = report
        self._table = LogTable()
        self._opening = LogOpening(config, files, self.deletions, report)
        self._checkpoints = OffsetCheckpoints(self.checkpoint_files, self._table)
        self._remover = LogRemover(
            files,
            self._table,
            self.deletions,
            write_checkpoints=self._write_checkpoints,
            failed=self.on_directory_error,
            abandoned=lambda found: self.on_abandoned(found),
            wait_for_opening=lambda path: self.wait_for_opening(path),
        )
        self.futures = self._table.futures  # logs that are being moved, see moving/
        self.strays = self._remover.strays

    @classmethod
    def open(
        cls,
        config: BrokerConfig,
        *,
        files: Files,
        timer_ms: Callable[[], int],
        inspect: Inspection = lambda _: None,
        report: Callable[[str], None] = _logger.info,
    ) -> "LogManager":
        """Lock and check the log directories, and format the empty ones; no log is read yet.

        `inspect` is called before anything is changed. `report` is called for progress of recovery.
        Raises DirectoryError, and what `inspect` raises.
        """
        paths = [*config.data_directories, config.metadata_directory]
        opened = open_directories(
            files,
            paths,
            node_id=config.node_id,
            cluster_id=config.odradek_cluster_id,
            inspect=inspect,
        )
        for path, reason in opened.offline.items():
            _logger.error("log directory %s is offline: %s", path, reason)
        return cls(config, files, opened, timer_ms, report)

    # --- lookups

    def logs(self) -> list[PartitionLog]:
        """All open logs except the metadata log, in no order."""
        return [log for log in self._table.open.values() if log.topic != CLUSTER_METADATA_TOPIC]

    def open_keys(self) -> list[TopicPartition]:
        """The partitions of `logs`."""
        return [key for key in self._table.locations if key.topic != CLUSTER_METADATA_TOPIC]

    def get(self, topic: str, partition: int) -> PartitionLog:
        """The log of a partition.

        Raises ApiError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR. While the log is being
        recovered it raises NOT_LEADER_OR_FOLLOWER, as Kafka answers for a partition that it has not
        opened yet: clients then refresh their metadata and retry.
        """
        return self._table.get(topic, partition)

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        """The open log of a partition, or None."""
        return self._table.open.get((topic, partition))

    def of_topic(self, topic: str) -> Mapping[int, PartitionLog]:
        """The open logs of a topic, by partition."""
        return self._table.by_topic.get(topic, {})

    @property
    def data_directories(self) -> list[DataDirectory]:
        """The online directories for partitions: those of log.dirs.

        A directory that is configured for the metadata log only is included if it has partitions.
        """
        wanted = {path.absolute() for path in self._config.data_directories}
        return [each for each in self.directories if each.path in wanted or self._has_logs(each)]

    def _has_logs(self, directory: DataDirectory) -> bool:
        has_metadata_log = self._table.locations.get(METADATA_LOG) is directory
        has_open = self._table.count_in[directory] > has_metadata_log
        return has_open or bool(self._table.not_open_in(directory))

    @property
    def offline_text(self) -> str:
        """The offline directories and their reasons, for error messages."""
        return "; ".join(f"{path}: {reason}" for path, reason in self.offline.items())

    def directory_at(self, path: Path) -> DataDirectory | None:
        """The log directory with this path, if it is online."""
        return next((each for each in self.directories if each.path == path), None)

    def directory_of(self, log: PartitionLog) -> DataDirectory:
        """The log directory of an open log."""
        return self._table.locations[log.key]

    def location(self, key: TopicPartition) -> DataDirectory | None:
        """The log directory of the open log of a partition, or None."""
        return self._table.locations.get(key)

    def home_of(self, key: TopicPartition) -> DataDirectory | None:
        """The log directory of a partition's log, open or not; None if there is no such log."""
        not_open = self._table.not_open.get(key)
        return not_open.directory if not_open is not None else self._table.locations.get(key)

    def is_moving(self, key: TopicPartition) -> bool:
        """Whether the log has a future directory: found at start, or being filled now."""
        names = (parse_partition_directory(path.name) for _, path in self.found_futures)
        return key in self.futures or any(name.key == key for name in names)

    def not_open(self) -> list[FoundLog]:
        """Logs that were found and are not served: they wait for recovery, or cannot be read."""
        return list(self._table.not_open.values())

    def waiting(self) -> list[FoundLog]:
        """Logs that wait for their recovery, the smallest first."""
        return self._table.waiting()

    def is_waiting(self, found: FoundLog) -> bool:
        """Whether this log, as it was found, waits for its recovery."""
        return self._table.is_waiting(found)

    # --- start

    def open_metadata_log(
        self, topic_id: bytes, config: TopicConfig, *, now_ms: int
    ) -> PartitionLog:
        """Load or create __cluster_metadata-0. Raises OSError, ApiError, DirectoryError."""
        wanted = self._config.metadata_directory.absolute()
        home = self.directory_at(wanted)
        if home is None:
            raise DirectoryError(f"the metadata directory is offline: {self.offline[wanted]}")
        # Kafka stores no recovery point of this log and reads all of it at every start.
        log = self._opening.open_metadata_log(home, config, now_ms)
        self.adopt(log, home)
        log.assign_topic_id(topic_id)
        return log

    @contextmanager
    def restoring_marks(self, now_ms: int) -> Iterator[None]:
        """Put the marks of clean stops back if an error is raised before `load_logs` opens a log.

        The next start must find what this one has found: after an unclean stop it would recover all
        logs, and take a partition in two directories for a move that a crash has interrupted.
        """
        try:
            yield
        except Exception:
            if not self.logs():
                self._restore_marks(now_ms)
            raise

    def _restore_marks(self, now_ms: int) -> None:
        for directory in list(self.directories):
            try:
                if self._close_logs(directory, now_ms):  # only the metadata log may be open
                    directory.restore_mark()
            except OSError as error:
                _logger.error("%s has no mark of a clean stop any more: %s", directory.path, error)

    def load_logs(
        self,
        config_of: Callable[[str], TopicConfig],
        *,
        now_ms: int,
        may_wait: Callable[[FoundLog], bool] = lambda _: False,
        assigned: Callable[[TopicPartition], bytes | None] = lambda _: None,
        is_known: Callable[[TopicPartition, bytes | None], bool] = lambda *_: True,
    ) -> None:
        """Open every log of every directory, with recovery if the last stop was not clean.

        Large logs for which `may_wait` returns True are not opened; `waiting` returns them.
        `assigned` returns the id of the log directory that the metadata names for a partition.
        `is_known` returns whether the metadata has the partition, in a topic with the given id.
        Raises DirectoryError if a partition is in two directories, or if none is left online.
        """
        found = self._without_strays(self._find_logs(), is_known)
        found = self._without_copies(found, assigned)
        at_once, waiting = divide(found, may_wait)
        self._table.not_open.update({log.key: log for log in waiting})
        unflushed_count = sum(1 for log in at_once if log.unflushed_bytes)
        self._report_recovery(at_once, unflushed_count)
        done = 0
        for log in at_once:
            if log.unflushed_bytes:
                if should_report(done, unflushed_count):
                    self._report(f"recovering {log.name}, {done} of {unflushed_count} logs done")
                done += 1
            if log.directory.is_online:
                self.open_found(log, config_of(log.topic), now_ms=now_ms)
        if not self.directories:
            raise DirectoryError(f"no log directory is left: {self.offline_text}")

    def _without_strays(
        self,
        found: Sequence[FoundLog],
        is_known: Callable[[TopicPartition, bytes | None], bool],
    ) -> list[FoundLog]:
        """If a partition has two logs, rename those of former topics to `-stray`; return the rest.

        A directory may have been offline while a topic was deleted and created again. The strays of
        other partitions are put aside after they are opened, see broker/startup/startup.py.
        """
        count = Counter(log.key for log in found)
        kept = []
        for log in found:
            try:
                if count[log.key] == 1 or is_known(log.key, self.topic_id_in(log.path)):
                    kept.append(log)
                else:
                    self._remover.put_aside(log)
            except OSError as error:
                self.on_directory_error(log.directory, error)
                if log.directory.is_online:
                    kept.append(log)
        return kept

    def _without_copies(
        self, found: Sequence[FoundLog], assigned: Callable[[TopicPartition], bytes | None]
    ) -> list[FoundLog]:
        """If a partition has two logs, rename its copy to `-future` again. Raises DirectoryError.

        At the end of a move the old directory is renamed to `-delete`, and the copy gets the log's
        name. A power cut may lose the first rename and keep the second. The copy is in the
        directory that the metadata names. Logs in directories that are offline are left out.
        """
        logs: dict[TopicPartition, FoundLog] = {}
        for log in found:
            if not log.directory.is_online:
                continue
            other = logs.get(log.key)
            if other is None or not other.directory.is_online:
                logs[log.key] = log
                continue
            by_directory = {each.directory.directory_id: each for each in (other, log)}
            copy = by_directory.pop(assigned(log.key) or b"", None)
            if copy is None or copy.directory.had_clean_shutdown:
                raise DirectoryError(f"{log.name} is in {other.path} and in {log.path}: remove one")
            [logs[log.key]] = by_directory.values()
            _logger.warning("%s: %s is a copy, its move goes on", log.name, copy.path)
            name = renamed_directory(*copy.key, DirectoryState.FUTURE, random_uuid().hex())
            path = copy.directory.path / name
            try:
                self.files.rename(copy.path, path)
            except OSError as error:
                self.take_offline(copy.directory, f"{copy.path} could not be renamed: {error}")
            else:
                self.found_futures.append((copy.directory, path))
        return [log for log in logs.values() if log.directory.is_online]

    def _report_recovery(self, logs: Sequence[FoundLog], unflushed_count: int) -> None:
        """Report how many logs are recovered, and how many of these have bytes to check."""
        count = sum(1 for log in logs if not log.directory.had_clean_shutdown)
        if count:
            size_bytes = sum(log.unflushed_bytes for log in logs)
            self._report(
                f"recovering {count} logs after an unclean stop: "
                f"{unflushed_count} have {size_bytes} bytes to check"
            )

    def _find_logs(self) -> list[FoundLog]:
        """Find the logs to load. Deleted ones are scheduled for removal, strays are kept."""
        found: list[FoundLog] = []
        for directory in list(self.directories):
            try:
                contents = search(self.files, directory)
            except OSError as error:
                self.take_offline(directory, f"searching its logs failed: {error}")
                continue
            found += contents.logs
            self.found_futures += [(directory, path) for path in contents.futures]
            self.deletions.add(contents.deleted, self._delete_delay_ms)
            self.strays += contents.strays
        return found

    def open_found(
        self,
        found: FoundLog,
        config: TopicConfig,
        *,
        now_ms: int,
        recovered: RecentBatches | None = None,
    ) -> PartitionLog | None:
        """Open a log that was found. `recovered`: the result of another process that recovered it.

        Returns None after an error, see `give_up`.
        """
        return self.serve_found(found, self.load_found(found, config, now_ms, recovered))

    def load_found(
        self,
        found: FoundLog,
        config: TopicConfig,
        now_ms: int,
        recovered: RecentBatches | None = None,
    ) -> PartitionLog | OSError | CorruptRecordError:
        """Read a log that was found, on any thread: the first half of `open_found`."""
        try:
            return self._opening.open_found(found, config, now_ms, recovered)
        except (OSError, CorruptRecordError) as error:
            return error

    def serve_found(
        self, found: FoundLog, loaded: PartitionLog | OSError | CorruptRecordError
    ) -> PartitionLog | None:
        """Register the log that `load_found` returned, or give it up: the second half."""
        if not isinstance(loaded, PartitionLog):
            self.give_up(found, loaded)
            return None
        self.adopt(loaded, found.directory)
        loaded.sync_recovered()
        return loaded

    def adopt(self, log: PartitionLog, directory: DataDirectory) -> None:
        """Register an open log, which is in that directory, as the log of its partition."""
        # The setting may have changed while it was loaded.
        log.producers.expiration_ms = self._config.producer_id_expiration_ms
        log.on_disk_error = self._on_disk_error
        log.on_roll.add(self._rolled)  # the same method each time: a moved log is adopted again
        if log.topic != CLUSTER_METADATA_TOPIC:  # it is synced before each response anyway
            log.on_flush_due = lambda due: self.on_flush_due(due)
        self._table.put(log, directory)

    def load_future(
        self,
        directory: DataDirectory,
        path: Path,
        key: TopicPartition,
        config: TopicConfig,
        *,
        now_ms: int,
    ) -> PartitionLog:
        """Open the log in a `-future` directory, with recovery if needed; see also `adopt`."""
        return self._opening.open_future(directory, path, key, config, now_ms)

    def open_former_future(
        self, directory: DataDirectory, key: TopicPartition, config: TopicConfig, *, now_ms: int
    ) -> None:
        """Open a log after its `-future` directory was renamed to the log's name.

        An error is not raised, see `give_up`.
        """
        found = FoundLog(directory=directory, topic=key.topic, partition=key.partition)
        try:
            log = self.load_future(directory, found.path, key, config, now_ms=now_ms)
        except (OSError, CorruptRecordError) as error:
            self.give_up(found, error)
        else:
            self.adopt(log, directory)
            log.sync_recovered()

    # --- logs that are not open

    def give_up(self, found: FoundLog, error: Exception) -> None:
        """Record that a log cannot be opened or recovered: it answers KAFKA_STORAGE_ERROR."""
        _logger.error("%s is not served: %s", found.name, error)
        self._table.give_up(found, f"{found.name}: {error}")
        if isinstance(error, OSError):
            self._table.postpone_after(found.key, found.directory, error)
            self.on_directory_error(found.directory, error)

    @property
    def has_postponed(self) -> bool:
        """Whether logs lack disk space or descriptors to be opened, recovered or created."""
        return bool(self._table.postponed)

    def take_postponed(
        self, directory: DataDirectory, at_most: int
    ) -> tuple[list[FoundLog], list[TopicPartition]]:
        """Take up to `at_most` postponed logs of a directory, to try them again.

        Call it when the directory has space and there are descriptors. Returns the logs that are
        now `waiting` for recovery again, and the partitions whose logs are still to be created.
        """
        return self._table.take_postponed(directory, at_most)

    def stored_bytes(self, found: FoundLog) -> int:
        """The size of a log that is not open. Another process may be changing its files."""
        return stored_bytes(self.files, found.path)

    def task_of(self, found: FoundLog, config: TopicConfig, now_ms: int) -> RecoveryTask:
        """The task for another process to recover the log."""
        return self._opening.task_of(found, config, now_ms)

    def topic_id_in(self, path: Path) -> bytes | None:
        """The topic id in partition.metadata in a log's directory, or None."""
        return self._opening.topic_id_in(path)

    # --- creating and deleting logs

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
        """Return the log of a partition, created if it does not exist.

        It is created in the directory with `directory_id` if that is online, else in the one with
        the fewest logs. `is_new`: the partition has never had a log. The log of another partition
        is not created while it may be in a directory that is not online.

        Raises ApiError: INCONSISTENT_TOPIC_ID, KAFKA_STORAGE_ERROR, and NOT_LEADER_OR_FOLLOWER
        while the log is being recovered.
        """
        key = TopicPartition(topic, partition)
        log = self._table.open.get(key)
        if log is not None:
            log.assign_topic_id(topic_id)
            log.become_leader(max(leader_epoch, log.leader_epoch))
            return log
        if key not in self._table.not_open:  # else `get` raises the reason
            new = NewLog(topic, partition, topic_id, config, leader_epoch, directory_id)
            creation = self.begin_creation([new], now_ms=now_ms, are_new=is_new)
            creation.run()
            creation.finish()
        return self.get(topic, partition)

    def begin_creation(
        self, wanted: Iterable[NewLog], *, now_ms: int, are_new: bool = True
    ) -> LogCreation:
        """Like `create`, for several partitions; the caller runs and finishes the creation.

        Partitions that have a log are skipped. `get` raises the error of one that is not created.
        """
        placed = []
        placed_in: Counter[DataDirectory] = Counter()
        for new in wanted:
            if new.key in self._table:
                continue
            try:
                home = self._choose_directory(new.key, new.directory_id, placed_in, is_new=are_new)
            except ApiError as error:
                self._table.unreadable[new.key] = error.message
                continue
            placed_in[home] += 1
            placed.append((new, home))
        return LogCreation(
            self.files, self._opening, self._checkpoints, placed, now_ms, self._finish_creation
        )

    def _finish_creation(self, created: CreatedLog) -> None:
        key, home, log = created.new.key, created.home, created.log
        if isinstance(log, PartitionLog) and home.is_online:
            self.adopt(log, home)
            return
        why = home.offline_reason if isinstance(log, PartitionLog) else log
        if isinstance(log, OSError):
            self._table.postpone_after(key, home, log)
            self.on_directory_error(home, log)
        self._table.unreadable[key] = f"{key[0]}-{key[1]} could not be created: {why}"

    def may_be_offline(self, directory_id: bytes | None) -> bool:
        """Whether a log that was not found may be in a directory that is not online.

        `directory_id` is the directory that the metadata names for it. None, or an id with
        RESERVED_PREFIX: the metadata names none.
        """
        if any(each.directory_id == directory_id for each in self.data_directories):
            return False
        is_named = directory_id is not None and not directory_id.startswith(RESERVED_PREFIX)
        return bool(self.offline) or is_named

    def _choose_directory(
        self,
        key: TopicPartition,
        directory_id: bytes | None,
        placed_in: Mapping[DataDirectory, int],
        *,
        is_new: bool,
    ) -> DataDirectory:
        """The log directory to create a log in. Raises ApiError KAFKA_STORAGE_ERROR.

        `placed_in`: how many logs are to be created in each one, and are not in the table yet.
        """
        data_directories = self.data_directories
        wanted = next(
            (each for each in data_directories if each.directory_id == directory_id), None
        )
        if wanted is not None:
            return wanted
        if not is_new and self.may_be_offline(directory_id):
            where = f"an offline directory: {self.offline_text}"
            if not self.offline:
                where = "a directory that is not in log.dirs any more: add it, or delete the topic"
            text = f"{key[0]}-{key[1]} may be in {where}"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        if not data_directories:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no log directory is online")
        return min(data_directories, key=lambda each: self._table.count_in[each] + placed_in[each])

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        """Rename their directories to `-delete`; they are removed after file.delete.delay.ms.

        Partitions without a log are ignored. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        self._remove(partitions, DirectoryState.DELETE)

    def move_aside(self, partitions: Iterable[TopicPartition]) -> None:
        """Rename the directories of logs that the metadata does not have to `-stray`.

        They are kept. Partitions without a log are ignored. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        self._remove(partitions, DirectoryState.STRAY)

    def _remove(self, partitions: Iterable[TopicPartition], state: DirectoryState) -> None:
        removal = self._remover.begin(partitions, state, self._delete_delay_ms)
        removal.run()
        removal.finish()

    def begin_deletion(self, partitions: Iterable[TopicPartition]) -> LogRemoval:
        """Like `delete`, but the caller runs and finishes it. The logs are not served any more."""
        return self._remover.begin(partitions, DirectoryState.DELETE, self._delete_delay_ms)

    def drop_future(self, key: TopicPartition) -> None:
        """Cancel the move of a log, if there is one, and delete the copy."""
        self._remover.drop_future(key, self._delete_delay_ms)

    def delete_directory(self, home: DataDirectory, path: Path, key: TopicPartition) -> Path:
        """Rename a log's directory to `-delete`, to be removed later. Returns its new path.

        After an OSError, which is not raised, it returns the old path. `home` then goes offline,
        unless the error is transient.
        """
        return self._remover.delete_directory(home, path, key, self._delete_delay_ms)

    @property
    def _delete_delay_ms(self) -> int:
        """The time after which deleted files are removed: file.delete.delay.ms of the broker."""
        return self._config.log_segment_delete_delay_ms

    # --- periodic tasks

    def update_config(self, config: BrokerConfig) -> None:
        """Apply new broker settings, except those that topics inherit: the caller sets these."""
        before, self._config = self._config, config
        self._opening.config = config
        if config.producer_id_expiration_ms == before.producer_id_expiration_ms:
            return
        futures = (future.log for future in self.futures.values())
        for log in (*self._table.open.values(), *futures):
            log.producers.expiration_ms = config.producer_id_expiration_ms

    def logs_to_flush(self, now_ms: int) -> list[PartitionLog]:
        """List the online logs that were last synced at least flush.ms ago.

        `now_ms` is a time of a clock that never jumps, the one of PartitionLog.mark_flushed.
        """
        return [
            log
            for log in self.logs()
            if log.is_online and now_ms - log.last_flush_ms >= log.config.flush_ms
        ]

    def release_inactive_segments(self) -> bool:
        """Close the files of all inactive segments if too many of them may be open.

        Returns whether logs are left for the next call. The next read of a segment opens its files
        again. Called at intervals, and after each roll: by timestamps, a client can force many at
        once.
        """
        if not self._to_release:
            if self.files.opened_by_segments <= MAX_INACTIVE_FILES_OPEN:
                return False
            self.files.opened_by_segments = 0
            self._to_release = list(self._table.open.values())
        for log in self._to_release[-LOGS_PER_RELEASE:]:
            for segment in log.segments.inactive:
                segment.release_files()
        del self._to_release[-LOGS_PER_RELEASE:]
        return bool(self._to_release)

    def write_recovery_points(self) -> None:
        """Write recovery-point-offset-checkpoint (log.flush.offset.checkpoint.interval.ms)."""
        self._write_checkpoint(RECOVERY_POINT_CHECKPOINT)

    def write_log_starts(self) -> None:
        """Write log-start-offset-checkpoint (log.flush.start.offset.checkpoint.interval.ms)."""
        self._write_checkpoint(LOG_START_OFFSET_CHECKPOINT)

    def write_high_watermarks(self) -> None:
        """Write replication-offset-checkpoint (replica.high.watermark.checkpoint.interval.ms)."""
        self._write_checkpoint(REPLICATION_OFFSET_CHECKPOINT)

    def _write_checkpoint(self, name: str) -> None:
        for directory in list(self.directories):
            try:
                self._checkpoints.write(directory, name)
            except OSError as error:
                self.on_directory_error(directory, error)

    def _write_checkpoints(self, directory: DataDirectory) -> None:
        try:
            self._checkpoints.write_all(directory)
        except OSError as error:
            _logger.error("%s: a checkpoint was not written: %s", directory.path, error)
            self.on_directory_error(directory, error)

    def _rolled(self, log: PartitionLog) -> None:
        self.files.opened_by_segments += 1  # the .log file of the segment before
        self.release_inactive_segments()
        self.on_roll(log)

    # --- disk errors

    def _on_disk_error(self, log: PartitionLog, error: OSError) -> None:
        directory = self._table.locations.get(log.key)
        if directory is not None:
            self.on_directory_error(directory, error)

    def on_directory_error(self, directory: DataDirectory, error: OSError) -> None:
        """Take a directory offline after an error there, unless the error is transient."""
        if not is_transient(error):
            self.take_offline(directory, str(error))
        elif is_full_disk(error):
            self.on_full(directory)

    def sync_failed(self, directory: DataDirectory, error: OSError) -> None:
        """Take a directory offline because an fsync of a file there failed.

        It is never tried again: a second fsync may succeed although the data was lost.
        """
        self.take_offline(directory, f"a sync failed: {error}")

    def take_offline(self, directory: DataDirectory, reason: str) -> None:
        """Stop serving a directory: its logs answer KAFKA_STORAGE_ERROR until a restart."""
        with self._going_offline:
            if not directory.is_online:
                return
            directory.offline_reason = reason
        _logger.error("log directory %s is offline: %s", directory.path, reason)
        self.directories.remove(directory)
        self.offline[directory.path] = reason
        for found in self._table.lose(directory, f"{directory.path}: {reason}"):
            self.on_abandoned(found)
        directory.unlock()
        self.on_offline(directory)

    # --- closing

    def close(self, *, now_ms: int, broker_epoch: int = -1) -> None:
        """Sync and close every log, write the checkpoints, mark the stop as clean, and unlock."""
        for directory in list(self.directories):
            try:
                if self._close_logs(directory, now_ms):
                    self._checkpoints.write_all(directory)
                    directory.mark_clean(broker_epoch)
            except OSError as error:
                _logger.error("log directory %s was not closed cleanly: %s", directory.path, error)
            finally:
                directory.unlock()
        self._table.close()

    def _close_logs(self, directory: DataDirectory, now_ms: int) -> bool:
        """Close every log in it, even if some fail; return whether all were closed cleanly."""
        # Logs that are not open still have to be recovered.
        all_closed = not (directory.has_lost_log or self._table.not_open_in(directory))
        with ThreadPoolExecutor(CLOSING_THREADS) as pool:
            closed = pool.map(partial(_close_log, now_ms=now_ms), self._table.open_in(directory))
            return all(list(closed)) and all_closed


def _close_log(log: PartitionLog, now_ms: int) -> bool:
    """Close a log, and return whether it was closed cleanly."""
    if not log.is_online:  # its state is unknown
        return False
    try:
        log.close(now_ms)
    except ApiError as error:
        _logger.error("%s was not closed cleanly: %s", log.name, error)
        return False
    return True


def _ignore(_: object) -> None:
    """The callbacks that nobody has set."""
