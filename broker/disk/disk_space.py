"""Refuses Produce to a nearly full disk, so that space is left for the operations that free space.

Deleting a topic writes to the metadata log, a consumer's commit to `__consumer_offsets`, and
retention starts a new segment. On a completely full disk none of them could free anything. So below
`odradek.min.free.bytes`, and after a write that found no space, Produce to the partitions of that
directory is refused and everything else goes on. When space is free again, Produce works again.
What a user's quota leaves is not in the free space that the file system reports. So Produce works
again only after as much as MIN_FREE_BYTES could be written, and removed again.

Logs that could not be opened, recovered or created because of a full disk or too many open files
are retried as soon as there are space and descriptors.

The error is KAFKA_STORAGE_ERROR, which every client retries after refreshing its metadata. So a
producer keeps its records and sends them until delivery.timeout.ms is over. A fatal error would
lose them. NOT_ENOUGH_REPLICAS is retried too, but would send operators to look for replicas.

Kafka has no such limit: there a full disk takes the log directory offline, and with it the only
node.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.data_directory import DataDirectory
from odradek.storage.disk_errors import is_full_disk
from odradek.storage.filenames import SPACE_CHECK
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager

from .disk_executor import DiskExecutor

logger = logging.getLogger("odradek.disk")

# A directory that refuses Produce takes it again when at least this much is free, whatever is
# configured.
MIN_FREE_BYTES = 1 << 20

# Postponed logs are retried only if more descriptors are free: else each try would be in vain.
SPARE_DESCRIPTORS = 16
DESCRIPTORS_OF_LOG = 2


class DiskSpace:
    """Which log directories have too little free space, and why; `low` is empty in good times.

    `on_room` is awaited while logs are postponed, with a directory that has enough space, and the
    number of logs for which there are descriptors.
    """

    def __init__(
        self,
        log_manager: LogManager,
        files: Files,
        disk: DiskExecutor,
        *,
        min_free_bytes: Callable[[], int],
        on_room: Callable[[DataDirectory, int], Awaitable[object]],
    ) -> None:
        self.low: dict[DataDirectory, str] = {}
        self._log_manager = log_manager
        self._files = files
        self._disk = disk
        self._min_free_bytes = min_free_bytes
        self._on_room = on_room

    def check(self, log: PartitionLog) -> None:
        """Check that clients may write to the log. Raises KAFKA_STORAGE_ERROR."""
        reason = self.low.get(self._log_manager.directory_of(log))
        if reason is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    async def check_directories(self) -> None:
        """Check the free space of each directory. Called once a second."""
        for directory in list(self._log_manager.directories):
            try:
                if directory in self.low:
                    free_bytes = await self._disk.run(
                        self._writable_bytes, directory.path, self._needed_bytes()
                    )
                else:
                    free_bytes = await self._disk.run(self._files.free_bytes, directory.path)
            except OSError as error:
                self._log_manager.on_directory_error(directory, error)
            else:
                self._note(directory, free_bytes)
                if self._log_manager.has_postponed and directory not in self.low:
                    await self._retry(directory)

    def _needed_bytes(self) -> int:
        """The free space with which a directory takes records again."""
        return max(self._min_free_bytes(), MIN_FREE_BYTES)

    def _writable_bytes(self, directory: Path, needed_bytes: int) -> int:
        """The free space of a directory; 0 if a file of MIN_FREE_BYTES does not fit in.

        No file is written if less space is free than is needed: what is left is for others.
        """
        free_bytes = self._files.free_bytes(directory)
        if free_bytes < needed_bytes:
            return free_bytes
        file = directory / SPACE_CHECK
        try:
            self._files.write(file, bytes(MIN_FREE_BYTES))
        except OSError as error:
            if is_full_disk(error):
                return 0
            raise
        finally:
            self._files.remove(file)
        return free_bytes

    async def _retry(self, directory: DataDirectory) -> None:
        free = await self._disk.run(self._files.free_descriptors)
        logs = (free - SPARE_DESCRIPTORS) // DESCRIPTORS_OF_LOG
        if logs > 0:
            await self._on_room(directory, logs)

    def note_full(self, directory: DataDirectory) -> None:
        """Refuse Produce to a directory where a write failed for lack of space."""
        if directory not in self.low:
            self._refuse(
                directory,
                f"{directory.path} is full: no records are accepted until there is space again",
            )

    def _note(self, directory: DataDirectory, free_bytes: int) -> None:
        wanted = self._min_free_bytes()
        if directory in self.low:
            if free_bytes >= self._needed_bytes():
                del self.low[directory]
                logger.info(
                    "%s has %d bytes free: records are accepted again", directory.path, free_bytes
                )
        elif free_bytes < wanted:
            self._refuse(
                directory,
                f"{directory.path} has {free_bytes} bytes free, less than odradek.min.free.bytes"
                f" ({wanted}): no records are accepted until there are more",
            )

    def _refuse(self, directory: DataDirectory, reason: str) -> None:
        self.low[directory] = reason
        logger.error("%s", reason)
