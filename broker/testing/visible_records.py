"""Reads the records of a log as a consumer sees them."""

from collections.abc import Iterator

from odradek.protocol.record import Record
from odradek.storage.committed_reads import aborted_between
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from odradek.storage.txn_index import AbortedTransaction


def visible_records(log: PartitionLog, *, committed: bool) -> Iterator[Record]:
    """The records of a log, without markers.

    `committed`: only those before the last stable offset, without those of aborted transactions.
    """
    start, end = log.log_start_offset, log.high_watermark
    aborted: list[AbortedTransaction] = []
    if committed:
        end = log.last_stable_offset
        aborted, _ = aborted_between(log.segments, 0, start, end)
    for batch in LogReader(log.directory).batches(start, end):
        header = batch.header
        is_aborted = header.is_transactional and any(
            each.producer_id == header.producer_id
            and each.first_offset <= header.base_offset <= each.last_offset
            for each in aborted
        )
        if not (header.is_control or is_aborted):
            yield from (each for each in batch.records() if start <= each.offset < end)
