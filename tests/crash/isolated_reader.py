"""Reads a partition from its start by Fetch requests, and drops aborted records as Java does.

The rule is that of Java's CompletedFetch: an aborted transaction begins at the first batch whose
last offset is not before its first offset, and ends at the next ABORT marker of its producer.
"""

from collections.abc import Iterator

import msgspec

from odradek.protocol.batch_header import read_header
from odradek.protocol.messages.fetch import (
    FetchAbortedTransaction,
    FetchPartitionData,
    FetchResponse,
)
from odradek.protocol.record import Record, read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import SplicedRecords
from tests.crash.keyed_writes import KeyedRecord, Reading
from tests.support.stored_batches import FETCH_VERSION, fetch_request
from tests.support.wire import WireClient


def read_all(port: int, topic: str, *, committed_only: bool, fetch_bytes: int) -> Reading:
    """Read partition 0 up to the offset that was its end when it began."""
    with WireClient(port) as client:
        first = _fetch(client, topic, 0, committed_only, fetch_bytes)
        end = first.last_stable_offset if committed_only else first.high_watermark
        records: list[KeyedRecord] = []
        offset = 0
        while offset < end:
            answer = _fetch(client, topic, offset, committed_only, fetch_bytes)
            before = offset
            for next_offset, kept in _kept(answer):
                offset = next_offset
                records += [_keyed(record) for record in kept if before <= record.offset < end]
            assert offset > before, f"nothing is found at {offset} of {topic}, which ends at {end}"
        return Reading(records, end)


def is_stable(port: int, topic: str, first_open: int | None) -> bool:
    """Whether partition 0 is stable up to that offset, or up to its end."""
    last_stable_offset, high_watermark = ends(port, topic)
    return last_stable_offset == (high_watermark if first_open is None else first_open)


def ends(port: int, topic: str) -> tuple[int, int]:
    """The last stable offset of partition 0, and its high watermark."""
    with WireClient(port) as client:
        found = _fetch(client, topic, 0, True, 1)
    return found.last_stable_offset, found.high_watermark


def _fetch(
    client: WireClient, topic: str, offset: int, committed_only: bool, fetch_bytes: int
) -> FetchPartitionData:
    request = fetch_request(topic, 0, offset, fetch_bytes)
    isolated = msgspec.structs.replace(request, isolation_level=int(committed_only))
    answer = client.ask(isolated, FetchResponse, FETCH_VERSION)
    found: FetchPartitionData = answer.responses[0].partitions[0]
    assert found.error_code == 0, f"error {found.error_code} at offset {offset} of {topic}"
    return found


def _kept(answer: FetchPartitionData) -> Iterator[tuple[int, list[Record]]]:
    """For each whole batch, the offset after it and the records that a consumer is given."""
    assert not isinstance(answer.records, SplicedRecords)
    data = memoryview(bytes(answer.records or b""))
    aborted = sorted(answer.aborted_transactions or (), key=_first_offset, reverse=True)
    in_aborted: set[int] = set()
    position = 0
    while position + 61 <= len(data):
        header = read_header(data[position:])
        if position + header.size_bytes > len(data):
            return  # the answer's size cut it
        records = list(read_records(data[position : position + header.size_bytes]))
        position += header.size_bytes
        while aborted and aborted[-1].first_offset <= header.last_offset:
            in_aborted.add(aborted.pop().producer_id)
        if header.is_control:
            if records and control_type(records[0].key) is ControlRecordType.ABORT:
                in_aborted.discard(header.producer_id)
            records = []
        elif header.is_transactional and header.producer_id in in_aborted:
            records = []
        yield header.next_offset, records


def _first_offset(transaction: FetchAbortedTransaction) -> int:
    offset: int = transaction.first_offset
    return offset


def _keyed(record: Record) -> KeyedRecord:
    value = None if record.value is None else bytes(record.value)
    return KeyedRecord(record.offset, bytes(record.key or b""), value)
