"""The same frames of a login to Apache Kafka and to odradek must get the same bytes back.

What Kafka sends is kept (tests/support/kafka_answers).
The random parts are taken out: nonces, salts and signatures of SCRAM. The answer to a good
ApiVersions is only its error code, and the order of the mechanisms is Kafka's hash table's.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess, running
from tests.support.kafka_answers import as_kept, kafka_answers
from tests.support.sasl import ScramClient, add_scram_user, unsecured_token
from tests.support.secured import PASSWORDS, secure, wait_until_open
from tests.support.wire import ConnectionEndedError, WireClient, request_frame

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

CLOSED = "closed"
FAR_S = 4_000_000_000
ALICE = f"\0alice\0{PASSWORDS['alice']}".encode()
BOB = f"\0bob\0{PASSWORDS['bob']}".encode()
SOFTWARE = ApiVersionsRequest(client_software_name="a", client_software_version="1")
Ports = dict[str, int]


class Talk:
    """One connection, and what came back on it."""

    def __init__(self, port: int) -> None:
        self.heard: list[object] = []
        self._client = WireClient(port)

    def raw(self, payload: bytes, *, answered: bool = True) -> bytes | None:
        """Send a frame; return the frame that comes back, or None if the broker hung up."""
        try:
            self._client.send_frame(payload)
            answer = bytes(self._client.read_frame()) if answered else b""
        except (ConnectionEndedError, ConnectionError):
            self.heard.append(CLOSED)
            return None
        return answer

    def versions(self, request: ApiVersionsRequest = SOFTWARE, version: int = 3) -> None:
        answer = self.raw(frame(request, version))
        if answer is not None:
            (code,) = struct.unpack_from(">h", answer, 4)
            self.heard.append(code or ApiVersionsResponse.__name__)

    def handshake(self, mechanism: str, version: int = 1) -> None:
        answer = self.raw(frame(SaslHandshakeRequest(mechanism=mechanism), version))
        if answer is not None:
            decoded: Any = SaslHandshakeResponse.decode(memoryview(answer)[4:], version)
            self.heard.append((answer[:4], decoded.error_code, sorted(decoded.mechanisms)))

    def token(self, token: bytes, version: int = 2, *, hides_token: bool = False) -> bytes:
        """Send a token; return the broker's, which is noted unless it is random."""
        answer = self.raw(frame(SaslAuthenticateRequest(auth_bytes=token), version))
        if answer is None:
            return b""
        decoded: Any = SaslAuthenticateResponse.decode(
            memoryview(answer)[4 + (version >= 2) :], version
        )
        lifetime_ms = decoded.session_lifetime_ms
        shown = (
            (decoded.error_code, decoded.error_message, len(decoded.auth_bytes))
            if hides_token
            else answer
        )
        self.heard.append(shown if lifetime_ms == 0 else (decoded.error_code, lifetime_ms > 0))
        found: bytes = decoded.auth_bytes
        return found

    def raw_token(self, token: bytes) -> None:
        answer = self.raw(token)
        if answer is not None:
            self.heard.append(answer)

    def metadata(self) -> None:
        answer = self.raw(frame(MetadataRequest(topics=[]), 12))
        if answer is not None:
            self.heard.append(MetadataResponse.__name__)

    def closed(self) -> None:
        """Note whether the broker has hung up."""
        self.heard.append(CLOSED if self._client.is_closed_by_peer(1.0) else "open")

    def end(self) -> None:
        self._client.close()


def frame(request: Any, version: int) -> bytes:
    return request_frame(request, version, 7, "talk")[4:]


# -- the conversations -----------------------------------------------------------------------------


def good_logins(talk: Talk) -> None:
    talk.versions()
    talk.handshake("PLAIN")
    talk.token(ALICE)
    talk.metadata()
    talk.handshake("PLAIN")
    talk.token(ALICE)
    talk.metadata()


def old_versions(talk: Talk) -> None:
    talk.versions(ApiVersionsRequest(), 0)
    talk.handshake("PLAIN")
    talk.token(b"alice" + ALICE, 0)
    talk.metadata()


def tokens_without_headers(talk: Talk) -> None:
    talk.handshake("PLAIN", 0)
    talk.raw_token(ALICE)
    talk.metadata()


def wrong_tokens_without_headers(talk: Talk) -> None:
    talk.handshake("PLAIN", 0)
    talk.raw_token(b"\0alice\0wrong")


def disabled_mechanism(talk: Talk) -> None:
    talk.handshake("GSSAPI")
    talk.closed()


def disabled_mechanism_of_old_clients(talk: Talk) -> None:
    talk.handshake("OAUTHBEARER", 0)
    talk.closed()


def unknown_version_of_api_versions(talk: Talk) -> None:
    talk.raw(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1))
    talk.versions()
    talk.handshake("PLAIN")


def bad_software_name(talk: Talk) -> None:
    talk.versions(ApiVersionsRequest(client_software_name="-"))
    talk.versions()
    talk.versions()


def unknown_version_of_the_handshake(talk: Talk) -> None:
    talk.raw(struct.pack(">hhih", ApiKey.SASL_HANDSHAKE, 2, 7, -1) + b"\0\5PLAIN")


def metadata_first(talk: Talk) -> None:
    talk.metadata()


def metadata_after_versions(talk: Talk) -> None:
    talk.versions()
    talk.metadata()


def kerberos_token_first(talk: Talk) -> None:
    talk.raw(b"\x60\x82\x01\x00" + bytes(200))


def http_first(talk: Talk) -> None:
    talk.raw(b"GET / HTTP/1.1\r\n\r\n")


def token_first(talk: Talk) -> None:
    talk.token(ALICE)


def metadata_instead_of_a_token(talk: Talk) -> None:
    talk.handshake("PLAIN")
    talk.raw(frame(MetadataRequest(topics=[]), 12), answered=False)


def second_handshake(talk: Talk) -> None:
    talk.handshake("PLAIN")
    talk.handshake("PLAIN")
    talk.closed()


def large_frame(talk: Talk) -> None:
    talk.handshake("PLAIN")
    talk.raw(frame(SaslAuthenticateRequest(auth_bytes=bytes(60_000)), 2))


def plain_token(token: bytes) -> Callable[[Talk], None]:
    def talks(talk: Talk) -> None:
        talk.handshake("PLAIN")
        talk.token(token)
        talk.closed()

    return talks


def scram_first(message: bytes) -> Callable[[Talk], None]:
    def talks(talk: Talk) -> None:
        talk.handshake("SCRAM-SHA-256")
        talk.token(message, hides_token=True)
        talk.closed()

    return talks


def scram_login(
    password: str, extensions: str = "", nonce: str | None = None
) -> Callable[[Talk], None]:
    def talks(talk: Talk) -> None:
        scram = ScramClient("SCRAM-SHA-512", "carol", password, extensions)
        talk.handshake("SCRAM-SHA-512")
        server_first = talk.token(scram.first())[:0] or talk.heard.pop()
        assert isinstance(server_first, bytes)
        decoded: Any = SaslAuthenticateResponse.decode(memoryview(server_first)[5:], 2)
        final = scram.final(decoded.auth_bytes, nonce=nonce)
        verifier = talk.token(final, hides_token=True)
        if verifier:
            scram.check(verifier)
        talk.metadata()

    return talks


def scram_garbage_at_the_end(talk: Talk) -> None:
    talk.handshake("SCRAM-SHA-512")
    talk.token(ScramClient("SCRAM-SHA-512", "carol", "x").first())
    talk.heard.pop()
    talk.token(b"c=biws,r=abc")
    talk.closed()


IN: dict[str, Callable[[Talk], None]] = {
    one.__name__: one
    for one in (
        good_logins,
        old_versions,
        tokens_without_headers,
        wrong_tokens_without_headers,
        disabled_mechanism,
        disabled_mechanism_of_old_clients,
        unknown_version_of_api_versions,
        bad_software_name,
        unknown_version_of_the_handshake,
        metadata_first,
        metadata_after_versions,
        kerberos_token_first,
        http_first,
        token_first,
        metadata_instead_of_a_token,
        second_handshake,
        large_frame,
        scram_garbage_at_the_end,
    )
} | {
    **{
        f"PLAIN {token!r}": plain_token(token)
        for token in (
            b"",
            b"\0\0",
            b"\0\0\0",
            b"\0alice\0wrong",
            b"\0nobody\0x",
            b"\0\0x",
            b"\0alice\0",
            b"bob" + ALICE,
            ALICE + b"\0",
            ALICE + b"\0\0\0",
            b"\0alice\xff\0x",
        )
    },
    **{
        f"SCRAM {message!r}": scram_first(message)
        for message in (
            b"",
            b"n,,n=carol,r=",
            b"n,,n=,r=x",
            b"n,,n=carol",
            b"y,,n=carol,r=x",
            b"p=tls-unique,,n=carol,r=x",
            b"n,a=bob,n=carol,r=x",
            b"n,,n=carol=,r=x",
            b"n,,n=carol,r=x,tokenauth",
            b"n,,n=carol,r=x\xff",
        )
    },
    "SCRAM right": scram_login("pencil"),
    "SCRAM right with an extension": scram_login("pencil", ",a=b"),
    "SCRAM wrong password": scram_login("pen"),
    "SCRAM wrong nonce": scram_login("pencil", nonce="x"),
}


def oauth(initial: str, *, again: bool = True) -> Callable[[Talk], None]:
    def talks(talk: Talk) -> None:
        talk.handshake("OAUTHBEARER")
        talk.token(initial.encode())
        if again:
            talk.token(b"\x01")
        talk.closed()

    return talks


GOOD = {"sub": "alice", "exp": FAR_S, "scope": "kafka"}


def bearer(token: str, authzid: str = "", more: str = "") -> str:
    return f"n,{authzid},\x01auth=Bearer {token}\x01{more}\x01"


OAUTH: dict[str, Callable[[Talk], None]] = {
    "right": oauth(bearer(unsecured_token(GOOD), more="a=b\x01"), again=False),
    "right with a name": oauth(bearer(unsecured_token(GOOD), "a=alice"), again=False),
    "another name": oauth(bearer(unsecured_token(GOOD), "a=bob"), again=False),
    "no scope": oauth(bearer(unsecured_token({**GOOD, "scope": ""}))),
    "scope of two words": oauth(bearer(unsecured_token({**GOOD, "scope": "kafka x"}))),
    "scope as a list": oauth(
        bearer(unsecured_token({**GOOD, "scope": ["x", "kafka"]})), again=False
    ),
    **{
        f"claims {change}": oauth(bearer(unsecured_token({**GOOD, **change})))
        for change in (
            {"exp": 1},
            {"exp": "x"},
            {"exp": None},
            {"sub": ""},
            {"sub": 1},
            {"iat": FAR_S - 5},
            {"iat": "x"},
        )
    },
    "algorithm": oauth(bearer(unsecured_token(GOOD, {"alg": "RS256"}))),
    "signature": oauth(bearer(unsecured_token(GOOD) + "x")),
    "two parts": oauth(bearer("a.b")),
    "no base64": oauth(bearer("a.b.c")),
    "no json": oauth(bearer("YQ.YQ.")),
    **{
        f"message {text!r}": oauth(text, again=False)
        for text in (
            "",
            "\x01",
            "n,,\x01\x01",
            "n,,\x01auth=Bearer\x01\x01",
            "n,,\x01auth=Bearer x\x01",
            "y,,\x01auth=Bearer x\x01\x01",
            "n,,\x01a=b\x01\x01",
        )
    },
}


def another_user(talk: Talk) -> None:
    talk.handshake("PLAIN")
    talk.token(ALICE)
    talk.handshake("PLAIN")
    talk.token(BOB)
    talk.closed()


def another_mechanism(talk: Talk) -> None:
    talk.handshake("PLAIN")
    talk.token(ALICE)
    talk.handshake("SCRAM-SHA-256")
    talk.raw(frame(SaslAuthenticateRequest(auth_bytes=b"n,,n=carol,r=x"), 2))


def too_often(talk: Talk) -> None:
    talk.handshake("PLAIN")
    talk.token(ALICE)
    talk.handshake("PLAIN")
    talk.token(ALICE)
    talk.handshake("PLAIN")
    talk.token(ALICE)
    talk.metadata()


def wrong_password_again(talk: Talk) -> None:
    talk.handshake("PLAIN")
    talk.token(ALICE)
    talk.handshake("PLAIN")
    talk.token(b"\0alice\0wrong")
    talk.closed()


SHORT: dict[str, Callable[[Talk], None]] = {
    one.__name__: one for one in (another_user, another_mechanism, too_often, wrong_password_again)
}


@contextmanager
def secured(broker: BrokerProcess) -> Iterator[Ports]:
    """The ports of a broker with the users."""
    ports = secure(broker)
    with running(broker):
        wait_until_open(ports)
        with WireClient(broker.port) as admin:
            add_scram_user(admin, "carol", "pencil", "SCRAM-SHA-256")
            add_scram_user(admin, "carol", "pencil", "SCRAM-SHA-512")
        yield ports
        assert broker.crashes_in_log() == [], broker.log_text()


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    with secured(BrokerProcess(tmp_path_factory.mktemp("odradek"))) as ports:
        yield ports


def heard(port: int, talks: Callable[[Talk], None]) -> list[object]:
    talk = Talk(port)
    try:
        talks(talk)
    finally:
        talk.end()
    return talk.heard


UNKNOWN = scram_first(b"n,,n=nobody,r=x")
CASES = {
    f"{listener}: {name}": (listener, talks)
    for listener, cases in (("IN", IN), ("OAUTH", OAUTH), ("SHORT", SHORT))
    for name, talks in cases.items()
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the reference sends, by case."""

    def heard_of_kafka() -> dict[str, list[object]]:
        with secured(ApacheKafkaProcess(tmp_path_factory.mktemp("kafka"))) as ports:
            cases = {**CASES, "unknown": ("IN", UNKNOWN)}
            return {case: heard(ports[where], talks) for case, (where, talks) in cases.items()}

    return kafka_answers("logins", heard_of_kafka)


@pytest.mark.parametrize("case", CASES)
def test_a_login_is_answered_as_apache_kafka_answers_it(
    kafka: dict[str, Any], odradek: Ports, case: str
) -> None:
    listener, talks = CASES[case]
    assert as_kept(heard(odradek[listener], talks)) == kafka[case]


def test_only_odradek_hides_at_the_first_message_who_exists(
    kafka: dict[str, Any], odradek: Ports
) -> None:
    assert as_kept(heard(odradek["IN"], UNKNOWN)) != kafka["unknown"]
    known = scram_first(b"n,,n=carol,r=x")
    assert [type(one) for one in heard(odradek["IN"], known)] == [
        type(one) for one in heard(odradek["IN"], UNKNOWN)
    ]
