"""The records of a topic: a page of them, what is new, one as a whole, to write one, an export."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Run
from odradek.broker.console.messages import cursors, live
from odradek.broker.console.messages.cursors import MAX_PARTITIONS, Cursor, Place
from odradek.broker.console.messages.decoding import AUTO, MAX_DECODED_BYTES, Data, Decoder
from odradek.broker.console.messages.filters import Filter, filter_of
from odradek.broker.console.messages.outcomes import Outcome, outcomes_of
from odradek.broker.console.messages.partitioning import partition_of
from odradek.broker.console.messages.picking import Picked
from odradek.broker.console.messages.reading import (
    READ_COMMITTED,
    Budget,
    Range,
    Reader,
    Topic,
    find_topic,
)
from odradek.broker.console.messages.scanning import Page, Scanner
from odradek.broker.console.messages.schemas import schemas_of
from odradek.broker.console.view import View
from odradek.protocol.batch_header import (
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import MAX_INT64, Record, RecordHeaders
from odradek.protocol.record_batch import build_batch
from odradek.protocol.record_json import headers_json, line_of

EVERY_S = 0.5
MAX_LIMIT = 1000
# How long a page is made without a filter. A search for records that a filter keeps ends sooner, so
# that the page can show how far it has come.
PAGE_S = 1.0
SEARCH_S = 0.2
LIVE_S = 0.1
SEARCH_BYTES = 4 << 20
LIVE_BYTES = 1 << 20
# The letters of a key or a value that a page has; a page with many records has fewer of each.
TEXT_LETTERS = 32 << 10
PAGE_LETTERS = 512 << 10
_SHORTEST_TEXT = 256
# The letters of a record's headers, in a page with many records.
HEADERS_LETTERS = 4 << 10
# For each header so many letters are counted beside its name and value: those of the JSON.
_HEADER_LETTERS = 100
# A larger key or value is not in the view of its record.
WHOLE_BYTES = 256 << 10
UNLIMITED = MAX_INT64
EXPORT_RECORDS = 10_000
# Of an export: the records that are read at once, and the bytes of a piece.
EXPORT_STEP = 200
PIECE_BYTES = 64 << 10
PRODUCE_TIMEOUT_MS = 30_000

Isolation = Literal["read_committed", "read_uncommitted"]
Position = Literal["newest", "oldest", "offset", "time"]


class MessageHeader(View):
    name: str
    value: Data | None


class MessageRecord(View):
    """A record. `size_bytes` counts its key, value and headers. `headers` are the first ones.

    `timestamp_ms` is None if the record has none. `transaction` is what has become of the
    transaction of which it is part; None: of none. `is_control`: it is the end of one.
    """

    partition: int
    offset: int
    timestamp_ms: int | None
    timestamp_type: str
    key: Data | None
    value: Data | None
    headers: list[MessageHeader]
    header_count: int
    size_bytes: int
    transaction: Outcome | None
    is_control: bool
    producer_id: int | None
    producer_epoch: int | None
    leader_epoch: int | None
    compression: str


class UnreadableRecords(View):
    """Records that cannot be read: those of a batch that is damaged, or unpacks to too much."""

    partition: int
    first_offset: int
    last_offset: int
    reason: str


class RecordsRequest(View):
    """Which records. A `cursor` says where to go on.

    `key`, `value`, `header` and `json_path` are described in console/messages/filters.py.
    """

    topic: str
    partition: int | None = None
    cursor: str | None = None
    key: str | None = None
    value: str | None = None
    header: str | None = None
    json_path: str | None = None
    isolation: Isolation = "read_committed"


class PlacedRequest(RecordsRequest):
    """Which records, and from where. A `cursor` replaces the position."""

    position: Position = "newest"
    offset: int | None = None
    timestamp_ms: int | None = None
    limit: int = 50


class MessagesRequest(PlacedRequest):
    """A page of records."""

    format: str = AUTO


class Messages(View):
    """A page of records. `cursor` leads to the next; None: everything was searched.

    `searched` of `total` offsets were looked at, in this page and those before it.
    """

    records: list[MessageRecord]
    cursor: str | None
    searched: int
    total: int
    unreadable: list[UnreadableRecords]


class LiveRequest(RecordsRequest):
    """Records as they are written. `cursor` is that of the response before."""

    format: str = AUTO


class LiveMessages(View):
    """The records since the last response. `skipped`: left out, because there were too many."""

    records: list[MessageRecord]
    skipped: int
    cursor: str
    unreadable: list[UnreadableRecords]


class MessageRequest(View):
    """One record."""

    topic: str
    partition: int
    offset: int
    format: str = AUTO


class WholeHeader(View):
    """A header. Its value is in base64; None: null."""

    name: str
    value: str | None


class Message(View):
    """One record. Whole keys, values and headers are in base64; None if they are null or large.

    Those that are large can be had as a file: see the paths that end in /key and /value.
    """

    record: MessageRecord
    whole_key: str | None
    whole_value: str | None
    whole_headers: list[WholeHeader] | None


class NewHeader(View):
    """A header to write. Its value is text or base64; neither: null."""

    name: str
    value: str | None = None
    value_base64: str | None = None


class NewMessage(View):
    """A record to write. The key and the value are text or base64; neither of both: null.

    A null value must be wanted: `is_tombstone`. Without a partition, the key chooses it as Kafka's
    producers do; without a key, the partitions take turns.
    """

    topic: str
    partition: int | None = None
    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None
    is_tombstone: bool = False
    headers: list[NewHeader] = field(default_factory=list)
    timestamp_ms: Annotated[int, Meta(ge=0, le=MAX_INT64)] | None = None


class Produced(View):
    """Where the record is."""

    partition: int
    offset: int


class ExportRequest(PlacedRequest):
    """Records as a file."""

    position: Position = "oldest"
    limit: int = EXPORT_RECORDS


# -- pages ----------------------------------------------------------------------------------------


async def messages(call: Call, request: MessagesRequest) -> Messages:
    """Make a page. Needs READ and DESCRIBE on the topic."""
    limit = request.limit
    if not 1 <= limit <= MAX_LIMIT:
        raise _invalid(f"limit is from 1 to {MAX_LIMIT}, not {limit}")
    wanted = _filter(request)
    decoder = _decoder(call, request.topic, request.format, _letters(limit))
    budget = Budget(SEARCH_BYTES, PAGE_S if wanted.is_empty else SEARCH_S)
    reader = await _reader(call, request, decoder, budget)
    cursor = await _beginning(reader, request)
    page = await Scanner(reader, wanted, cursor, limit, cut_bytes=MAX_DECODED_BYTES).page()
    return Messages(
        records=await _shown(call, request.topic, decoder, page.records),
        cursor=None if page.cursor is None else page.cursor.encode(),
        searched=page.searched,
        total=page.total,
        unreadable=_unreadable(reader),
    )


async def live_messages(call: Call, request: LiveRequest) -> LiveMessages:
    """What is new since the cursor; without one, nothing, but a cursor."""
    wanted = _filter(request)
    decoder = _decoder(call, request.topic, request.format, _letters(live.MAX_RECORDS))
    reader = await _reader(call, request, decoder, Budget(LIVE_BYTES, LIVE_S))
    partitions = _partitions(reader.topic, request.partition)
    ranges = await reader.ranges(partitions)
    last = live.at_the_end(ranges)
    if request.cursor is not None:
        known = {place.partition: place for place in cursors.decode(request.cursor).places}
        # A partition that is new is shown from its beginning. One of the cursor may be gone,
        # because the topic was created again. It is no error: the client could not go on.
        places = [known.get(number) or Place(number, 0, 0) for number in partitions]
        last = Cursor(newest=False, searched=0, total=0, places=places)
    news = await live.news(reader, wanted, last, ranges, MAX_DECODED_BYTES)
    return LiveMessages(
        records=await _shown(call, request.topic, decoder, news.records),
        skipped=news.skipped,
        cursor=news.cursor.encode(),
        unreadable=_unreadable(reader),
    )


def _next_live(request: LiveRequest, response: LiveMessages) -> LiveRequest:
    return replace(request, cursor=response.cursor)


async def _beginning(reader: Reader, request: PlacedRequest) -> Cursor:
    """Where a page begins. Raises ApiError."""
    partitions = _partitions(reader.topic, request.partition)
    if request.cursor is not None:
        return _cursor(request.cursor, partitions)
    ranges = await reader.ranges(partitions)
    newest = request.position == "newest"
    if newest:
        places = [Place(number, each.end, each.start) for number, each in ranges.items()]
    else:
        first = await _first_offsets(reader, request, ranges)
        places = [
            Place(number, min(max(first[number], each.start), each.end), each.end)
            for number, each in ranges.items()
        ]
    places = [place for place in places if place.next != place.bound]
    total = sum(abs(place.next - place.bound) for place in places)
    return Cursor(newest=newest, searched=0, total=total, places=places)


async def _first_offsets(
    reader: Reader, request: PlacedRequest, ranges: dict[int, Range]
) -> dict[int, int]:
    if request.position == "offset":
        if request.offset is None or request.offset < 0:
            raise _invalid("the position `offset` needs an offset")
        return dict.fromkeys(ranges, request.offset)
    if request.position == "time":
        if request.timestamp_ms is None or request.timestamp_ms < 0:
            raise _invalid("the position `time` needs timestampMs")
        found = await reader.offsets_at(ranges, request.timestamp_ms)
        return {number: found[number] if found[number] >= 0 else MAX_INT64 for number in ranges}
    return {number: each.start for number, each in ranges.items()}


def _partitions(topic: Topic, partition: int | None) -> list[int]:
    """The partitions to look into. Raises ApiError."""
    if partition is not None:
        if partition not in topic.partitions:
            text = f"topic {topic.name} has no partition {partition}"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return [partition]
    if len(topic.partitions) > MAX_PARTITIONS:
        text = f"topic {topic.name} has {len(topic.partitions)} partitions"
        raise _invalid(f"{text}: name one; at most {MAX_PARTITIONS} are shown together")
    return topic.partitions


def _cursor(text: str, partitions: Iterable[int]) -> Cursor:
    """Read a cursor of these partitions. Raises ApiError."""
    cursor = cursors.decode(text)
    known = set(partitions)
    if not all(place.partition in known for place in cursor.places):
        raise _invalid("the cursor is of other partitions")
    return cursor


async def _reader(
    call: Call,
    request: RecordsRequest,
    decoder: Decoder,
    budget: Budget,
) -> Reader:
    topic = await find_topic(call, request.topic)
    isolation = READ_COMMITTED if request.isolation == "read_committed" else 0
    return Reader(call, topic, isolation, decoder.matches_path, budget)


def _decoder(call: Call, topic: str, name: str, letters: int) -> Decoder:
    return Decoder(call, topic, name, letters, schemas_of(call.observed.broker))


def _filter(request: RecordsRequest) -> Filter:
    return filter_of(request.key, request.value, request.header, request.json_path)


def _letters(limit: int) -> int:
    """How many letters of a key or a value are shown."""
    return max(_SHORTEST_TEXT, min(TEXT_LETTERS, PAGE_LETTERS // limit))


def _unreadable(reader: Reader) -> list[UnreadableRecords]:
    return [UnreadableRecords(**each._asdict()) for each in reader.unreadable]


# -- records --------------------------------------------------------------------------------------


async def _shown(
    call: Call, topic: str, decoder: Decoder, picked: Sequence[Picked]
) -> list[MessageRecord]:
    outcomes = await outcomes_of(call, topic, picked)
    return [
        await _record(call, decoder, each, outcome)
        for each, outcome in call.sliced(zip(picked, outcomes, strict=True))
    ]


async def _record(
    call: Call, decoder: Decoder, picked: Picked, outcome: Outcome | None
) -> MessageRecord:
    key, value = await decoder.key_and_value(picked)
    header = picked.header
    has_producer = header.producer_id != NO_PRODUCER_ID
    has_epoch = header.partition_leader_epoch != NO_PARTITION_LEADER_EPOCH
    return MessageRecord(
        partition=picked.partition,
        offset=picked.offset,
        timestamp_ms=None if picked.timestamp_ms == NO_TIMESTAMP else picked.timestamp_ms,
        timestamp_type="LOG_APPEND_TIME" if header.is_log_append_time else "CREATE_TIME",
        key=key,
        value=value,
        headers=await _headers(call, decoder, picked),
        header_count=picked.header_count,
        size_bytes=picked.size_bytes,
        transaction=outcome,
        is_control=header.magic >= MAGIC_V2 and header.is_control,
        producer_id=header.producer_id if has_producer else None,
        producer_epoch=header.producer_epoch if has_producer else None,
        leader_epoch=header.partition_leader_epoch if has_epoch else None,
        compression=header.compression.name.lower(),
    )


async def _headers(call: Call, decoder: Decoder, picked: Picked) -> list[MessageHeader]:
    """The first headers, as many as have about the letters of one value."""
    shown = []
    left = max(decoder.max_text, HEADERS_LETTERS)
    for name, data in call.sliced(picked.headers):
        value = await decoder.header(data)
        left -= len(name) + (len(value.text) if value else 0) + _HEADER_LETTERS
        if left < 0:
            break
        shown.append(MessageHeader(name=name, value=value))
    return shown


async def message(call: Call, request: MessageRequest) -> Message:
    """Show one record, whatever has become of its transaction."""
    picked = await _picked(call, request, WHOLE_BYTES)
    decoder = _decoder(call, request.topic, request.format, TEXT_LETTERS)
    [outcome] = await outcomes_of(call, request.topic, [picked])
    return Message(
        record=await _record(call, decoder, picked, outcome),
        whole_key=_base64(picked.key, picked.key_bytes),
        whole_value=_base64(picked.value, picked.value_bytes),
        whole_headers=_whole_headers(picked),
    )


def _whole_headers(picked: Picked) -> list[WholeHeader] | None:
    if len(picked.headers) < picked.header_count:
        return None
    return [
        WholeHeader(name=name, value=_base64(value, len(value or b"")))
        for name, value in picked.headers
    ]


def _base64(data: bytes | None, size_bytes: int) -> str | None:
    if data is None or len(data) < size_bytes:
        return None
    return base64.b64encode(data).decode()


async def _picked(call: Call, request: MessageRequest, cut_bytes: int) -> Picked:
    """Find one record. Raises ApiError."""
    decoder = _decoder(call, request.topic, AUTO, TEXT_LETTERS)
    topic = await find_topic(call, request.topic)
    _partitions(topic, request.partition)
    reader = Reader(call, topic, 0, decoder.matches_path, Budget(SEARCH_BYTES, PAGE_S))
    where = f"{request.topic}-{request.partition}"
    start, end = (await reader.ranges([request.partition]))[request.partition]
    if not start <= request.offset < end:
        text = f"{where} has the offsets from {start} on and before {end}"
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
    place = Place(request.partition, request.offset, request.offset + 1)
    cursor = Cursor(newest=False, searched=0, total=1, places=[place])
    page = await Scanner(reader, Filter(), cursor, 1, cut_bytes=cut_bytes).page()
    if reader.unreadable:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, reader.unreadable[0].reason)
    if not page.records:
        text = f"{where} has no record at offset {request.offset}: it was compacted away"
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return page.records[0]


async def _whole(
    part: Callable[[Picked], bytes | None], request: MessageRequest, run: Run
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a record's key or value."""
    picked: Picked = await run(lambda call: _picked(call, request, UNLIMITED))
    for piece in _pieces(_not_null(part(picked))):
        yield piece


def _not_null(data: bytes | None) -> bytes:
    if data is None:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "it is null")
    return data


def _pieces(data: bytes) -> Iterable[bytes]:
    return (data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))


# -- writing --------------------------------------------------------------------------------------


async def produce(call: Call, request: NewMessage) -> Produced:
    """Write a record. Needs WRITE on the topic."""
    key = _bytes("key", request.key, request.key_base64)
    value = _bytes("value", request.value, request.value_base64)
    if (value is None) != request.is_tombstone:
        raise _invalid("a record has a value, or isTombstone is true: then its value is null")
    headers: RecordHeaders = tuple(
        (each.name, _bytes(f"value of the header {each.name}", each.value, each.value_base64))
        for each in request.headers
    )
    timestamp_ms = request.timestamp_ms
    if timestamp_ms is None:
        timestamp_ms = call.observed.broker.clock.now_ms()
    topic = await find_topic(call, request.topic)
    partition = _target(call, topic, request.partition, key)
    batch = build_batch([Record(key, value, timestamp_ms, headers)])
    data = ProducePartitionData(index=partition, records=bytes(batch))
    answer = await call.ask(
        ProduceRequest(
            acks=-1,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[
                ProduceTopicData(name=topic.name, topic_id=topic.topic_id, partition_data=[data])
            ],
        ),
        ProduceResponse,
        len(batch),
    )
    (done,) = answer.responses[0].partition_responses
    if done.error_code:
        errors = [each.batch_index_error_message or "" for each in done.record_errors]
        raise ApiError(ErrorCode(done.error_code), done.error_message or "; ".join(errors))
    return Produced(partition=partition, offset=done.base_offset)


def _target(call: Call, topic: Topic, partition: int | None, key: bytes | None) -> int:
    if partition is not None:
        return _partitions(topic, partition)[0]
    count = len(topic.partitions)
    return next(call.keyless) % count if key is None else partition_of(key, count, call.slices.step)


def _bytes(what: str, text: str | None, in_base64: str | None) -> bytes | None:
    if in_base64 is None:
        return None if text is None else text.encode()
    if text is not None:
        raise _invalid(f"the {what} is there twice, as text and in base64")
    try:
        return base64.b64decode(in_base64, validate=True)
    except (binascii.Error, ValueError):
        raise _invalid(f"the {what} is not in base64") from None


# -- export ---------------------------------------------------------------------------------------


async def export(request: ExportRequest, run: Run) -> AsyncGenerator[bytes, None]:
    """Yield records as lines of JSON, until there are `limit`, or all are searched."""
    if request.limit < 1:
        raise _invalid("limit is at least 1")
    cursor: Cursor | None = None
    left = request.limit
    while left > 0:
        step = _ExportStep(request, cursor, min(left, EXPORT_STEP))
        lines, page = await run(step)
        if not lines:
            yield b""  # sends the probe of the endpoint, which shows whether the client is there
        for line in lines:
            for piece in _pieces(line):
                yield piece
        left -= len(lines)
        cursor = page.cursor
        if cursor is None:
            return


class _ExportStep:
    """Reads some records of an export, as a handler."""

    def __init__(self, request: ExportRequest, cursor: Cursor | None, limit: int) -> None:
        self._request = request
        self._cursor = cursor
        self._limit = limit

    async def __call__(self, call: Call) -> tuple[list[bytes], Page]:
        request = self._request
        decoder = _decoder(call, request.topic, AUTO, _SHORTEST_TEXT)
        reader = await _reader(call, request, decoder, Budget(SEARCH_BYTES, PAGE_S))
        cursor = self._cursor or await _beginning(reader, request)
        scanner = Scanner(
            reader,
            _filter(request),
            cursor,
            self._limit,
            cut_bytes=UNLIMITED,
            max_headers=UNLIMITED,
        )
        page = await scanner.page()
        if reader.unreadable:
            bad = reader.unreadable[0]
            text = f"{request.topic}-{bad.partition}, offset {bad.first_offset}: {bad.reason}"
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, text)
        records = (each for each in page.records if not each.header.is_control)
        return [_line(call, request.topic, each) for each in call.sliced(records)], page


def _line(call: Call, topic: str, picked: Picked) -> bytes:
    return line_of(
        topic=topic,
        partition=picked.partition,
        offset=picked.offset,
        timestamp_ms=None if picked.timestamp_ms == NO_TIMESTAMP else picked.timestamp_ms,
        key=picked.key,
        value=picked.value,
        headers=picked.headers_json or headers_json(picked.headers, call.slices.step),
    )


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


_MESSAGES = "/topics/{topic}/messages"
_MESSAGE = "/topics/{topic}/partitions/{partition}/messages/{offset}"
_BYTES = "application/octet-stream"

ENDPOINTS = (
    Endpoint(
        method="GET",
        template=_MESSAGES,
        summary="A page of records.",
        handle=messages,
        request=MessagesRequest,
        response=Messages,
    ),
    Endpoint(
        method="GET",
        template=f"{_MESSAGES}/live",
        summary="The records that are new.",
        handle=live_messages,
        request=LiveRequest,
        response=LiveMessages,
        every_s=EVERY_S,
        next_request=_next_live,
    ),
    Endpoint(
        method="GET",
        template=f"{_MESSAGES}/export",
        summary="Records as lines of JSON, in odradek's own form.",
        request=ExportRequest,
        stream=export,
        content_type="application/x-ndjson",
        probe=b"\n",
    ),
    Endpoint(
        method="POST",
        template=_MESSAGES,
        summary="Write a record.",
        handle=produce,
        request=NewMessage,
        response=Produced,
    ),
    Endpoint(
        method="GET",
        template=_MESSAGE,
        summary="One record, with its whole key and value.",
        handle=message,
        request=MessageRequest,
        response=Message,
    ),
    Endpoint(
        method="GET",
        template=f"{_MESSAGE}/key",
        summary="The bytes of a record's key.",
        request=MessageRequest,
        stream=partial(_whole, attrgetter("key")),
        content_type=_BYTES,
    ),
    Endpoint(
        method="GET",
        template=f"{_MESSAGE}/value",
        summary="The bytes of a record's value.",
        request=MessageRequest,
        stream=partial(_whole, attrgetter("value")),
        content_type=_BYTES,
    ),
)
