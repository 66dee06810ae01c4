"""A disk that is nearly full takes no more records, while there is still room for what helps.

Deleting a topic writes to the metadata log, a consumer's commit to `__consumer_offsets`, retention
begins a new segment: on a disk that is full to the last byte nothing could be freed any more. So
below `odradek.min.free.bytes`, and after a write that found no space, Produce to the partitions of
that directory is refused; everything else goes on. When space is free again, so does Produce.

The refusal is KAFKA_STORAGE_ERROR: to every client it means "not now, look again", so a producer
keeps its records, and sends them until delivery.timeout.ms is over. (A fatal code would lose them;
NOT_ENOUGH_REPLICAS is retried too, but sends people to look for replicas.) Logs that could not be
recovered or made for want of space are tried again then.

Kafka has nothing of the kind: there a full disk ends the log directory, and with it the only node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from odradek.storage.directories.data_directory import DataDirectory
    from odradek.storage.files import Files
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

    from .disk_executor import DiskExecutor

logger = logging.getLogger("odradek.disk")

# A write that found no space is tried again when so much is free, whatever is configured.
LEAST_FREE_BYTES = 1 << 20


class DiskSpace:
    """Which log directories have too little free space, and why; `low` is empty in good times."""

    def __init__(
        self,
        log_manager: LogManager,
        files: Files,
        disk: DiskExecutor,
        min_free_bytes: Callable[[], int],
    ) -> None:
        self.low: dict[DataDirectory, str] = {}
        self.on_space: Callable[[DataDirectory], object] | None = None  # there is some again
        self._log_manager = log_manager
        self._files = files
        self._disk = disk
        self._min_free_bytes = min_free_bytes

    def check(self, log: PartitionLog) -> None:
        """May clients write to it? Raises KAFKA_STORAGE_ERROR."""
        reason = self.low.get(self._log_manager.directory_of(log))
        if reason is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    async def look(self) -> None:
        """Ask the file systems how much is free. A second apart is often enough."""
        for directory in list(self._log_manager.directories):
            try:
                free_bytes = await self._disk.run(self._files.free_bytes, directory.path)
            except OSError as error:
                self._log_manager.on_directory_error(directory, error)
            else:
                self._note(directory, free_bytes)

    def found_full(self, directory: DataDirectory) -> None:
        """A write there failed for lack of space."""
        if directory not in self.low:
            self._refuse(directory, f"{directory.path} is full: nothing is written until there is"
                         " space again")  # fmt: skip

    def _note(self, directory: DataDirectory, free_bytes: int) -> None:
        wanted = self._min_free_bytes()
        if directory in self.low:
            if free_bytes >= max(wanted, LEAST_FREE_BYTES):
                del self.low[directory]
                logger.info(
                    "%s has %d bytes free: records are taken again", directory.path, free_bytes
                )
                if self.on_space is not None:
                    self.on_space(directory)
        elif free_bytes < wanted:
            self._refuse(
                directory,
                f"{directory.path} has {free_bytes} bytes free, less than odradek.min.free.bytes"
                f" ({wanted}): no records are taken until there are more",
            )

    def _refuse(self, directory: DataDirectory, reason: str) -> None:
        self.low[directory] = reason
        logger.error("%s", reason)
