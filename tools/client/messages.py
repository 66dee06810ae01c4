"""Keys, values and headers of librdkafka's messages.

confluent-kafka declares wider types than a consumer gets: librdkafka gives bytes.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Message


def as_bytes(value: Any) -> bytes | None:
    """A key or a value as bytes; None: null. Other types, which are not expected, as UTF-8 text."""
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    """The headers in order; a name may occur several times."""
    headers: Any = message.headers() or []
    return [(name, as_bytes(value)) for name, value in headers]
