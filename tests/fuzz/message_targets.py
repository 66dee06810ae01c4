"""Targets: messages, requests as the broker reads them, records of the internal logs.

messages   3 bytes that name the message | version | its bytes
requests   a frame without its length: header and body
journals   which codec | key length, 255 for null | key | value    (top bit of the first: null)
controls   key length | key of a control record | its value
consumers  an int16 version | subscription or assignment
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from odradek.broker.common.clock import Clock
from odradek.broker.producing.single_batch import SingleBatches
from odradek.broker.requests.answer import RefusedRequestError, SlicedAnswer
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.turns.slices import Make, Result, Slices, Surroundings
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import (
    CoordinatorRecordCodec,
    MetadataRecordCodec,
    RecordCodec,
)
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.reader_source import ReaderSource
from odradek.protocol.records import (
    cluster_metadata,
    consumer_offsets,
    share_group_state,
    transaction_state,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
    subscribed_topics,
)
from odradek.protocol.records.control import (
    QUORUM_RECORDS,
    ControlRecordType,
    control_key,
    control_type,
    coordinator_epoch_of,
    decode_quorum_record,
    end_txn_value,
)
from odradek.protocol.schema import DecodeError, Message, codec_for
from tests.fuzz.target import Target
from tests.support.messages import all_messages, sample, smallest, versions_of

SELECTOR_BYTES = 3
NULL_KEY = 255
NULL_VALUE_BIT = 0x80

_FIXED_HEADER = struct.Struct(">hhih")
_INT16 = struct.Struct(">h")


# --- messages


def selector(message: type[Message]) -> bytes:
    """The bytes that name a message: of its name, so that new messages rename no old one."""
    return zlib.crc32(message.__name__.encode()).to_bytes(4, "big")[:SELECTOR_BYTES]


@cache
def messages_by_selector() -> Mapping[bytes, type[Message]]:
    """All messages by the bytes that name them."""
    made = {selector(message): message for message in all_messages()}
    assert len(made) == len(all_messages()), "two messages have one selector"
    return made


def read_message(data: bytes) -> None:
    """A message of any version; also of versions that it does not have."""
    message = messages_by_selector().get(data[:SELECTOR_BYTES])
    if message is None or len(data) <= SELECTOR_BYTES:
        return
    version, body = data[SELECTOR_BYTES], memoryview(data)[SELECTOR_BYTES + 1 :]
    try:
        value, end = codec_for(message, version).decode(body)
    except DecodeError:
        return
    assert end <= len(body)
    assert same(message.decode(body[:end], version), value), "it reads beyond its end"
    again, same_end = careful_reader(message, version)(body, 0)
    assert same(again, value), f"the careful reader says {again}, the quick one {value}"
    assert same_end == end
    check_round_trip(value, version)


@cache
def careful_reader(message: type[Message], version: int) -> Callable[..., tuple[Message, int]]:
    """The reader without shortcuts: the quick one may give what this one gives, and no more."""
    return ReaderSource(message, version).compiled("read")


def check_round_trip(value: Message, version: int) -> None:
    """What was decoded encodes, and decodes to an equal value, and to the same bytes again."""
    written = value.encode(version)
    again = type(value).decode(written, version)
    assert same(again, value), f"{again} was {value}"
    assert again.encode(version) == written


def same(one: Message, other: Message) -> bool:
    """Equal, where a NaN equals a NaN: messages with floats hold no borrowed bytes."""
    return one == other or repr(one) == repr(other)


def message_seeds() -> Iterator[bytes]:
    """A full and an empty value of the oldest, the newest and the first flexible version."""
    for message in all_messages():
        versions = versions_of(message)
        for version in sorted({versions[0], versions[-1], message.SPEC.flexible.lowest}):
            if version not in versions:
                continue
            for value in (sample(message, version), smallest(message, version)):
                yield selector(message) + bytes([version]) + value.encode(version)


# --- requests


def _recorder(request: type[Message], served: list[Any]) -> Callable[[Any, Any], None]:
    """A handler of that request which notes it and has no answer."""

    def handle(context: Any, request: Any) -> None:
        served.append((context.api_version, request))

    handle.__annotations__["request"] = request  # by which dispatch knows what to read
    return handle


@cache
def request_classes() -> Mapping[ApiKey, type[Message]]:
    """The request of every API that is declared."""
    return {
        message.SPEC.key: message
        for message in all_messages()
        if message.SPEC.key is not None and message.__name__.endswith("Request")
    }


@cache
def _dispatcher() -> tuple[Dispatcher, list[Any]]:
    served: list[Any] = []
    handlers = {key: _recorder(request, served) for key, request in request_classes().items()}
    syncs = SimpleNamespace(due={}, coordinators=(), lost_count=0)
    broker: Any = SimpleNamespace(
        clock=Clock(lambda: 0),
        log_syncs=syncs,
        quotas=SimpleNamespace(is_active=False),
        turns=SimpleNamespace(slices=SimpleNamespace(begin=_at_once)),
        traffic=None,
    )
    return Dispatcher(broker, handlers, SingleBatches()), served


def _at_once(make: Make[Any]) -> Result[Any]:
    """Serve a request in one slice, without an event loop."""
    nothing = Surroundings(lambda _: None, lambda: None)
    try:
        make(Slices(nothing)).send(None)
    except StopIteration as end:
        return Result(end.value)
    raise AssertionError("the handler waits for nothing")


def read_request(data: bytes) -> None:
    """A frame, through the broker's own dispatch, to a handler that only notes what it got."""
    dispatcher, served = _dispatcher()
    served.clear()
    session: Any = SimpleNamespace(guard=None)
    try:
        answer = dispatcher.dispatch(session, memoryview(data))
        if isinstance(answer, SlicedAnswer):
            answer.begin(memoryview(data))
            assert answer.response is None
        else:
            assert answer is None
    except (DecodeError, RefusedRequestError):
        assert not served
        return
    ((version, request),) = served
    if request is not None:  # an ApiVersions of a version that is yet to come
        check_round_trip(request, version)


def request_seeds() -> Iterator[bytes]:
    """A full request of the oldest and the newest version of each API."""
    for key, request in request_classes().items():
        versions = versions_of(request)
        for version in {versions[0], versions[-1]}:
            client = b"rdkafka"
            header = _FIXED_HEADER.pack(key, version, 7, len(client)) + client
            tags = b"\0" if version in request.SPEC.flexible else b""
            yield header + tags + sample(request, version).encode(version)
    yield _FIXED_HEADER.pack(ApiKey.API_VERSIONS, 99, 1, -1) + b"\0"


# --- records of the internal logs


# The numbers are in the corpus: never renumber.
COORDINATOR_TYPES = {
    1: consumer_offsets.RECORD_TYPES,
    2: transaction_state.RECORD_TYPES,
    3: share_group_state.RECORD_TYPES,
}
JOURNAL_CODECS: Mapping[int, RecordCodec] = {
    0: MetadataRecordCodec.of_cluster(),
    **{number: CoordinatorRecordCodec(types) for number, types in COORDINATOR_TYPES.items()},
}


def read_journal_record(data: bytes) -> None:
    """A record of an internal log, by its codec."""
    if len(data) < 2:
        return
    codec = JOURNAL_CODECS.get(data[0] & ~NULL_VALUE_BIT)
    if codec is None:
        return
    key: bytes | None = None
    position = 2
    if data[1] != NULL_KEY:
        position += data[1]
        key = data[2:position]
    value = None if data[0] & NULL_VALUE_BIT else data[position:]
    try:
        record = codec.decode(key, value)
    except DecodeError:
        return
    if record is not None:
        again = codec.decode(*codec.encode(record))
        assert again is not None
        assert again == record or repr(again) == repr(record), f"{again} was {record}"


def journal_seeds() -> Iterator[bytes]:
    """A record of every type, in the newest version."""
    for number, codec in JOURNAL_CODECS.items():
        for record in _journal_records(number):
            key, value = codec.encode(record)
            head = bytes([number | (NULL_VALUE_BIT if value is None else 0)])
            framed = bytes([NULL_KEY]) if key is None else bytes([len(key)]) + key
            yield head + framed + (value or b"")


def _journal_records(number: int) -> Iterator[JournalRecord]:
    if number == 0:
        for message in cluster_metadata.RECORD_TYPES.values():
            newest = versions_of(message)[-1]
            yield JournalRecord(sample(message, newest), newest)
        return
    for key, value in COORDINATOR_TYPES[number].values():
        newest = versions_of(value)[-1]
        yield JournalRecord(sample(value, newest), newest, sample(key, 0))
        yield JournalRecord(None, 0, sample(key, 0))


def read_control_record(data: bytes) -> None:
    """The key and the value of a control record."""
    if not data:
        return
    end = 1 + data[0]
    key, value = data[1:end], data[end:]
    try:
        kind = control_type(key)
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            epoch = coordinator_epoch_of(value)
            assert coordinator_epoch_of(end_txn_value(epoch)) == epoch
        elif kind is not None:
            version: int = _INT16.unpack_from(value)[0] if len(value) > 1 else 0
            check_round_trip(decode_quorum_record(kind, value), version)
    except DecodeError:
        return


def control_seeds() -> Iterator[bytes]:
    """One of every kind."""
    for kind in ControlRecordType:
        key = control_key(kind)
        message = QUORUM_RECORDS.get(kind)
        value = end_txn_value(3) if message is None else sample(message, 0).encode(0)
        yield bytes([len(key)]) + key + value


def read_consumer_protocol(data: bytes) -> None:
    """What a member tells the others: the same bytes as a subscription, and as an assignment."""
    for message in (ConsumerProtocolSubscription, ConsumerProtocolAssignment):
        try:
            value = decode_versioned(message, data)
        except DecodeError:
            continue
        version = min(_INT16.unpack_from(data)[0], message.SPEC.versions.highest)
        assert decode_versioned(message, encode_versioned(value, version)) == value
    try:
        topics = subscribed_topics(data)
    except DecodeError:
        return
    assert all(isinstance(topic, str) for topic in topics)


def consumer_seeds() -> Iterator[bytes]:
    """Both, in every version."""
    for message in (ConsumerProtocolSubscription, ConsumerProtocolAssignment):
        for version in versions_of(message):
            yield encode_versioned(sample(message, version), version)


TARGETS = {
    "messages": Target(read_message, message_seeds),
    "requests": Target(read_request, request_seeds),
    "journals": Target(read_journal_record, journal_seeds),
    "controls": Target(read_control_record, control_seeds),
    "consumers": Target(read_consumer_protocol, consumer_seeds),
}
