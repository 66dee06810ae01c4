"""Results of the log cleaner's rounds, and the logs that may not be cleaned now.

    the end of a batch cannot be found              the log is uncleanable until a restart
    the process crashed or sends nothing            uncleanable until a restart
    a file is missing                               uncleanable until a restart
    no disk space, memory or file descriptors       retried after log.cleaner.backoff.ms
    no process can be started                       retried after log.cleaner.backoff.ms
    another disk error                              the log's directory goes offline

Kafka: LogCleanerManager.uncleanablePartitions. There every IOException takes the directory offline,
and any other exception makes the partition uncleanable.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from pathlib import Path

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_partition import TopicPartition

from .cleaner_status import FinishedRound

logger = logging.getLogger("odradek.cleaner")


class CleanerState:
    """See the module. `uncleanable`: the reasons. `last_error`, `last_round`: of any log."""

    def __init__(
        self,
        manager: LogManager,
        checkpoints: CleanerCheckpoints,
        config: Callable[[], BrokerConfig],
        timer_ms: Callable[[], int],
    ) -> None:
        self.uncleanable: dict[TopicPartition, str] = {}
        self.last_error: str | None = None
        self.last_round: FinishedRound | None = None
        self._manager = manager
        self._checkpoints = checkpoints
        self._config = config
        self._timer_ms = timer_ms
        self._not_before_ms: dict[TopicPartition, int] = {}

    def must_wait(self, key: TopicPartition) -> bool:
        """Whether no round of this log may start now."""
        return key in self.uncleanable or self._timer_ms() < self._not_before_ms.get(key, 0)

    def mark_uncleanable(self, log: PartitionLog, reason: str) -> None:
        """Stop cleaning this log until a restart. Other logs are not affected."""
        self.last_error = f"{log.name} is not cleaned until a restart: {reason}"
        self.uncleanable[log.key] = reason
        logger.error("%s", self.last_error)

    def retry_later(self, log: PartitionLog, reason: str) -> None:
        """Delay the log's next round by log.cleaner.backoff.ms. Logs a repeated reason once."""
        text = f"{log.name} is not cleaned: {reason}"
        if text != self.last_error:
            logger.error("%s", text)
        self.last_error = text
        due_ms = self._timer_ms() + self._config().log_cleaner_backoff_ms
        self._not_before_ms[log.key] = due_ms

    def disk_failed(self, log: PartitionLog, error: OSError) -> None:
        """Handle an OSError of assessing or cleaning the log."""
        if isinstance(error, FileNotFoundError):
            self.mark_uncleanable(log, str(error))
            return
        self.retry_later(log, str(error))
        is_current = self._manager.find(*log.key) is log
        if is_current and error.errno != errno.ENOMEM:
            self._manager.on_directory_error(self._manager.directory_of(log), error)

    def note_finished(self, round_: FinishedRound, unreadable: tuple[str, ...]) -> None:
        """Record and log a finished round."""
        self.last_round = round_
        logger.info("%s", round_)
        for line in unreadable:
            logger.warning("%s: copied unchanged because it cannot be read: %s", round_.name, line)
        if round_.stats.invalid_messages:
            count = round_.stats.invalid_messages
            logger.warning("%s: %d records without a key were dropped", round_.name, count)

    def forget_deleted(self, step: Step) -> None:
        """Drop the entries of logs that no longer exist."""
        for known in (self.uncleanable, self._not_before_ms):
            for key in stepping(list(known), step):
                if self._manager.find(*key) is None:
                    known.pop(key, None)
        self._checkpoints.drop_deleted(step)

    def uncleanable_by_directory(self) -> dict[Path, dict[TopicPartition, str]]:
        """Group `uncleanable` by log directory, as Kafka's metric does."""
        found: dict[Path, dict[TopicPartition, str]] = {}
        for key, reason in self.uncleanable.items():
            log = self._manager.find(*key)
            if log is not None:
                path = self._manager.directory_of(log).path
                found.setdefault(path, {})[key] = reason
        return found
