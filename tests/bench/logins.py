"""Logins with SCRAM: odradek, and Apache Kafka beside it where Java is at hand.

The client has the salted password ready, so that a login costs it next to nothing. A login is a new
connection, SaslHandshake, the two steps of SCRAM, and the end of the connection.
"""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from odradek.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.bench.figures import Figures, Results
from tests.bench.swarm import now
from tests.bench.two_brokers import both, in_turns
from tests.support.broker_process import BrokerProcess
from tests.support.sasl import HASHES, add_scram_user
from tests.support.secured import secure, wait_until_open
from tests.support.wire import WireClient

USER, PASSWORD = "alice", "pencil"
AT_ONCE = 32
LOGINS = 6400


def scram_logins(mechanism: str, scratch: Path, rounds: int, share: int) -> Results:
    """Logins, AT_ONCE side by side."""
    brokers = both(scratch / f"logins-{time.time_ns()}", {})
    with ExitStack() as stack:
        ports = {}
        for name, broker in brokers.items():
            stack.callback(broker.stop)
            opened = secure(broker)
            broker.start()
            wait_until_open(opened)
            ports[name] = opened["IN"]
            with WireClient(broker.port) as admin:
                add_scram_user(admin, USER, PASSWORD, mechanism)
        clients = {
            name: ReadyClient(ports[name], mechanism) for name in brokers
        }  # one for each: the salts differ

        def measure(broker: BrokerProcess) -> Figures:
            client = clients[broker.name]
            cpu_s, began = broker.cpu_seconds(), now()
            for _ in range(LOGINS // share // AT_ONCE):
                client.log_in(AT_ONCE)
            count = LOGINS // share // AT_ONCE * AT_ONCE
            return {
                "logins_per_s": count / (now() - began),
                "cpu_us_per_login": (broker.cpu_seconds() - cpu_s) * 1e6 / count,
            }

        return in_turns(brokers, rounds, measure)


class ReadyClient:
    """Logs in many times with one password, which it salts and hashes once."""

    def __init__(self, port: int, mechanism: str) -> None:
        self._port = port
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._keys: tuple[bytes, bytes] | None = None

    def log_in(self, count: int) -> None:
        """Log in on so many connections."""
        clients = [WireClient(self._port) for _ in range(count)]
        try:
            handshake = SaslHandshakeRequest(mechanism=self._mechanism)
            for client in clients:
                client.send(client.frame_of(handshake, 1))
            for client in clients:
                assert client.read_answer(SaslHandshakeResponse, 1).error_code == 0
            bare = f"n={USER},r=rOprNGfwEbeRWgbNEkqO"
            for client in clients:
                client.send(token_frame(client, f"n,,{bare}"))
            firsts = [answer_of(client) for client in clients]
            for client, server_first in zip(clients, firsts, strict=True):
                client.send(token_frame(client, self._final(bare, server_first)))
            for client in clients:
                assert answer_of(client).startswith("v=")
        finally:
            for client in clients:
                client.close()

    def _final(self, bare: str, server_first: str) -> str:
        parts = dict(part.split("=", 1) for part in server_first.split(","))
        if self._keys is None:
            salted = hashlib.pbkdf2_hmac(
                self._hash, PASSWORD.encode(), base64.b64decode(parts["s"]), int(parts["i"])
            )
            client_key = hmac.digest(salted, b"Client Key", self._hash)
            self._keys = client_key, hashlib.new(self._hash, client_key).digest()
        client_key, stored_key = self._keys
        without_proof = f"c=biws,r={parts['r']}"
        signed = f"{bare},{server_first},{without_proof}".encode()
        signature = hmac.digest(stored_key, signed, self._hash)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}"


def token_frame(client: WireClient, text: str) -> bytes:
    """A request with a token."""
    return client.frame_of(SaslAuthenticateRequest(auth_bytes=text.encode()), 2)


def answer_of(client: WireClient) -> str:
    """The broker's token."""
    answer = client.read_answer(SaslAuthenticateResponse, 2)
    assert answer.error_code == 0, answer
    return answer.auth_bytes.decode()


WORKLOADS: dict[str, Callable[[Path, int, int], Results]] = {
    "logins_scram_sha_256": partial(scram_logins, "SCRAM-SHA-256"),
    "logins_scram_sha_512": partial(scram_logins, "SCRAM-SHA-512"),
}
