"""Checks logs as the parts of a job, in any process. A result has all that is found in a log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from odradek.storage.files import Files
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC
from odradek.storage.topic_partition import TopicPartition
from odradek.tools.transactions.stored_transactions import StoredTransactions

from .findings import Finding, Findings, Totals
from .metadata_facts import MetadataFacts
from .open_transaction_check import OpenIn, open_in
from .partition_check import LogDirectory, PartitionCheck
from .second_look import LOOKS, LOOKS_IF_IN_USE, checked_again


class LogItem(NamedTuple):
    """A log to check. `directory_index` says in which of the log directories it is."""

    directory_index: int
    log: TopicPartition


class LogResult(NamedTuple):
    """What was found in one log. `open` is None if it cannot be read."""

    item: LogItem
    findings: list[Finding]
    totals: Totals
    open: OpenIn | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsCheck:
    """Checks logs. `deep`: read every record, not only those of internal logs."""

    files: Files
    log_dirs: Sequence[LogDirectory]
    metadata: MetadataFacts
    deep: bool

    def __call__(self, items: Sequence[LogItem]) -> Iterator[LogResult]:
        """Check some logs. Their errors become findings."""
        for item in items:
            yield self.check(item, StoredTransactions())[0]

    def check(self, item: LogItem, stored: StoredTransactions) -> tuple[LogResult, PartitionCheck]:
        """Check a log; repeat while problems are found (second_look.py).

        Returns the result and the last PartitionCheck. `stored` is not changed.
        """
        log_dir, findings = self.log_dirs[item.directory_index], Findings()
        look = checked_again(
            lambda trial: self._look(item, stored, trial),
            findings,
            log_dir.path / log_dir.logs[item.log],
            lambda: LOOKS_IF_IN_USE if log_dir.now(self.files).is_in_use else LOOKS,
        )
        opened = None if look.end is None else open_in(look.end)
        return LogResult(item, findings.listed, findings.totals, opened), look

    def _look(
        self, item: LogItem, stored: StoredTransactions, findings: Findings
    ) -> PartitionCheck:
        is_metadata = item.log[0] == CLUSTER_METADATA_TOPIC
        check = PartitionCheck(
            self.files,
            findings,
            deep=self.deep,
            metadata=MetadataFacts() if is_metadata else self.metadata,
            stored=stored.copy(),
        )
        check.run(self.log_dirs[item.directory_index].now(self.files), item.log)
        return check
