"""Finds out whether a port speaks TLS or Kafka's protocol in plain, whatever the client expects."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import NamedTuple

TIMEOUT_S = 3.0
# ApiVersions v0, correlation id 1, no client id: every broker answers it on a plain port.
_PLAIN_REQUEST = struct.pack(">ihhih", 10, 18, 0, 1, -1)


class Mismatch(NamedTuple):
    """How a port and the client's security.protocol differ, and what to do.

    `is_silent`: the port speaks neither.
    """

    text: str
    advice: str
    is_silent: bool = False


def find_mismatch(host: str, port: int, *, uses_tls: bool) -> Mismatch | None:
    """Compare what a port speaks with what the client does; None if it is the same.

    What the client speaks is asked first: a port that speaks it gets no request that it refuses.
    """
    if uses_tls:
        if _speaks_tls(host, port):
            return None
        if _speaks_plainly(host, port):
            return Mismatch(
                f"{host}:{port} speaks Kafka's protocol without TLS, and the client wants TLS",
                "set security.protocol=PLAINTEXT (or SASL_PLAINTEXT), or use the port of the SSL"
                " listener",
            )
        return Mismatch(
            f"{host}:{port} speaks no TLS",
            "check that a Kafka broker listens there",
            is_silent=True,
        )
    if _speaks_plainly(host, port):
        return None
    if _speaks_tls(host, port):
        return Mismatch(
            f"{host}:{port} speaks TLS, and the client does not",
            "set security.protocol=SSL (or SASL_SSL) in the file of --config",
        )
    return Mismatch(
        f"{host}:{port} does not answer as a Kafka broker does",
        "check that a Kafka broker listens there, and not another program",
        is_silent=True,
    )


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the system's authorities
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # only whether it is TLS; the client verifies later
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as plain:
            context.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # such as that it wants a client certificate
    except OSError:
        return False
    return True


def _speaks_plainly(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as plain:
            plain.sendall(_PLAIN_REQUEST)
            return plain.recv(8, socket.MSG_WAITALL)[4:] == struct.pack(">i", 1)
    except OSError:
        return False
