"""Groups the objects that work on logs in the background: recovery, cleaning, moves."""

from dataclasses import dataclass

from .cleaning.log_cleaner import LogCleaner
from .log_mover import LogMover
from .log_recovery import LogRecovery


@dataclass(frozen=True, slots=True)
class LogMaintenance:
    """`close` ends all of it, so that the logs can be closed."""

    recovery: LogRecovery
    cleaner: LogCleaner
    mover: LogMover

    async def close(self) -> None:
        """Stop. The next start goes on with what is left."""
        self.mover.close()
        await self.recovery.close()
        await self.cleaner.close()
