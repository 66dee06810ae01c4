"""When Apache Kafka and odradek may go different ways about transactions, and why.

What is said of groups in random_groups/excuses.py counts here too.
"""

from typing import Any

from tests.conformance.random_groups.excuses import (
    COMMIT_OF_NOTHING,
    Excuses,
    TieError,
    is_all_refused,
)
from tests.conformance.random_groups.side import Side
from tests.conformance.random_groups.steps import Step
from tests.conformance.random_transactions.admin_steps import WriteMarkers
from tests.conformance.random_transactions.producer_steps import CommitOffsets, Write

# A partition refuses the marker, because it has heard of a newer epoch of the producer or of the
# coordinator: from an administrator, or by a batch that is in no transaction. Kafka forgets the
# transaction then: it stays prepared until its coordinator is loaded again. Here it is completed.
REFUSED_MARKER = "Kafka does not complete a transaction whose marker was refused"


class TransactionExcuses(Excuses):
    """Of one conversation."""

    def __init__(self, kafka: Side, ours: Side) -> None:
        super().__init__(kafka, ours)
        self._partitions_know_better = False

    def look_before(self, step: Step) -> None:
        """What may make partitions refuse a marker."""
        super().look_before(step)
        if isinstance(step, WriteMarkers) or (isinstance(step, Write) and not step.is_own):
            self._partitions_know_better = True

    def look_behind(self, step: Step, kafka: Any) -> None:
        """Raises TieError where both say the same, and what they are like is not the same."""
        super().look_behind(step, kafka)
        if isinstance(step, CommitOffsets) and is_all_refused(kafka):
            raise TieError(COMMIT_OF_NOTHING)

    def excuse_unsettled(self, kafka: set[str], ours: set[str]) -> None:
        """Raises TieError if only Kafka has transactions that are not completed."""
        if self._partitions_know_better and kafka and not ours:
            raise TieError(REFUSED_MARKER)
