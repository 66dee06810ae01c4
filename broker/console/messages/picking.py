"""Takes the records that are wanted out of one batch: on the event loop, or in another process.

A record that is picked has the header of its batch. Keys and values are cut to what the caller can
use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from odradek.coordinator.runtime.steps import Step, no_step
from odradek.protocol.any_batch import UNKNOWN_COUNT, read_any_header, read_any_records
from odradek.protocol.batch_header import (
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    TooManyRecordsError,
)
from odradek.protocol.compression import NO_LIMIT, Buffer, CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.legacy import read_message_set
from odradek.protocol.record import Record, RecordHeaders, payload, read_payload
from odradek.protocol.record_json import headers_json
from odradek.storage.record_walk import LONG, STEPS_OF_A_PART, WalkLimits

from .filters import Filter, JsonPath, json_of, looks_like_json
from .framing import framed

# Longer JSON is parsed in another process.
LARGE_JSON_BYTES = 32 << 10
# The headers of a record that are kept, unless all are wanted.
MAX_HEADERS = 200
_HEADER_COST = 100  # what a short header holds in memory


class Picked(NamedTuple):
    """A record. `key` and `value` may be cut; sizes are those in the log, -1 for null.

    `headers` may be the first ones of `header_count`, with `headers_bytes` together. If all were
    wanted and are many, `headers_json` has them instead: making thousands of objects of them takes
    long.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders
    header_count: int
    headers_bytes: int
    key_bytes: int
    value_bytes: int
    header: BatchHeader
    headers_json: bytes = b""

    @property
    def size_bytes(self) -> int:
        """Of the key, the value and the headers."""
        return max(self.key_bytes, 0) + max(self.value_bytes, 0) + self.headers_bytes

    @property
    def kept_bytes(self) -> int:
        """What it holds in memory."""
        headers = sum(len(name) + len(value or b"") + _HEADER_COST for name, value in self.headers)
        data = len(self.key or b"") + len(self.value or b"") + len(self.headers_json)
        return data + headers + 200


class Want(Struct, frozen=True, kw_only=True):
    """What to pick in a partition: at most `max_records` with offsets in [first, end).

    If more match, the first ones are picked, or the last ones if `newest`. Of each record the key,
    the value and all headers together are cut to `cut_bytes` each, and at most `max_headers`
    headers are kept. All records together hold about `max_kept_bytes` in memory.
    """

    partition: int
    first: int
    end: int
    filter: Filter
    max_records: int
    max_kept_bytes: int
    cut_bytes: int
    max_headers: int
    newest: bool = False


class Picks:
    """What was picked so far.

    `oldest_ms` and `newest_ms` are the timestamps of the first and the last record that was looked
    at; None: there was none.
    """

    def __init__(self, want: Want) -> None:
        self.want = want
        self.records: deque[Picked] = deque()
        self.is_full = False  # `records` are not all that match
        self.oldest_ms: int | None = None
        self.newest_ms: int | None = None
        self._bytes = 0

    def pass_by(self, record: Record) -> None:
        """Note a record that was looked at."""
        if self.oldest_ms is None:
            self.oldest_ms = record.timestamp_ms
        self.newest_ms = record.timestamp_ms

    def add(self, record: Record, header: BatchHeader) -> None:
        """Pick a record."""
        cut = self.want.cut_bytes
        key, value = record.key, record.value
        picked = Picked(
            partition=self.want.partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            key=None if key is None else key[:cut],
            value=None if value is None else value[:cut],
            headers=_first_headers(record.headers, self.want.max_headers, cut),
            header_count=len(record.headers),
            headers_bytes=sum(len(n.encode()) + len(v or b"") for n, v in record.headers),
            key_bytes=-1 if key is None else len(key),
            value_bytes=-1 if value is None else len(value),
            header=header,
        )
        self.put(picked)

    def put(self, picked: Picked) -> None:
        """Pick a record that another process has picked."""
        self.records.append(picked)
        self._bytes += picked.kept_bytes
        while self._is_over and self.want.newest and len(self.records) > 1:
            self._bytes -= self.records.popleft().kept_bytes
            self.is_full = True
        if not self.want.newest and self._is_at_limit:
            self.is_full = True

    @property
    def _is_over(self) -> bool:
        return len(self.records) > self.want.max_records or self._bytes > self.want.max_kept_bytes

    @property
    def _is_at_limit(self) -> bool:
        return len(self.records) >= self.want.max_records or self._bytes >= self.want.max_kept_bytes

    @property
    def is_complete(self) -> bool:
        """Whether no later record is wanted."""
        return self.is_full and not self.want.newest


def _first_headers(headers: RecordHeaders, max_count: int, max_bytes: int) -> RecordHeaders:
    """The first headers: at most `max_count`, with at most `max_bytes` together."""
    size_bytes = 0
    for index, (name, value) in enumerate(headers):
        size_bytes += len(name) + len(value or b"")
        if index == max_count or size_bytes > max_bytes:
            return headers[:index]
    return headers


class Walked(NamedTuple):
    """The picks of one batch, made in another process.

    `undecided` are the first and the last offset of those records into which a JSON path would lead
    if their schemas were known, which they are not there.
    """

    records: list[Picked]
    undecided: tuple[int, int] | None
    is_full: bool
    oldest_ms: int | None
    newest_ms: int | None


def walk_batch(batch: bytes, *, want: Want, limits: WalkLimits) -> Walked:
    """Pick the records of one batch. Runs in another process.

    Raises ApiError, and TooManyRecordsError when it reaches a limit that is not the last.
    """
    picks = Picks(want)
    undecided: tuple[int, int] | None = None
    header = read_any_header(batch)
    try:
        for record in _records(batch, header, limits):
            if record.offset < want.first:
                continue
            if record.offset >= want.end or picks.is_complete:
                break
            picks.pass_by(record)
            if not want.filter.matches_text(record.key, record.value, record.headers):
                continue
            path = want.filter.path
            if path is None or matches_path(path, record.value, no_step):
                picks.add(record, header)
            elif _may_have_schema(record):
                first = undecided[0] if undecided else record.offset
                undecided = (first, record.offset)
    except TooManyRecordsError as error:
        if limits == LONG:
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
        raise
    except CorruptRecordError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    records = [_with_headers_json(picked) for picked in picks.records]
    return Walked(records, undecided, picks.is_full, picks.oldest_ms, picks.newest_ms)


def _with_headers_json(picked: Picked) -> Picked:
    if len(picked.headers) <= MAX_HEADERS:
        return picked
    return picked._replace(headers=(), headers_json=headers_json(picked.headers))


def _records(batch: Buffer, header: BatchHeader, limits: WalkLimits) -> Iterable[Record]:
    if header.magic != MAGIC_V2:
        parts = NO_LIMIT if limits.steps == NO_LIMIT else limits.steps // STEPS_OF_A_PART
        old = read_message_set(
            batch, max_bytes=limits.unpacked_bytes, max_messages=parts, check_crc=False
        )
        return (Record(r.key, r.value, r.timestamp_ms, (), r.offset) for r in old)
    return read_payload(unpacked(batch, header, limits), header)


def unpacked(batch: Buffer, header: BatchHeader, limits: WalkLimits) -> bytes:
    """The content of a v2 batch. Raises CorruptRecordError, TooManyRecordsError."""
    if header.record_count > limits.steps:
        raise TooManyRecordsError(f"{header.record_count} records")
    is_plain = header.compression is CompressionType.NONE
    max_bytes = len(batch) if is_plain else limits.unpacked_bytes
    return payload(batch, header, max_bytes, limits.steps // STEPS_OF_A_PART)


def is_packed_set(header: BatchHeader) -> bool:
    """Whether it is a message that holds others, compressed."""
    return header.record_count == UNKNOWN_COUNT


def plain_records(batch: Buffer, header: BatchHeader) -> Iterable[Record]:
    """The records of a message that is not compressed."""
    return read_any_records(batch, header)


def _may_have_schema(record: Record) -> bool:
    value = record.value
    if value is None or looks_like_json(value):
        return False
    return framed(value, record.headers, is_key=False) is not None


def matches_path(path: JsonPath, value: bytes | None, step: Step) -> bool:
    """Whether a value is JSON that has what a path says."""
    try:
        return path.matches(json_of(value), step)
    except (ValueError, RecursionError):
        return False


def walk_value(
    value: bytes,
    *,
    path: JsonPath,
    limits: WalkLimits,  # noqa: ARG001 # as of every walk
) -> bool:
    """`matches_path` of a long value. Runs in another process."""
    return matches_path(path, value, no_step)
