"""Transactions in the partitions of a process, as one part of it."""

from dataclasses import dataclass

from odradek.coordinator.transactions.marker_writer import MarkerWriter

from .verification import TransactionVerifier


@dataclass(frozen=True, slots=True)
class PartitionTransactions:
    """`verifier` is asked before a transaction begins in a partition; `markers` end it there."""

    verifier: TransactionVerifier
    markers: MarkerWriter
