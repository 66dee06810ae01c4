"""What the log cleaner keeps in mind of its rounds: how they ended, and which logs must wait.

    a batch that cannot be told from the next       the log is set aside until a restart
    the process crashed or fell silent              set aside
    a file is missing                               set aside
    the disk is full, memory or files are short     tried again at the next regular look
    no process can be started                       tried again
    another error of the disk                       its directory goes offline

Kafka: LogCleanerManager.uncleanablePartitions; there everything but an IOException sets aside, and
every IOException costs the directory.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .cleaner_status import FinishedRound

if TYPE_CHECKING:
    from odradek.config.broker_config import BrokerConfig
    from odradek.storage.checkpoints import TopicPartition
    from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

logger = logging.getLogger("odradek.cleaner")

_FULL_DISK = {errno.ENOSPC, errno.EDQUOT}
_PASSING = _FULL_DISK | {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class CleanerBooks:
    """`uncleanable`: why a log was set aside; `last_error` and `last_round` of any log."""

    def __init__(
        self,
        manager: LogManager,
        checkpoints: CleanerCheckpoints,
        config: Callable[[], BrokerConfig],
        now_ms: Callable[[], int],
    ) -> None:
        self.uncleanable: dict[TopicPartition, str] = {}
        self.last_error: str | None = None
        self.last_round: FinishedRound | None = None
        self._manager = manager
        self._checkpoints = checkpoints
        self._config = config
        self._now_ms = now_ms
        self._not_before_ms: dict[TopicPartition, int] = {}

    def must_wait(self, key: TopicPartition) -> bool:
        """Whether no round of this log may begin now."""
        return key in self.uncleanable or self._now_ms() < self._not_before_ms.get(key, 0)

    def set_aside(self, log: PartitionLog, reason: str) -> None:
        """It is not cleaned until a restart; the others go on."""
        self.last_error = f"{log.name} is not cleaned until a restart: {reason}"
        self.uncleanable[log.key] = reason
        logger.error("%s", self.last_error)

    def try_later(self, log: PartitionLog, reason: str) -> None:
        """Not before the next regular look. The same reason is logged once."""
        text = f"{log.name} is not cleaned: {reason}"
        if text != self.last_error:
            logger.error("%s", text)
        self.last_error = text
        due_ms = self._now_ms() + self._config().log_cleaner_backoff_ms
        self._not_before_ms[log.key] = due_ms

    def disk_failed(self, log: PartitionLog, error: OSError) -> None:
        """The system refused something while the log was looked at or cleaned."""
        if isinstance(error, FileNotFoundError):
            self.set_aside(log, str(error))
            return
        self.try_later(log, str(error))
        is_ours = self._manager.find(*log.key) is log
        if is_ours and (error.errno not in _PASSING or error.errno in _FULL_DISK):
            self._manager.on_directory_error(self._manager.directory_of(log), error)

    def finished(self, round_: FinishedRound, unreadable: tuple[str, ...]) -> None:
        """A log was cleaned."""
        self.last_round = round_
        logger.info("%s", round_)
        for line in unreadable:
            logger.warning("%s: copied as it is, for it cannot be read: %s", round_.name, line)
        if round_.stats.invalid_messages:
            count = round_.stats.invalid_messages
            logger.warning("%s: %d records without a key were dropped", round_.name, count)

    def forget_gone(self) -> None:
        """Drop what is known of logs that are gone."""
        for known in (self.uncleanable, self._not_before_ms):
            for key in [key for key in known if self._manager.find(*key) is None]:
                del known[key]
        self._checkpoints.drop_gone()

    def uncleanable_by_directory(self) -> dict[Path, dict[TopicPartition, str]]:
        """As Kafka counts them."""
        found: dict[Path, dict[TopicPartition, str]] = {}
        for key, reason in self.uncleanable.items():
            log = self._manager.find(*key)
            if log is not None:
                path = self._manager.directory_of(log).path
                found.setdefault(path, {})[key] = reason
        return found
