"""When Apache Kafka and odradek may go different ways about transactions, and why.

What is said of groups in random_groups/excuses.py counts here too.
"""

import re
from typing import Any

from odradek.protocol.errors import ErrorCode
from tests.conformance.random_groups.admin_steps import FetchOffsets
from tests.conformance.random_groups.excuses import (
    COMMIT_OF_NOTHING,
    Excuses,
    TieError,
    is_all_refused,
)
from tests.conformance.random_groups.side import Side
from tests.conformance.random_groups.steps import Step
from tests.conformance.random_transactions.admin_steps import DeleteRecords, Ends, WriteMarkers
from tests.conformance.random_transactions.producer_steps import CommitOffsets, Write

# A partition refuses the marker, because it has heard of a newer epoch of the producer or of the
# coordinator: from an administrator, or by a batch that is in no transaction. Kafka forgets the
# transaction then: it stays prepared until its coordinator is loaded again. Here it is completed.
REFUSED_MARKER = "Kafka does not complete a transaction whose marker was refused"
# Kafka writes markers after it has answered. If it ends before it has noted that all are written,
# it writes all of them again. One to a partition that has no leader yet is never written, because
# it takes that partition for deleted (KRaftMetadataCache.getPartitionLeaderEndpoint). If it was of
# the log of offsets, these are in a transaction for ever, and a later commit of that producer epoch
# does not begin a transaction.
MARKERS_AMID_RESTART = "Kafka has written a marker twice or not at all, for it was restarted"
# Kafka searches only the first segment that is new enough, even if DeleteRecords has deleted all of
# its records, and finds nothing (UnifiedLog.searchOffsetInLocalLog). Here the search goes on.
DELETED_SEGMENT = "Kafka looks for a time in records that are deleted"
# Snapshots have the last batch of each producer, and after a restart Kafka knows no others. Here
# the last five are read from the log (storage/recovering/producer_recovery.py).
BATCHES_BEFORE_THE_LAST = "Kafka has forgotten a batch by a restart"
# Kafka has been seen to answer an OffsetFetch of all offsets with a partition twice. The same
# conversation, held again, did not show it.
LISTED_TWICE = "Kafka lists an offset twice"

MARKER = re.compile("(?:at .*: transactional )?(COMMIT|ABORT) (?:of .* )?by (.*)")


class TransactionExcuses(Excuses):
    """Of one conversation."""

    def __init__(self, kafka: Side, ours: Side) -> None:
        super().__init__(kafka, ours)
        self._partitions_know_better = False
        self._records_are_deleted = False
        self._is_restarted = False

    def look_before(self, step: Step) -> None:
        """What may make partitions refuse a marker."""
        super().look_before(step)
        if isinstance(step, WriteMarkers) or _is_foreign(step):
            self._partitions_know_better = True
        if isinstance(step, DeleteRecords):
            self._records_are_deleted = True

    def look_behind(self, step: Step, kafka: Any) -> None:
        """Raises TieError where both say the same, and what they are like is not the same."""
        super().look_behind(step, kafka)
        if isinstance(step, CommitOffsets) and is_all_refused(kafka):
            _, ours = self._sides
            if ours.participants.full(step.of) not in ours.groups():
                raise TieError(COMMIT_OF_NOTHING)

    def excuse(self, step: Step, kafka: Any, ours: Any) -> None:
        """Raises TieError if there is a reason for different answers."""
        if isinstance(step, Ends) and step.at >= 0 and self._records_are_deleted:
            raise TieError(DELETED_SEGMENT)
        if isinstance(step, FetchOffsets) and _lists_twice(kafka):
            raise TieError(LISTED_TWICE)
        if isinstance(step, Write) and self._is_restarted and _is_repeated(kafka, ours):
            raise TieError(BATCHES_BEFORE_THE_LAST)
        super().excuse(step, kafka, ours)

    def excuse_assignment(self, *, count_alike: bool = True) -> None:
        """Groups have one member here: what it is assigned is determined."""

    def excuse_unsettled(self, kafka: set[str], ours: set[str]) -> None:
        """Raises TieError if only Kafka has transactions that are not completed."""
        if self._partitions_know_better and kafka and not ours:
            raise TieError(REFUSED_MARKER)

    def restarted(self) -> None:
        """Both brokers have been restarted."""
        self._is_restarted = True

    def excuse_markers(self, kafka: dict[str, Any], ours: dict[str, Any]) -> None:
        """Raises TieError if Kafka's logs have the same records, and lack or repeat markers."""
        for name in kafka.keys() & ours.keys():
            records = _records(kafka[name])
            if (
                kafka[name] != ours[name]
                and records is not None
                and records == _records(ours[name])
                and _markers(kafka[name]) <= _markers(ours[name])
            ):
                raise TieError(MARKERS_AMID_RESTART)


def _is_foreign(step: Step) -> bool:
    """Whether it writes as somebody else than the producer was told to be."""
    return isinstance(step, Write) and (not step.is_own or step.last_by is not None)


def _lists_twice(answer: Any) -> bool:
    """Whether an OffsetFetch has the same partition twice."""
    topics = [
        *answer["topics"],
        *(topic for group in answer["groups"] for topic in group["topics"]),
    ]
    return any(
        len({each["partition_index"] for each in topic["partitions"]}) < len(topic["partitions"])
        for topic in topics
    )


def _is_repeated(kafka: Any, ours: Any) -> bool:
    """Whether a batch that is out of order to Kafka is a repeated one here."""
    pairs = [
        [
            each["error_code"]
            for topic in answer["responses"]
            for each in topic["partition_responses"]
        ]
        for answer in (kafka, ours)
    ]
    return (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.NONE) in zip(*pairs, strict=True)


def _records(log: Any) -> list[str] | None:
    """What batches of a partition say that are no markers; None: it is no partition's."""
    if not all(isinstance(batch, str) for batch in log):
        return None
    return [batch.rpartition(": ")[2] for batch in log if not MARKER.match(batch)]


def _markers(log: list[str]) -> set[tuple[str, ...]]:
    """Kinds and producers of the markers; a restart changes the coordinator's epoch."""
    return {match.groups() for match in map(MARKER.match, log) if match}
