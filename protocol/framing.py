"""Checks frames: every request and response is preceded by its length in four bytes.

An impossible length is refused before any byte of the frame is stored. It rarely comes from a
broken Kafka client, and most often from a client of another protocol: "GET " read as a length is
1.2 GB. So `describe_foreign_bytes` recognizes other protocols, for the log line.

Kafka: org.apache.kafka.common.network.NetworkReceive.
"""

from .api_keys import ApiKey

LENGTH_BYTES = 4

_HTTP_METHODS = (
    b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ",
)  # fmt: skip
_ZOOKEEPER_WORDS = (
    b"conf", b"cons", b"crst", b"dirs", b"dump", b"envi", b"gtmk", b"hash", b"isro", b"mntr",
    b"ruok", b"srst", b"srvr", b"stat", b"stmk", b"wchc", b"wchp", b"wchs",
)  # fmt: skip
_SIGNATURES = (
    (b"PRI * HTTP/2", "HTTP/2"),
    (b"HTTP/", "an HTTP response"),
    (b"PROXY ", "a PROXY protocol header: is a load balancer set to send one?"),
    (b"\r\n\r\n\x00\r\nQUIT\n", "a PROXY protocol header: is a load balancer set to send one?"),
    (b"SSH-", "SSH"),
    (b"AMQP", "AMQP"),
    (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", "a PostgreSQL client"),
)
TLS_HANDSHAKE = 0x16
_TLS_ALERT = 0x15
_SSL2_CLIENT_HELLO = 0x01


class FrameError(Exception):
    """The length prefix is not one that a frame may have."""


def check_frame_size(size_bytes: int, max_bytes: int) -> None:
    """Raise FrameError unless a request may have this size; `max_bytes` is the broker's limit."""
    if size_bytes < 0:
        raise FrameError(f"a request of {size_bytes} bytes: the size is negative")
    if size_bytes > max_bytes:
        raise FrameError(
            f"a request of {size_bytes} bytes is larger than socket.request.max.bytes={max_bytes}"
        )


def describe_not_tls(first: bytes) -> str:
    """Return what came in place of a TLS hello; for a log line. Sixteen bytes are enough."""
    guess = _foreign_protocol(first)
    if guess is None and _is_request(first):
        guess = "a Kafka request: is the client's security.protocol right?"
    return f"no TLS: that was {guess}" if guess else "no TLS: its first bytes are no TLS hello"


def describe_foreign_bytes(first: bytes) -> str | None:
    """Return the protocol of a connection that begins with these bytes; None if it is unknown.

    `first` includes the length prefix; sixteen bytes are enough. Used for a log line only.
    """
    kind = _foreign_protocol(first)
    return f"that was {kind}" if kind else None


def _is_request(first: bytes) -> bool:
    """Whether a small request with a known API key begins like this."""
    size, key = int.from_bytes(first[:4]), int.from_bytes(first[4:6])
    return len(first) >= 6 and 8 <= size < 1 << 20 and key in ApiKey.__members__.values()


def _foreign_protocol(first: bytes) -> str | None:
    for method in _HTTP_METHODS:
        if first.startswith(method):
            return f"HTTP ({method.decode().strip()})"
    for signature, name in _SIGNATURES:
        if first.startswith(signature):
            return name
    if first[:4] in _ZOOKEEPER_WORDS:
        return f"ZooKeeper's four-letter word {first[:4].decode()!r}"
    return _tls(first)


def _tls(first: bytes) -> str | None:
    """Recognize a TLS record by its type and version 3.x, or an SSL 2 hello (still in use)."""
    if len(first) < LENGTH_BYTES:
        return None
    if first[0] == TLS_HANDSHAKE and first[1] == 3:
        return "a TLS hello: this listener is not TLS, is the client's security.protocol right?"
    if first[0] == _TLS_ALERT and first[1] == 3:
        return "a TLS alert"
    if first[0] & 0x80 and first[2] == _SSL2_CLIENT_HELLO and first[3] in (2, 3):
        return "an SSL hello: this listener is not TLS, is the client's security.protocol right?"
    return None
