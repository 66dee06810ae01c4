"""Writes the markers of a transaction that is prepared into the partitions that it has written to.

A partition that does not exist any more needs no marker. One whose log cannot be written now (it is
being recovered, or its directory is offline) gets its marker later.

Kafka: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.append import EndMarker
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from odradek.storage.topic_partition import TopicPartition

logger = logging.getLogger("odradek.transactions")

# The log knows a newer producer or coordinator: the transaction has ended there already.
ENDED_ALREADY = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class GroupTransactions(Protocol):
    """What transactions need of the group coordinator."""

    def end_transaction(self, partition: int, marker: EndMarker, now_ms: int) -> None:
        """Write a marker to a partition of `__consumer_offsets`; its offsets take effect."""


class MarkerWriter:
    """Writes markers to any log. Logs are looked up for each marker."""

    def __init__(
        self,
        *,
        partition_exists: Callable[[str, int], bool],
        find_log: Callable[[str, int], PartitionLog],
        groups: GroupTransactions,
    ) -> None:
        """`find_log` raises ApiError if the log is not open."""
        self._partition_exists = partition_exists
        self.find_log = find_log
        self._groups = groups

    def append(self, marker: EndMarker, where: TopicPartition, now_ms: int) -> PartitionLog:
        """Write a marker to one partition, and return its log.

        Raises ApiError: those of PartitionLog.append_marker, of `find_log`, and of a partition of
        groups that is not served.
        """
        topic, partition = where
        log = self.find_log(topic, partition)
        if topic == CONSUMER_OFFSETS_TOPIC:
            self._groups.end_transaction(partition, marker, now_ms)
        else:
            log.append_marker(marker, now_ms)
        return log

    def write(self, marker: EndMarker, where: TopicPartition, now_ms: int) -> PartitionLog | None:
        """Write a marker to one partition unless it has ended there; return the log or None.

        Raises ApiError: the marker could not be written now.
        """
        if not self._partition_exists(*where):
            logger.info("%s-%d is gone: it gets no marker of %s", *where, marker)
            return None
        try:
            return self.append(marker, where, now_ms)
        except ApiError as error:
            if error.code not in ENDED_ALREADY:
                raise
            logger.warning("%s-%d refused %s: %s", *where, marker, error.message)
            return None
