"""Compares the open transactions of all logs with what their coordinator has stored.

An open transaction is normal if its coordinator has it: the coordinator will write a marker. If no
coordinator has it, it is hanging. That is a problem, though a broker may have left it: the last
stable offset of the log cannot move, until somebody ends the transaction.

A running broker changes both sides. So `__transaction_state` must be read after all other logs, and
a log is read again before one of its transactions is called hanging: a coordinator forgets a
partition only after it has written the marker.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from odradek.coordinator.transactions.states import IDLE, PREPARED, TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.storage.inspect.open_transactions import OpenTransaction
from odradek.storage.log_reader import LogReader
from odradek.storage.topic_names import TRANSACTION_STATE_TOPIC
from odradek.storage.topic_partition import TopicPartition
from odradek.tools.transactions.ownership import (
    described,
    how_to_abort,
    how_to_terminate,
    owner_of,
    why_hanging,
)
from odradek.tools.transactions.stored_transactions import StoredTransactions

from .findings import Findings, Kind
from .log_state import LogState


class OpenIn(NamedTuple):
    """The open transactions at the end of one log."""

    directory: Path
    end_offset: int
    transactions: list[OpenTransaction]


def open_in(log: LogState) -> OpenIn:
    """Return those of a log that was checked to its end; none if there is damage at its end."""
    transactions = list(log.transactions.open) if log.transactions.is_known else []
    return OpenIn(log.directory, log.next_offset, transactions)


class OpenTransactionCheck:
    """The open transactions of all logs. `now_ms`: the wall clock."""

    def __init__(self, findings: Findings, now_ms: int) -> None:
        self._findings = findings
        self._now_ms = now_ms
        self._open: dict[TopicPartition, OpenIn] = {}

    def add(self, where: TopicPartition, log: OpenIn) -> None:
        """Take the open transactions of one log."""
        if log.transactions:
            self._open[where] = log

    def check_open(self, stored: StoredTransactions) -> None:
        """Report the open transactions of the logs that were added."""
        for where, log in sorted(self._open.items()):
            for each in log.transactions:
                self._check_open(where, log, each, stored)

    def check_stored(
        self,
        stored: StoredTransactions,
        state_directories: Mapping[int, Path],
        existing: set[TopicPartition] | None,
    ) -> None:
        """Report the transactions that are decided. All logs must have been added.

        `state_directories`: those of `__transaction_state`, by partition. `existing`: the
        partitions of all topics, None if they are not known.
        """
        for (partition, _), transaction in sorted(stored.by_key.items()):
            if transaction.state not in IDLE:
                self._check_stored(state_directories[partition], transaction, existing)

    def _check_open(
        self,
        where: TopicPartition,
        log: OpenIn,
        open_: OpenTransaction,
        stored: StoredTransactions,
    ) -> None:
        what = described(open_, self._now_ms)
        owner = owner_of(open_, where, stored)
        if owner is not None:
            what += f"; transactional id {owner.transactional_id} has it, {owner.state.client_name}"
            at_start = "its marker is written"
            if owner.state is TransactionState.ONGOING:
                limit = f"its timeout of {owner.timeout_ms} ms"
                at_start = f"it stays open, until its producer ends it or {limit} is over"
            self._findings.note(log.directory, what, at_start, Kind.TRANSACTION)
        elif not stored.is_complete:
            why = f"not all of {TRANSACTION_STATE_TOPIC} can be read here"
            what += f"; whether a coordinator has it is not known, because {why}"
            self._findings.note(log.directory, what, kind=Kind.TRANSACTION)
        elif not _has_ended(log, open_):
            effect = f"readers of committed records do not get past offset {open_.first_offset}"
            what += f"; it is hanging: {why_hanging(open_, stored)}; {effect}"
            at_start = f"it stays open. End it with: {how_to_abort(open_, where)}"
            self._findings.problem(log.directory, what, at_start, Kind.TRANSACTION)

    def _check_stored(
        self, directory: Path, transaction: Transaction, existing: set[TopicPartition] | None
    ) -> None:
        what = f"transactional id {transaction.transactional_id} is {transaction.state.client_name}"
        if existing is not None and (gone := sorted(transaction.partitions - existing)):
            shown = ", ".join(f"{topic}-{partition}" for topic, partition in gone)
            at_start = f"it ends without them, by itself or by: {how_to_terminate(transaction)}"
            if transaction.state in PREPARED:
                at_start = "it ends without them"
            gone_what = f"{what}, with partitions that do not exist: {shown}"
            self._findings.note(directory, gone_what, at_start, Kind.TRANSACTION)
        if transaction.state in PREPARED:
            missing = sorted(
                f"{topic}-{partition}"
                for topic, partition in transaction.partitions
                if self._has_open(transaction, TopicPartition(topic, partition))
            )
            shown = f"its marker is missing in {', '.join(missing)}" if missing else "all have it"
            what = f"{what}: its end is decided, and not completed; {shown}"
            self._findings.note(directory, what, "it is completed", Kind.TRANSACTION)

    def _has_open(self, transaction: Transaction, where: TopicPartition) -> bool:
        log = self._open.get(where)
        return log is not None and any(
            each.producer_id == transaction.producer_id for each in log.transactions
        )


def _has_ended(log: OpenIn, open_: OpenTransaction) -> bool:
    """Whether a broker has written a marker since the log was checked, or deleted the log."""
    reader = LogReader(log.directory)
    try:
        return any(
            batch.header.is_control and batch.header.producer_id == open_.producer_id
            for batch in reader.batches(log.end_offset, on_corrupt=lambda _: None)
        )
    except FileNotFoundError:
        return True
