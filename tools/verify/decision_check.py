"""Checks one partition of `__transaction_state`: each record must be a legal next step of its id.

The cleaner removes from the front. So of the records of a transactional id that are left, the
predecessor of each one in the log is also the step before it: none between them is missing. Apache
Kafka may write a decision twice, if its first attempt has failed at other replicas.

After partitions were added to the topic, many transactional ids hash to other ones. Their records
stay where they are, and requests do not find them there. odradek still ends their transactions.

Kafka: TransactionState.validPreviousStates.
"""

from pathlib import Path

from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.transactions.states import PREPARED, PREVIOUS, TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.schema import DecodeError
from odradek.storage.inspect.raw_batch import AnyRecord
from odradek.tools.transactions.stored_transactions import StoredTransactions

from .findings import Findings, Kind, Tally

_COMPLETED = {TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}


class DecisionCheck:
    """The records of one partition; they are added to `stored`.

    `partition_count`: how many partitions `__transaction_state` has, None if it is not known.
    """

    def __init__(
        self,
        directory: Path,
        partition: int,
        partition_count: int | None,
        stored: StoredTransactions,
        findings: Findings,
    ) -> None:
        self._directory = directory
        self._partition = partition
        self._partition_count = partition_count
        self._stored = stored
        self._findings = findings
        self._wrong = Tally()
        self._repeated = Tally()
        self._misplaced = Tally()

    def add(self, record: AnyRecord) -> None:
        """Take the next record of the log."""
        try:
            step = self._stored.add(self._partition, record.key, record.value)
        except DecodeError:
            return  # RecordCheck reports it
        except LookupError as error:
            self._wrong.add(f"offset {record.offset}: {error} does not exist")
            return
        if step is None:
            return
        transactional_id = step.transaction.transactional_id
        where = f"offset {record.offset}: transactional id {transactional_id}"
        count = self._partition_count
        place = self._partition if count is None else partition_of(transactional_id, count)
        if place != self._partition:
            self._misplaced.add(f"{where} hashes to partition {place}")
        if step.previous is not None:
            self._check_step(step.previous, step.transaction, where)

    def _check_step(self, previous: Transaction, next_: Transaction, where: str) -> None:
        before, after = previous.state, next_.state
        is_same_producer = previous.producer_id == next_.producer_id
        if is_same_producer and next_.producer_epoch < previous.producer_epoch:
            epochs = f"{next_.producer_epoch} follows {previous.producer_epoch}"
            self._wrong.add(f"{where}: producer epoch {epochs}")
        elif before not in PREVIOUS.get(after, ()):
            what = f"{where}: {after.client_name} follows {before.client_name}"
            is_same = is_same_producer and next_.producer_epoch == previous.producer_epoch
            is_repeated = before is after and after in PREPARED | _COMPLETED and is_same
            if is_repeated:
                self._repeated.add(f"written twice: {what}")
            else:
                self._wrong.add(what)

    def end(self) -> None:
        """Report what was found, after the last record."""
        findings, directory, kind = self._findings, self._directory, Kind.TRANSACTION
        at_start = "the newest record of a transactional id counts"
        findings.problem(directory, self._wrong, at_start, kind)
        in_odradek = "odradek ends a transaction of it that is open. Apache Kafka does not"
        findings.note(directory, self._misplaced, in_odradek, kind)
        findings.note(directory, self._repeated, at_start, kind)
