"""Decodes keys and values with the decoder that the user names.

It raises UnreadableError where Kafka's tool would stop. Records of internal topics have decoders in
coordinator/inspect.

Kafka: DumpLogSegments.MessageParser, org.apache.kafka.tools.api.Decoder.
"""

import base64
import struct
from collections.abc import Callable, Mapping

from odradek.coordinator.inspect.internal_records import AnyRecord, Decoded, RecordDecoder
from odradek.coordinator.inspect.kafka_json import Json
from odradek.storage.inspect.raw_message import UnreadableError

from .java_text import decode_text

BytesDecoder = Callable[[bytes], Json]


class UnknownDecoderError(Exception):
    """The given class name is not one of Kafka's own decoders."""


def _number_decoder(code: str) -> BytesDecoder:
    number = struct.Struct(code)

    def decode(data: bytes) -> Json:
        if len(data) < number.size:
            raise UnreadableError(f"{len(data)} bytes are too few for a number of {number.size}")
        value: int = number.unpack_from(data)[0]
        return value

    return decode


_PACKAGE = "org.apache.kafka.tools.api."
_BYTES_DECODERS: Mapping[str, BytesDecoder] = {
    "StringDecoder": decode_text,
    "IntegerDecoder": _number_decoder(">i"),
    "LongDecoder": _number_decoder(">q"),
}


def text_or_base64(data: bytes) -> Json:
    """The JSON of bytes: the text if they are UTF-8, else {"base64": ...}."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def bytes_decoder(class_name: str) -> BytesDecoder:
    """Return Kafka's decoder of that class name. Raises UnknownDecoderError."""
    found = _BYTES_DECODERS.get(class_name.removeprefix(_PACKAGE))
    if found is None:
        raise UnknownDecoderError(
            f"{class_name} is not supported: use one of Kafka's own decoders, "
            + ", ".join(_PACKAGE + name for name in _BYTES_DECODERS)
        )
    return found


def plain_decoder(key: BytesDecoder, value: BytesDecoder) -> RecordDecoder:
    """Make a decoder for ordinary topics: key and value are decoded separately."""

    def decode(record: AnyRecord) -> Decoded:
        raw_key, raw_value = record.key, record.value
        decoded_key = None if raw_key is None else key(raw_key)
        return Decoded(decoded_key, None if raw_value is None else value(raw_value))

    return decode
