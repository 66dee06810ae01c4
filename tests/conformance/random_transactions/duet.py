"""Says each step to both brokers, and waits until both have completed their transactions.

Kafka answers an EndTxn when the end is decided, and writes the markers then; a client that comes
too early is told CONCURRENT_TRANSACTIONS, and asks again. Here the next step comes when
DescribeTransactions says of both brokers that it is done.
"""

import time

from tests.conformance.random_groups.duet import Both, DifferenceError, Duet
from tests.conformance.random_groups.steps import Step
from tests.conformance.random_transactions.excuses import TransactionExcuses
from tests.conformance.random_transactions.producer_steps import End, ProducerStep
from tests.conformance.random_transactions.side import TransactionSide

PATIENCE_S, LEFT_S = 10.0, 2.0


class TransactionDuet(Duet):
    """A conversation with both. Kafka's side comes first."""

    def __init__(self, kafka: TransactionSide, ours: TransactionSide) -> None:
        super().__init__(kafka, ours)
        self._of_transactions = kafka, ours
        self.excuses: TransactionExcuses = TransactionExcuses(kafka, ours)

    def wait_for_ends(self) -> None:
        """Until no transaction is about to end. Raises DifferenceError, TieError."""
        kafka, ours = self._of_transactions
        start = time.monotonic()
        while (left := (kafka.unsettled(), ours.unsettled())) != (set(), set()):
            waited_s = time.monotonic() - start
            if waited_s > LEFT_S:
                self.excuses.excuse_unsettled(*left)
            if waited_s > PATIENCE_S:
                raise DifferenceError(f"not completed: Kafka: {left[0]}, odradek: {left[1]}")
            time.sleep(0.005)

    def wait_until_served(self) -> None:
        """After a restart: until topics have leaders, and transactions are completed."""
        deadline = time.monotonic() + PATIENCE_S
        for side in self._of_transactions:
            while not side.serves_topics() and time.monotonic() < deadline:
                time.sleep(0.02)
        self.wait_for_ends()

    def _settle(self, step: Step, sent: Both) -> None:
        super()._settle(step, sent)
        if isinstance(step, ProducerStep) and not (isinstance(step, End) and not step.waits):
            self.wait_for_ends()
