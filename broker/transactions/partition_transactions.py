"""Groups the two objects by which a process begins and ends transactions in its partitions."""

from dataclasses import dataclass

from odradek.coordinator.transactions.marker_writer import MarkerWriter

from .verification import TransactionVerifier


@dataclass(frozen=True, slots=True)
class PartitionTransactions:
    """`verifier` is asked before a transaction begins in a partition; `markers` end it there."""

    verifier: TransactionVerifier
    markers: MarkerWriter
