"""Groups the objects that work on logs in the background: recovery, cleaning, moves."""

from dataclasses import dataclass

from odradek.storage.log import PartitionLog

from .cleaning.log_cleaner import LogCleaner
from .log_mover import LogMover
from .log_recovery import LogRecovery


@dataclass(frozen=True, slots=True)
class LogMaintenance:
    """`close` ends all of it, so that the logs can be closed."""

    recovery: LogRecovery
    cleaner: LogCleaner
    mover: LogMover

    def truncate(self, log: PartitionLog, offset: int, now_ms: int) -> None:
        """Truncate a log, which may be cleaned or moved now. Raises KAFKA_STORAGE_ERROR.

        Kafka: LogManager.truncateTo.
        """
        if offset < log.log_end_offset:
            self.mover.give_up(log.key, "it is truncated")
            log.truncate_to(offset, now_ms)
            self.cleaner.log_truncated(log)

    async def close(self) -> None:
        """Stop. The next start continues with what is left."""
        self.mover.close()
        await self.recovery.close()
        await self.cleaner.close()
