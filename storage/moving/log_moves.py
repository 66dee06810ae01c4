"""Moves of logs between log directories: start, promotion, and the state found at a restart.

The copy of a log is its future log; there is at most one. When it is complete, the old directory is
renamed to `-delete`, then the future directory gets the log's name: there are never two live ones.
The metadata records the new directory before that, so that Apache Kafka also promotes the future
log after a crash in between. A start may find for a partition:

    the log and a longer future in the metadata's        the future is the log
    directory
    the log and another future                           the copying continues
    only a future                                        it is the log if no directory is offline
    a future of a topic that does not exist              it is renamed to `-stray`
    two logs, one in the metadata's directory            that one is a future (LogManager)

Kafka: LogManager.replaceCurrentWithFutureLog, recoverAbandonedFutureLogs,
ReplicaManager.maybeAddLogDirFetchers. There a future in the metadata's directory wins even if it is
shorter.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import random_uuid
from odradek.storage.data_directory import DataDirectory
from odradek.storage.filenames import (
    MAX_NAME_LENGTH,
    DirectoryState,
    parse_partition_directory,
    partition_directory,
    renamed_directory,
)
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_partition import TopicPartition

from .future_log import FutureLog

_logger = logging.getLogger(__name__)


class KnownPartition(NamedTuple):
    """A partition in the metadata: its topic's id and its directory."""

    topic_id: bytes
    directory_id: bytes | None


class LogMoves:
    """Starts and completes moves. `manager.futures` holds the current ones."""

    def __init__(self, manager: LogManager, files: Files) -> None:
        self.manager = manager
        self._files = files

    # --- a move

    def begin(self, log: PartitionLog, home: DataDirectory) -> FutureLog:
        """Create an empty future log in another directory; the caller must `prepare` it.

        Raises ApiError: INVALID_TOPIC_EXCEPTION for a name that has no room for the suffix,
        KAFKA_STORAGE_ERROR.
        """
        name = future_name(*log.key)
        if self.manager.offline:
            # An offline directory may hold a future of this log.
            text = (
                f"{log.name} cannot be moved: a directory is offline: {self.manager.offline_text}"
            )
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        try:
            future = FutureLog(self._files, log, home, home.path / name)
        except OSError as error:
            self.manager.on_directory_error(home, error)
            text = f"{log.name} cannot be moved to {home.path}: {error}"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text) from error
        self.manager.futures[future.key] = future
        return future

    def promote(self, future: FutureLog) -> None:
        """Copy what is left and make the copy the log.

        Raises OSError, and KAFKA_STORAGE_ERROR if the old directory could not be renamed. Then the
        old directory stays the log.

        Waits for the disk only if the topic sets flush.messages or flush.ms.
        """
        log, manager = future.log, self.manager
        source = manager.directory_of(log)
        never = TopicConfig.flush_messages  # the default of both settings
        must_sync = log.config.flush_messages < never or log.config.flush_ms < never
        small_files = future.finish(sync=must_sync)
        live = future.home.path / partition_directory(*future.key)
        renamed = manager.delete_directory(source, log.directory, future.key)
        if renamed == log.directory:
            text = f"{log.directory} could not be renamed"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        try:
            self._files.rename(future.path, live)
        except OSError:
            try:
                self._files.rename(renamed, log.directory)
            except OSError as error:
                # Neither directory has the log's name. The copy is kept: the next start makes it
                # the log, because the metadata names its directory.
                manager.take_offline(source, f"{renamed} could not be renamed back: {error}")
            raise
        del manager.futures[future.key]
        log.use_copies_in(live, [live / path.name for path in small_files])
        manager.adopt(log, future.home)
        deleted = [live / name for name in future.deleted_files]
        manager.deletions.add(deleted, log.config.file_delete_delay_ms)

    def sync_names(self, directory: DataDirectory) -> None:
        """Sync the renames in a directory, on any thread. Raises OSError."""
        self._files.fsync_directory(directory.path)

    # --- after a restart

    def handle_found_futures(
        self,
        known: Callable[[str, int], KnownPartition | None],
        config_of: Callable[[str], TopicConfig],
        now_ms: int,
    ) -> None:
        """Handle every `-future` directory found at start, see the module."""
        found, self.manager.found_futures = self.manager.found_futures, []
        for home, path in found:
            parsed = parse_partition_directory(path.name)
            key = parsed.key
            partition = known(*key)
            try:
                if partition is None or self.manager.topic_id_in(path) not in (
                    None,
                    partition.topic_id,
                ):
                    self._make_stray(home, path, key)
                elif key in self.manager.futures:
                    _logger.warning("%s: a second future log is deleted", path)
                    self.manager.delete_directory(home, path, key)
                else:
                    self._handle(home, path, key, partition, config_of(parsed.topic), now_ms)
            except OSError as error:
                self.manager.on_directory_error(home, error)
            except CorruptRecordError as error:
                _logger.error("%s is left alone: %s", path, error)

    def _handle(
        self,
        home: DataDirectory,
        path: Path,
        key: TopicPartition,
        partition: KnownPartition,
        config: TopicConfig,
        now_ms: int,
    ) -> None:
        manager = self.manager
        log = manager.find(*key)
        if log is None:
            if any(found.key == key for found in manager.not_open()):
                _logger.warning("%s is left alone: its log cannot be read", path)
            elif manager.offline and partition.directory_id != home.directory_id:
                _logger.warning("%s is left alone: its log may be in an offline directory", path)
            else:
                # The name first: then no other log is created if this one cannot be opened.
                self._name_live(home, path, key)
                manager.open_former_future(home, key, config, now_ms=now_ms)
        elif manager.directory_of(log) is home:
            manager.delete_directory(home, path, key)
        elif not self._promote_if_longer(home, path, log, partition, now_ms):
            copy = FutureLog(self._files, log, home, path)
            copy.prepare()
            manager.futures[key] = copy

    def _promote_if_longer(
        self,
        home: DataDirectory,
        path: Path,
        log: PartitionLog,
        partition: KnownPartition,
        now_ms: int,
    ) -> bool:
        """Promote the future if it is longer than the log; returns whether it did.

        If they are of one length, the move goes on: the copy may lack what is known besides.
        """
        if partition.directory_id != home.directory_id:
            return False
        future = self.manager.load_future(home, path, log.key, log.config, now_ms=now_ms)
        if future.log_end_offset <= log.log_end_offset:
            future.take_offline("it is copied again")
            return False
        future.increment_log_start_offset(log.log_start_offset)
        with suppress(ApiError):  # its directory is offline now, and that was logged
            self.manager.delete([log.key])
        future.move_to(self._name_live(home, path, log.key))
        self.manager.adopt(future, home)
        future.sync_recovered()
        return True

    def _name_live(self, home: DataDirectory, path: Path, key: TopicPartition) -> Path:
        """Give a future the name of the log; return its path. Raises OSError."""
        live = home.path / partition_directory(*key)
        self._files.rename(path, live)
        _logger.info("%s is now the log of its partition, as %s", path, live)
        return live

    def _make_stray(self, home: DataDirectory, path: Path, key: TopicPartition) -> None:
        target = home.path / renamed_directory(*key, DirectoryState.STRAY, random_uuid().hex())
        _logger.warning("%s belongs to no topic: it is renamed to %s", path, target)
        self._files.rename(path, target)
        self.manager.strays.append(target)


def future_name(topic: str, partition: int) -> str:
    """A new name for a `-future` directory. Raises INVALID_TOPIC_EXCEPTION if it is too long."""
    unique_id = random_uuid().hex()
    name = renamed_directory(topic, partition, DirectoryState.FUTURE, unique_id)
    if len(name) > MAX_NAME_LENGTH:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
    return name
