"""Reads the metrics out of OTLP bytes: OpenTelemetry's MetricsData, which is a protobuf message.

Only what clients of Kafka send is read: gauges and sums, with their attributes. The messages, with
the numbers of the fields that are read:

    MetricsData         1 resource_metrics
    ResourceMetrics     1 resource (first), 2 scope_metrics
    Resource            1 attributes
    ScopeMetrics        2 metrics
    Metric              1 name (first), 5 gauge, 7 sum
    Gauge               1 data_points
    Sum                 1 data_points, 2 aggregation_temporality, 3 is_monotonic
    NumberDataPoint     4 as_double, 6 as_int, 7 attributes
    KeyValue            1 key, 2 value
    AnyValue            1 string, 2 bool, 3 int, 4 double; others are read as an empty text

The bytes come from unknown clients, and two bytes can be a message. Therefore the readers
of repeated messages are generators that keep nothing: they yield after each field, and the caller
can do other work. Resources and data points must be small; an attribute is read at once. The fields
of all messages are counted, and limited.

Source: opentelemetry/proto/metrics/v1/metrics.proto, and protobuf's encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from typing import NamedTuple, TypeAlias

# Some 13,000 metrics. These take 0.2 seconds.
MAX_FIELDS = 400_000
MAX_MESSAGE_BYTES = 16 * 1024  # of a resource, a data point, a name
MAX_VARINT_BITS = 64
FIELDS_OF_AN_ATTRIBUTE = 3
DELTA = 1

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}
_LOWEST_TAG = 1 << 3  # there is no field 0
_MORE = 0x80  # a byte of an integer after which there is another
_DOUBLE = struct.Struct("<d")
_INT64 = struct.Struct("<q")

# Where a message or a text begins and ends.
Span: TypeAlias = tuple[int, int]
# A field's number, its wire type, and its value: a varint and 0, or where its bytes are.
Field: TypeAlias = tuple[int, int, int, int]
Attributes: TypeAlias = tuple[tuple[str, str], ...]


class OtlpError(ValueError):
    """The bytes are no MetricsData, or a part is too large."""


class TooManyFieldsError(OtlpError):
    """The bytes may be a MetricsData; reading it would take too long."""


class Point(NamedTuple):
    """One value of one metric. `is_monotonic`: it only grows. `is_delta`: it is to be added."""

    name: str
    attributes: Attributes
    value: float
    is_monotonic: bool
    is_delta: bool


# None stands for a step that has found no point.
Steps: TypeAlias = Generator[Point | None, None, None]


def read_points(data: bytes, max_fields: int = MAX_FIELDS) -> Steps:
    """Yield the points of a MetricsData, and None between them, so that others may go on.

    Raises OtlpError, and TooManyFieldsError.
    """
    return _Reader(data, max_fields).metrics_data()


class _Reader:
    """Reads one MetricsData. It has a method for each message, which takes where that is stored."""

    __slots__ = ("_data", "_fields_left")

    def __init__(self, data: bytes, max_fields: int) -> None:
        self._data = data
        self._fields_left = max_fields

    def metrics_data(self) -> Steps:
        """See read_points."""
        for number, wire_type, start, end in self._fields((0, len(self._data))):
            if number == 1 and wire_type == _BYTES:
                yield from self._resource_metrics((start, end))
            yield None

    def _resource_metrics(self, span: Span) -> Steps:
        attributes: Attributes = ()
        for number, wire_type, start, end in self._fields(span):
            if wire_type == _BYTES and number == 1:
                attributes = yield from self._resource(_small((start, end)))
            elif wire_type == _BYTES and number == 2:
                yield from self._scope_metrics((start, end), attributes)
            yield None

    def _scope_metrics(self, span: Span, attributes: Attributes) -> Steps:
        for number, wire_type, start, end in self._fields(span):
            if number == 2 and wire_type == _BYTES:
                yield from self._metric((start, end), attributes)
            yield None

    def _metric(self, span: Span, attributes: Attributes) -> Steps:
        name = ""
        for number, wire_type, start, end in self._fields(span):
            if wire_type == _BYTES and number == 1:
                name = self._text(_small((start, end)))
            elif wire_type == _BYTES and number == 5:
                yield from self._gauge((start, end), name, attributes)
            elif wire_type == _BYTES and number == 7:
                yield from self._sum((start, end), name, attributes)
            yield None

    def _gauge(self, span: Span, name: str, attributes: Attributes) -> Steps:
        for number, wire_type, start, end in self._fields(span):
            if number == 1 and wire_type == _BYTES:
                known, value = yield from self._data_point(_small((start, end)), attributes)
                yield Point(name, known, value, is_monotonic=False, is_delta=False)
            yield None

    def _sum(self, span: Span, name: str, attributes: Attributes) -> Steps:
        is_monotonic, is_delta = yield from self._kind_of_sum(span)
        for number, wire_type, start, end in self._fields(span):
            if number == 1 and wire_type == _BYTES:
                known, value = yield from self._data_point(_small((start, end)), attributes)
                yield Point(name, known, value, is_monotonic, is_delta)
            yield None

    def _kind_of_sum(self, span: Span) -> Generator[None, None, tuple[bool, bool]]:
        """Return `is_monotonic` and `is_delta`, which come after the data points."""
        is_monotonic = is_delta = False
        for number, wire_type, value, _ in self._fields(span):
            if wire_type == _VARINT and number == 2:
                is_delta = value == DELTA
            elif wire_type == _VARINT and number == 3:
                is_monotonic = bool(value)
            yield None
        return is_monotonic, is_delta

    def _data_point(
        self, span: Span, of_resource: Attributes
    ) -> Generator[None, None, tuple[Attributes, float]]:
        """Return the attributes of the resource and of the point, and its value."""
        self._fields_left -= FIELDS_OF_AN_ATTRIBUTE * len(of_resource)  # as if they were repeated
        attributes = list(of_resource)
        value = 0.0
        for number, wire_type, start, end in self._fields(span):
            if number == 4 and wire_type == _FIXED64:
                (value,) = _DOUBLE.unpack_from(self._data, start)
            elif number == 6 and wire_type == _FIXED64:
                (integer,) = _INT64.unpack_from(self._data, start)
                value = float(integer)
            elif number == 7 and wire_type == _BYTES:
                attributes.append(self._key_value((start, end)))
            yield None
        return tuple(attributes), value

    def _resource(self, span: Span) -> Generator[None, None, Attributes]:
        """Return the attributes."""
        attributes: list[tuple[str, str]] = []
        for number, wire_type, start, end in self._fields(span):
            if number == 1 and wire_type == _BYTES:
                attributes.append(self._key_value((start, end)))
            yield None
        return tuple(attributes)

    def _key_value(self, span: Span) -> tuple[str, str]:
        key = value = ""
        for number, wire_type, start, end in self._fields(span):
            if number == 1 and wire_type == _BYTES:
                key = self._text((start, end))
            elif number == 2 and wire_type == _BYTES:
                value = self._any_value((start, end))
        return key, value

    def _any_value(self, span: Span) -> str:
        text = ""
        for number, wire_type, start, end in self._fields(span):
            match number, wire_type:
                case 1, 2:  # _BYTES
                    text = self._text((start, end))
                case 2, 0:  # _VARINT
                    text = "true" if start else "false"
                case 3, 0:
                    text = str(start - (1 << 64) if start >> 63 else start)
                case 4, 1:  # _FIXED64
                    text = str(_DOUBLE.unpack_from(self._data, start)[0])
        return text

    def _text(self, span: Span) -> str:
        try:
            return self._data[span[0] : span[1]].decode()
        except UnicodeDecodeError:
            raise OtlpError(f"the text at byte {span[0]} is not UTF-8") from None

    def _fields(self, span: Span) -> Iterator[Field]:
        """Yield the fields of one message. Raises OtlpError."""
        data = self._data
        position, end = span
        while position < end:
            tag = data[position]
            position += 1
            self._fields_left -= 1
            if self._fields_left < 0:
                raise TooManyFieldsError("there are too many fields")
            if tag >= _MORE:
                tag, position = _varint(data, position - 1, end)
            if tag < _LOWEST_TAG:
                raise OtlpError(f"the field before byte {position} has no number")
            wire_type = tag & 7
            if wire_type == _VARINT:
                value, position = _varint(data, position, end)
                yield tag >> 3, wire_type, value, 0
                continue
            if wire_type == _BYTES:
                size, position = _varint(data, position, end)
            elif wire_type in _FIXED_SIZES:
                size = _FIXED_SIZES[wire_type]
            else:
                raise OtlpError(f"the field before byte {position} has the wire type {wire_type}")
            begin, position = position, position + size
            if position > end:
                raise OtlpError(
                    f"a field of {size} bytes begins at byte {begin}, and {end} is the end"
                )
            yield tag >> 3, wire_type, begin, position


def _small(span: Span) -> Span:
    """Return the span of a part that is read at once. Raises OtlpError if it is too large."""
    start, end = span
    if end - start > MAX_MESSAGE_BYTES:
        raise OtlpError(f"the part at byte {start} has more than {MAX_MESSAGE_BYTES} bytes")
    return span


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return an unsigned integer of at most 64 bits, and the position after it."""
    if position < end and data[position] < _MORE:
        return data[position], position + 1
    value = shift = 0
    while position < end and shift < MAX_VARINT_BITS:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
    raise OtlpError(f"the integer that ends at byte {position} is cut or too long")
