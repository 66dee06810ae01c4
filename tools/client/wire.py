"""A small client of odradek's own protocol, for APIs that librdkafka does not have.

One request at a time, each to the broker that must answer it. Versions are the newest that both
sides have. The settings are librdkafka's: TLS with PEM files, SASL PLAIN and SCRAM.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar

from odradek.coordinator.metadata.scram_mechanisms import SCRAM_MECHANISMS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import has_flexible_response_header
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from odradek.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.primitives import skip_tags
from odradek.protocol.schema import DecodeError, Message

from .answers import check_answer
from .failure import CommandError, NoAnswerError, closed
from .listener_probe import find_mismatch
from .scram import ScramClient, ScramError
from .security_protocol import uses_sasl, uses_tls
from .servers import connection_failure, listening_server, parse_servers, unreachable
from .tls import client_context

R = TypeVar("R", bound=Message)

TIMEOUT_S = 10.0
CLIENT_ID = "odradek"
API_VERSIONS_VERSION = 3
SOFTWARE = "odradek"
TRANSACTION = 1
# Its topic may be being created or read. Kafka: CoordinatorStrategy.
_WITHOUT_COORDINATOR = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class WireConnection:
    """A connection to one broker, authenticated, with the versions that it serves."""

    def __init__(self, host: str, port: int, settings: Mapping[str, str]) -> None:
        """Connect. Raises CommandError."""
        self.address = f"{host}:{port}"
        self.versions: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0
        self._settings = settings
        context = client_context(settings) if uses_tls(settings) else None
        try:
            self._socket = socket.create_connection((host, port), TIMEOUT_S)
        except (OSError, UnicodeError) as error:
            raise unreachable([connection_failure(self.address, error)]) from None
        try:
            self._begin(context, host, port)
            if uses_sasl(settings):
                self._authenticate(settings)
        except CommandError:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Message, response: type[R], version: int | None = None) -> R:
        """Send a request and return the response. Raises CommandError."""
        key = _key_of(request)
        if version is None:
            version = self._version(request)
        self._correlation_id += 1
        header = struct.pack(">hhih", key, version, self._correlation_id, len(CLIENT_ID))
        header += CLIENT_ID.encode()
        if version in type(request).SPEC.flexible:
            header += b"\0"
        body = header + request.encode(version)
        try:
            self._socket.sendall(struct.pack(">i", len(body)) + body)
            (size,) = struct.unpack(">i", self._read(4))
            answer = self._read(size)
        except ConnectionError:
            raise closed(self.address, self._settings) from None
        except OSError as error:
            raise _failure(error, f"{self.address} did not answer {key.name}: {error}") from None
        position = 4
        if has_flexible_response_header(key, version in response.SPEC.flexible):
            position = skip_tags(answer, position, len(answer))
        try:
            return response.decode(answer, version, position)
        except DecodeError as error:
            raise CommandError(f"{self.address} does not speak Kafka's protocol: {error}") from None

    def _begin(self, context: ssl.SSLContext | None, host: str, port: int) -> None:
        """Encrypt, and ask for the versions that the broker serves. Raises CommandError."""
        try:
            if context is not None:
                self._socket = context.wrap_socket(self._socket, server_hostname=host)
            self._greet()
        except ssl.SSLCertVerificationError as error:
            raise CommandError(
                f"the certificate of {self.address} is not trusted: {error.verify_message};"
                " check ssl.ca.location in the file of --config"
            ) from None
        except (OSError, CommandError) as error:
            mismatch = find_mismatch(host, port, uses_tls=context is not None)
            if mismatch is not None:
                kind = NoAnswerError if mismatch.is_silent else CommandError
                raise kind(f"{mismatch.text}; {mismatch.advice}") from None
            if isinstance(error, CommandError):
                raise
            raise _failure(error, f"cannot use {self.address}: {error}") from None

    def _greet(self) -> None:
        answer = self.ask(
            ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version="1"),
            ApiVersionsResponse,
            API_VERSIONS_VERSION,
        )
        self.versions = {
            each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
        }

    def _version(self, request: Message) -> int:
        """The newest version of the request that both sides have."""
        key, ours = _key_of(request), type(request).SPEC.versions
        lowest, highest = self.versions.get(key, (1, 0))
        version = min(highest, ours.highest)
        if version < max(lowest, ours.lowest):
            raise CommandError(
                f"{self.address} does not serve {key.display_name} ({ours} is needed)"
            )
        return version

    def _read(self, size: int) -> memoryview:
        data = memoryview(bytearray(max(size, 0)))
        view = data
        while view:
            count = self._socket.recv_into(view)
            if not count:
                raise ConnectionResetError
            view = view[count:]
        return data

    def _authenticate(self, settings: Mapping[str, str]) -> None:
        mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI"))
        if mechanism != "PLAIN" and mechanism not in SCRAM_MECHANISMS:
            known = ", ".join(("PLAIN", *SCRAM_MECHANISMS))
            raise CommandError(
                f"this command cannot log in by {mechanism}; set sasl.mechanism to one of {known}"
                " in the file of --config"
            )
        answer = self.ask(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise CommandError(
                f"clients of {self.address} do not log in; set security.protocol=PLAINTEXT (or SSL)"
                " in the file of --config"
            )
        if answer.error_code:
            enabled = ", ".join(answer.mechanisms)
            raise CommandError(f"{self.address} has no {mechanism}, only {enabled}")
        user, password = settings.get("sasl.username", ""), settings.get("sasl.password", "")
        if mechanism == "PLAIN":
            self._send_token(f"\0{user}\0{password}".encode(), user)
            return
        client = ScramClient(mechanism, user, password)
        try:
            final = client.final(self._send_token(client.first(), user))
            client.check(self._send_token(final, user))
        except ScramError as error:
            raise CommandError(f"{self.address} refuses user {user}: {error}") from None

    def _send_token(self, token: bytes, user: str) -> bytes:
        """One step of the login; returns the server's bytes."""
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
        if answer.error_code:
            raise CommandError(
                f"{self.address} refuses user {user}: {answer.error_message or 'wrong password'};"
                " check the credentials in the file of --config"
            )
        return bytes(answer.auth_bytes)


class WireCluster:
    """Connections to the brokers of a cluster, made when they are needed."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Connect to the first bootstrap server that answers. Raises CommandError."""
        self._settings = settings
        self._connections: dict[int, WireConnection] = {}
        self.bootstrap = self._first_that_answers(settings["bootstrap.servers"])

    def _first_that_answers(self, servers: str) -> WireConnection:
        listening_server(servers)
        *others, last = parse_servers(servers)
        for server in others:
            with suppress(CommandError):
                return WireConnection(server.host, server.port, self._settings)
        return WireConnection(last.host, last.port, self._settings)

    def close(self) -> None:
        """Close all connections."""
        for connection in (self.bootstrap, *self._connections.values()):
            connection.close()

    def metadata(self, topics: list[str] | None = None) -> MetadataResponse:
        """The brokers, and the topics with these names; None: all topics."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        return self.bootstrap.ask(request, MetadataResponse)

    def brokers(self) -> list[WireConnection]:
        """A connection to each broker."""
        return [
            self._connect(broker.node_id, broker.host, broker.port)
            for broker in self.metadata([]).brokers
        ]

    def leader(self, topic: str, partition: int) -> WireConnection:
        """A connection to the leader of a partition. Raises CommandError if there is none."""
        metadata = self.metadata([topic])
        (described,) = metadata.topics
        check_topic(described)
        for found in described.partitions:
            if found.partition_index == partition:
                for broker in metadata.brokers:
                    if broker.node_id == found.leader_id:
                        return self._connect(broker.node_id, broker.host, broker.port)
                raise CommandError(f"{topic}-{partition} has no leader now")
        raise CommandError(f"there is no partition {topic}-{partition}")

    def transaction_coordinator(self, transactional_id: str) -> WireConnection:
        """A connection to the coordinator of a transactional id. Raises CommandError."""
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id])
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            found = self.bootstrap.ask(request, FindCoordinatorResponse, 4).coordinators[0]
            if found.error_code not in _WITHOUT_COORDINATOR or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        what = f"the coordinator of {transactional_id} cannot be found"
        check_answer(what, found.error_code, found.error_message)
        return self._connect(found.node_id, found.host, found.port)

    def _connect(self, node_id: int, host: str, port: int) -> WireConnection:
        if node_id not in self._connections:
            self._connections[node_id] = WireConnection(host, port, self._settings)
        return self._connections[node_id]


def check_topic(topic: MetadataResponseTopic) -> None:
    """Raise CommandError if a topic has an error in the metadata."""
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise CommandError(f"there is no topic {topic.name}")
    check_answer(f"topic {topic.name} cannot be described", topic.error_code)


def _failure(error: OSError, text: str) -> CommandError:
    """The failure of a connection. What TLS refuses is an answer, the end of the stream is none."""
    is_answer = isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError)
    return CommandError(text) if is_answer else NoAnswerError(text)


def _key_of(request: Message) -> ApiKey:
    key = type(request).SPEC.key
    assert key is not None, "a request has an API key"
    return key
