"""The headers of requests and responses.

    request v1                           request v2        response v0           response v1
    api_key            int16             as v1, then       correlation_id int32  as v0, then
    api_version        int16             tagged fields                           tagged fields
    correlation_id     int32
    client_id          nullable string (always with a 16-bit length, so that any broker can read it)

The API key and version of a request determine its header: v2 from the first flexible version on. So
the headers of requests that the broker does not serve can be read, too. This is needed to name them
in the log, and to answer ApiVersions in an unknown future version. The response to ApiVersions
always has header v0, because a client reads it before it knows which versions the broker supports
(KIP-511). One request has header v0, without a client id: version 0 of the removed
ControlledShutdown.

Kafka: org.apache.kafka.common.requests.RequestHeader, the generated ApiMessageType.
"""

import struct

import msgspec

from .api_keys import ApiKey
from .primitives import skip_tags
from .schema import DecodeError

CONTROLLED_SHUTDOWN = 7  # the key of a removed API

_NEVER = 0x7FFF
# The first flexible version of each API. On the wire: never renumber. This is not read from the
# message classes, because it is needed also for APIs whose classes are not loaded.
_FIRST_FLEXIBLE = {
    **dict.fromkeys(range(45, 95), 0),  # the following lines override some of these
    **dict.fromkeys([27, 44, 48, 49, 53, 54], 1),
    **dict.fromkeys([21, 22, 29, 30, 31, *range(33, 44)], 2),
    **dict.fromkeys([10, 16, 18, 24, 25, 26, 28], 3),
    **dict.fromkeys([12, 13, 14, 20, 23, 32], 4),
    **dict.fromkeys([15, 19], 5),
    **dict.fromkeys([2, 9, 11], 6),
    8: 8,
    0: 9,
    3: 9,
    1: 12,
    17: _NEVER,
    47: _NEVER,
}

# Clients send none. Many would take the broker long to skip.
MAX_TAGS = 100

_FIXED = struct.Struct(">hhih")


class RequestHeader(msgspec.Struct, frozen=True, gc=False):
    """The header of a request. A null client id becomes an empty one, as in Kafka."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str


def has_flexible_response_header(api_key: ApiKey, is_flexible: bool) -> bool:
    """Whether the header of a response ends with tagged fields."""
    return is_flexible and api_key is not ApiKey.API_VERSIONS


def read_request_header(data: memoryview, position: int = 0) -> tuple[RequestHeader, int]:
    """Read the header at `position`; returns it and the position of the request's own fields.

    For an unknown API nothing after the client id is read. Raises DecodeError.
    """
    limit = len(data)
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(data, position)
        end = position + 10
        client_id = ""
        if length > 0:
            end += length
            if end > limit:
                raise ValueError(f"a client id of {length} bytes does not fit")
            client_id = data[position + 10 : end].tobytes().decode("utf-8", "replace")
        if api_version >= _FIRST_FLEXIBLE.get(api_key, _NEVER):
            if data[end] > MAX_TAGS:
                raise ValueError(f"more than {MAX_TAGS} tagged fields")
            end = skip_tags(data, end, limit) if data[end] else end + 1
        elif api_key == CONTROLLED_SHUTDOWN and api_version == 0:
            client_id, end = "", position + 8
    except (struct.error, IndexError):
        raise DecodeError(f"request of {limit - position} bytes: its header is cut off") from None
    except ValueError as error:
        raise DecodeError(f"request of {limit - position} bytes: header: {error}") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id), end
