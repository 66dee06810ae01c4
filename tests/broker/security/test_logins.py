"""Logins through raw connections: what is served before, at and after them."""

import struct
from collections.abc import Iterator

import pytest

from odradek.broker.security.sasl.scram import DecoyCredentials
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsDeletion,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tests.support.broker_in_thread import BrokerInThread, broker_in_thread
from tests.support.sasl import (
    OAUTH_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    LoginRefusedError,
    ScramClient,
    add_scram_user,
    authenticate,
    choose,
    handshake,
    log_in_by_plain,
    log_in_by_scram,
    log_in_by_token,
    step,
    unsecured_token,
)
from tests.support.wire import WireClient

MAX_REAUTH_MS = 60_000
SETTINGS = {
    "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0,SHORT://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    **{
        f"listener.name.{name}.{mechanism}.sasl.jaas.config": f"{module};"
        for name in ("in", "short")
        for mechanism, module in {
            "plain": f'{PLAIN_MODULE} required user_alice="alice-secret" user_bob="bob-secret"',
            "scram-sha-256": f"{SCRAM_MODULE} required",
            "scram-sha-512": f"{SCRAM_MODULE} required",
            "oauthbearer": f'{OAUTH_MODULE} required unsecuredValidatorRequiredScope="a b"',
        }.items()
    },
    "sasl.server.max.receive.size": "1000",
    "listener.name.short.connections.max.reauth.ms": str(MAX_REAUTH_MS),
    "connection.failed.authentication.delay.ms": "1",
}

INVALID = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInThread]:
    with broker_in_thread(tmp_path_factory.mktemp("logins"), SETTINGS) as broker:
        yield broker


@pytest.fixture
def client(served: BrokerInThread) -> Iterator[WireClient]:
    with WireClient(served.ports["IN"]) as connected:
        yield connected


@pytest.fixture
def short_lived(served: BrokerInThread) -> Iterator[WireClient]:
    with WireClient(served.ports["SHORT"]) as connected:
        yield connected


def assert_served(client: WireClient) -> None:
    assert client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers


def assert_refused(client: WireClient) -> None:
    client.send(client.frame_of(MetadataRequest(topics=[]), 12))
    assert client.is_closed_by_peer()


# -- before a login --------------------------------------------------------------------------------


def test_only_api_versions_and_a_handshake_are_served_before_a_login(client: WireClient) -> None:
    versions = client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
    assert versions.error_code == ErrorCode.NONE
    assert_refused(client)


def test_a_first_request_that_is_not_served_before_a_login_closes(client: WireClient) -> None:
    assert_refused(client)


def test_a_token_without_a_handshake_closes(client: WireClient) -> None:
    request = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
    client.send(client.frame_of(request, 2))
    assert client.is_closed_by_peer()


def test_the_raw_token_of_a_kerberos_client_closes(client: WireClient) -> None:
    client.send_frame(b"\x60\x82\x02\x00" + bytes(100))
    assert client.is_closed_by_peer()


def test_api_versions_may_be_repeated_only_after_an_error(client: WireClient) -> None:
    error = client.ask(ApiVersionsRequest(client_software_name=""), ApiVersionsResponse, 3)
    assert error.error_code == ErrorCode.INVALID_REQUEST
    good = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert client.ask(good, ApiVersionsResponse, 3).error_code == ErrorCode.NONE
    client.send(client.frame_of(good, 3))
    assert client.is_closed_by_peer()


def test_a_frame_above_the_limit_closes_before_a_login_and_not_after(client: WireClient) -> None:
    log_in_by_plain(client, "alice", "alice-secret")
    client.client_id = "x" * 2000
    assert_served(client)


def test_a_frame_above_the_limit_closes(client: WireClient) -> None:
    client.client_id = "x" * 2000
    client.send(client.frame_of(ApiVersionsRequest(), 0)[:100])
    assert client.is_closed_by_peer()


def test_an_unknown_mechanism_is_refused_with_the_list(client: WireClient) -> None:
    answer = handshake(client, "GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert set(answer.mechanisms) == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}
    assert client.is_closed_by_peer()


def test_a_second_handshake_in_a_login_is_refused(client: WireClient) -> None:
    choose(client, "PLAIN")
    assert handshake(client, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.is_closed_by_peer()


def test_another_request_in_a_login_closes(client: WireClient) -> None:
    choose(client, "PLAIN")
    assert_refused(client)


# -- logins ----------------------------------------------------------------------------------------


def test_plain(client: WireClient, served: BrokerInThread) -> None:
    assert log_in_by_plain(client, "alice", "alice-secret", authzid="alice") == 0
    assert_served(client)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0alice-secret", "Authentication failed: Invalid username or password"),
        (b"\0\0alice-secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from"
            " username",
        ),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_plain_is_refused(client: WireClient, token: bytes, message: str) -> None:
    choose(client, "PLAIN")
    answer = authenticate(client, token)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == message
    assert client.is_closed_by_peer()


def test_tokens_without_headers_after_the_first_version_of_the_handshake(
    client: WireClient,
) -> None:
    assert handshake(client, "PLAIN", version=0).error_code == ErrorCode.NONE
    client.send_frame(b"\0alice\0alice-secret")
    assert bytes(client.read_frame()) == b""
    assert_served(client)


def test_a_refused_token_without_a_header_closes_without_an_answer(client: WireClient) -> None:
    handshake(client, "PLAIN", version=0)
    client.send_frame(b"\0alice\0wrong")
    assert client.is_closed_by_peer()


def test_requests_that_arrive_with_the_last_token_are_served_after_it(client: WireClient) -> None:
    choose(client, "PLAIN")
    token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
    both = client.frame_of(token, 2) + client.frame_of(MetadataRequest(topics=[]), 12)
    client.send(both)
    answer = SaslAuthenticateResponse.decode(client.read_frame()[5:], 2)
    assert isinstance(answer, SaslAuthenticateResponse)
    assert answer.error_code == ErrorCode.NONE
    assert client.read_answer(MetadataResponse, 12).brokers


def test_requests_that_arrive_with_a_refused_token_are_not_served(client: WireClient) -> None:
    choose(client, "PLAIN")
    token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
    client.send(client.frame_of(token, 2) + client.frame_of(MetadataRequest(topics=[]), 12))
    (correlation_id,) = struct.unpack_from(">i", client.read_frame())
    assert correlation_id == 2
    assert client.is_closed_by_peer()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(client: WireClient, served: BrokerInThread, mechanism: str) -> None:
    with WireClient(served.ports["OPEN"]) as admin:
        add_scram_user(admin, "a=l,ice", "pencil", mechanism)
    assert log_in_by_scram(client, mechanism, "a=l,ice", "pencil", ",tokenauth=false") == 0
    assert_served(client)


@pytest.mark.parametrize(
    ("user", "password", "mechanism", "extension"),
    [
        ("carol", "wrong", "SCRAM-SHA-256", ""),
        ("nobody", "pencil", "SCRAM-SHA-256", ""),
        ("nobody", "", "SCRAM-SHA-256", ""),
        ("carol", "pencil", "SCRAM-SHA-512", ""),
        ("carol", "pencil", "SCRAM-SHA-256", ",tokenauth=true"),
    ],
    ids=["wrong password", "unknown user", "no password", "other mechanism", "token"],
)
def test_scram_is_refused_at_the_proof_without_telling_who_exists(
    client: WireClient,
    served: BrokerInThread,
    user: str,
    password: str,
    mechanism: str,
    extension: str,
) -> None:
    with WireClient(served.ports["OPEN"]) as admin:
        add_scram_user(admin, "carol", "pencil")
    scram = ScramClient(mechanism, user, password, extension)
    choose(client, mechanism)
    server_first = step(client, scram.first()).auth_bytes
    with pytest.raises(LoginRefusedError) as refused:
        step(client, scram.final(server_first))
    assert refused.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.value.message == f"{INVALID} {mechanism}"
    assert client.is_closed_by_peer()


def test_an_unknown_user_has_one_salt_in_all_logins(served: BrokerInThread) -> None:
    salts = set()
    for user in ("nobody", "nobody", "another"):
        with WireClient(served.ports["IN"]) as client:
            choose(client, "SCRAM-SHA-256")
            answer = step(client, ScramClient("SCRAM-SHA-256", user, "x").first()).auth_bytes
            salts.add((user, answer.decode().partition(",s=")[2]))
    assert len(salts) == 2


def test_unknown_names_have_the_iterations_of_known_ones() -> None:
    decoys = DecoyCredentials(lambda _mechanism, _number: 8192)
    for is_token, iterations in ((False, 8192), (True, 4096)):
        credential = decoys.credential_of(ScramMechanism.SHA_512, "nobody", is_token)
        assert credential.iterations == iterations
    without_users = DecoyCredentials(lambda _mechanism, _number: None)
    assert without_users.credential_of(ScramMechanism.SHA_512, "a", False).iterations == 4096


def test_another_nonce_in_the_proof_is_refused(client: WireClient, served: BrokerInThread) -> None:
    with WireClient(served.ports["OPEN"]) as admin:
        add_scram_user(admin, "carol", "pencil")
    scram = ScramClient("SCRAM-SHA-256", "carol", "pencil")
    choose(client, "SCRAM-SHA-256")
    server_first = step(client, scram.first()).auth_bytes
    with pytest.raises(LoginRefusedError):
        step(client, scram.final(server_first, nonce=scram.nonce))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=,r=abc",
        b"n,,n=carol",
        b"p=tls-unique,,n=carol,r=abc",
        b"y,,n=carol,r=abc",
        b"n,,n=ca=rol,r=abc",
        b"n,,n=carol,r=",
        b"n,,n=carol,r=abc,tokenauth",
        b"\xff\xfe",
    ],
)
def test_a_malformed_scram_message_is_refused(client: WireClient, message: bytes) -> None:
    choose(client, "SCRAM-SHA-512")
    with pytest.raises(LoginRefusedError) as refused:
        step(client, message)
    assert refused.value.message == f"{INVALID} SCRAM-SHA-512"


def test_a_user_may_not_take_another_name(client: WireClient, served: BrokerInThread) -> None:
    choose(client, "SCRAM-SHA-256")
    with pytest.raises(LoginRefusedError, match="different from username"):
        step(client, b"n,a=bob,n=carol,r=abc")


def test_a_deleted_user_may_not_log_in(client: WireClient, served: BrokerInThread) -> None:
    with WireClient(served.ports["OPEN"]) as admin:
        add_scram_user(admin, "dave", "pencil")
        gone = AlterUserScramCredentialsDeletion(name="dave", mechanism=1)
        request = AlterUserScramCredentialsRequest(deletions=[gone], upsertions=[])
        admin.ask(request, AlterUserScramCredentialsResponse, 0)
    with pytest.raises(LoginRefusedError):
        log_in_by_scram(client, "SCRAM-SHA-256", "dave", "pencil")


def test_oauthbearer(client: WireClient, served: BrokerInThread) -> None:
    now_s = served.clock.wall_ms() // 1000
    claims = {"sub": "alice", "exp": now_s + 100, "iat": now_s, "scope": ["a", "b", "c"]}
    lifetime_ms = log_in_by_token(client, unsecured_token(claims), "traceId=1\x01")
    assert 90_000 < lifetime_ms <= 100_000
    assert_served(client)


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"sub": "alice", "exp": -1, "scope": ["a", "b"]}, '{"status":"invalid_token"}'),
        ({"sub": "alice", "exp": "9", "scope": ["a", "b"]}, '{"status":"invalid_token"}'),
        ({"sub": " ", "exp": 100, "scope": ["a", "b"]}, '{"status":"invalid_token"}'),
        ({"exp": 100, "scope": ["a", "b"]}, '{"status":"invalid_token"}'),
        ({"sub": "alice", "scope": ["a", "b"]}, '{"status":"invalid_token"}'),
        (
            {"sub": "alice", "exp": 100, "iat": 50, "scope": ["a", "b"]},
            '{"status":"invalid_token"}',
        ),
        (
            {"sub": "alice", "exp": 100, "scope": "a"},
            '{"status":"insufficient_scope", "scope":"[a, b]"}',
        ),
    ],
)
def test_a_token_is_refused(
    client: WireClient, served: BrokerInThread, claims: dict[str, object], status: str
) -> None:
    now_s = served.clock.wall_ms() // 1000
    shifted = {
        name: value + now_s if isinstance(value, int) else value for name, value in claims.items()
    }
    with pytest.raises(LoginRefusedError) as refused:
        log_in_by_token(client, unsecured_token(shifted))
    assert refused.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.value.message == status
    assert client.is_closed_by_peer()


def test_a_client_may_not_take_another_name_than_its_tokens(
    client: WireClient, served: BrokerInThread
) -> None:
    token = unsecured_token({"sub": "a", "exp": served.clock.wall_ms(), "scope": ["a", "b"]})
    choose(client, "OAUTHBEARER")
    with pytest.raises(LoginRefusedError, match=r"authorization id \(b\)"):
        step(client, f"n,a=b,\x01auth=Bearer {token}\x01\x01".encode())


# -- after a login ---------------------------------------------------------------------------------


def test_sasl_requests_after_a_login_without_an_end_are_refused(client: WireClient) -> None:
    log_in_by_plain(client, "alice", "alice-secret")
    assert handshake(client, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert authenticate(client, b"\0alice\0alice-secret").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert_served(client)


def test_sasl_requests_on_an_open_listener_are_refused(served: BrokerInThread) -> None:
    with WireClient(served.ports["OPEN"]) as client:
        answer = handshake(client, "PLAIN")
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        refused = authenticate(client, b"")
        assert refused.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert refused.error_message == (
            "SaslAuthenticate request received after successful authentication"
        )
        assert_served(client)


def test_a_login_that_has_expired_closes_at_the_next_request(
    short_lived: WireClient, served: BrokerInThread
) -> None:
    assert log_in_by_plain(short_lived, "alice", "alice-secret") == MAX_REAUTH_MS
    served.clock.advance(MAX_REAUTH_MS - 1000)
    assert_served(short_lived)
    served.clock.advance(2000)
    assert_refused(short_lived)


def test_a_client_logs_in_again_before_and_after_its_login_has_expired(
    short_lived: WireClient, served: BrokerInThread
) -> None:
    log_in_by_plain(short_lived, "alice", "alice-secret")
    for _ in range(2):
        served.clock.advance(MAX_REAUTH_MS + 1)
        assert log_in_by_plain(short_lived, "alice", "alice-secret") == MAX_REAUTH_MS
        assert_served(short_lived)
    served.clock.advance(MAX_REAUTH_MS // 2)
    assert log_in_by_plain(short_lived, "alice", "alice-secret") == MAX_REAUTH_MS
    served.clock.advance(MAX_REAUTH_MS - 1000)
    assert_served(short_lived)


def test_a_client_may_not_log_in_more_often_than_once_a_second(
    short_lived: WireClient, served: BrokerInThread
) -> None:
    log_in_by_plain(short_lived, "alice", "alice-secret")
    log_in_by_plain(short_lived, "alice", "alice-secret")
    assert handshake(short_lived, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert_served(short_lived)


def test_a_new_login_must_be_of_the_same_user(
    short_lived: WireClient, served: BrokerInThread
) -> None:
    log_in_by_plain(short_lived, "alice", "alice-secret")
    with pytest.raises(LoginRefusedError) as refused:
        log_in_by_plain(short_lived, "bob", "bob-secret")
    assert refused.value.message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert short_lived.is_closed_by_peer()


def test_a_new_login_must_use_the_same_mechanism(short_lived: WireClient) -> None:
    log_in_by_plain(short_lived, "alice", "alice-secret")
    assert handshake(short_lived, "SCRAM-SHA-256").error_code == ErrorCode.NONE
    scram = ScramClient("SCRAM-SHA-256", "alice", "x")
    request = SaslAuthenticateRequest(auth_bytes=scram.first())
    short_lived.send(short_lived.frame_of(request, 2))
    assert short_lived.is_closed_by_peer()


def test_a_new_login_that_fails_closes(short_lived: WireClient, served: BrokerInThread) -> None:
    log_in_by_plain(short_lived, "alice", "alice-secret")
    choose(short_lived, "PLAIN")
    answer = authenticate(short_lived, b"\0alice\0wrong")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert short_lived.is_closed_by_peer()


def test_other_requests_are_not_served_during_a_new_login(short_lived: WireClient) -> None:
    log_in_by_plain(short_lived, "alice", "alice-secret")
    choose(short_lived, "PLAIN")
    assert_refused(short_lived)


def test_failed_logins_are_logged_without_names_and_with_a_limit(
    served: BrokerInThread, caplog: pytest.LogCaptureFixture
) -> None:
    served.clock.advance(3_600_000)
    for _ in range(15):
        with WireClient(served.ports["IN"]) as client, pytest.raises(LoginRefusedError):
            log_in_by_plain(client, "alice", "hunter2")
    lines = [line for line in caplog.messages if line.startswith("login of 127.0.0.1:")]
    assert len(lines) == 10
    assert lines[0].endswith(
        "on IN failed (PLAIN): Authentication failed: Invalid username or password"
    )
    served.clock.advance(3_600_000)
    with WireClient(served.ports["IN"]) as client, pytest.raises(LoginRefusedError):
        log_in_by_plain(client, "alice", "hunter2")
    assert "5 more logins failed" in caplog.text
    assert "hunter2" not in caplog.text
