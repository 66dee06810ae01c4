"""Signed tokens: which are accepted, and how the keys of their issuer are found and refreshed."""

import base64
import hmac
import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from odradek.broker.security.sasl.exchange import Login
from odradek.broker.security.sasl.issuer_keys import KeysAtUrl, KeysInFile, open_keys
from odradek.broker.security.sasl.signed_tokens import SignedTokens
from odradek.broker.security.sasl.token_settings import (
    ExpectedClaims,
    Keys,
    KeySource,
    expected_claims,
    key_source,
)
from odradek.broker.security.sasl.unsecured_tokens import InvalidTokenError
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.sasl import sasl_listeners
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.broker_in_thread import broker_in_thread
from tests.support.certificates import TlsFiles, verify_as_python_3_13
from tests.support.sasl import (
    OAUTH_MODULE,
    SIGNED_TOKENS,
    LoginRefusedError,
    log_in_by_token,
    unsecured_token,
)
from tests.support.wire import WireClient

NOW_S = 1_800_000_000
CLAIMS = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60}
RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
EXPECTED = ExpectedClaims(
    audiences=(), issuer=None, user_claim="sub", scope_claim="scope", skew_s=30
)
ANY_TOKEN = {
    "sasl.oauthbearer.allow.unverified.audience": "true",
    "sasl.oauthbearer.allow.unverified.issuer": "true",
}


def rsa_key(key: rsa.RSAPrivateKey = RSA, **more: str) -> dict[str, Any]:
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), **more}


class FixedKeys:
    """Keys that are given, and the ids that were missing."""

    def __init__(self, *keys: Mapping[str, Any]) -> None:
        self.keys: Keys = keys
        self.missing: list[str] = []

    def note_missing(self, key_id: str) -> None:
        self.missing.append(key_id)

    def refresh_if_due(self) -> None:
        pass


def signed(
    claims: Mapping[str, Any] = CLAIMS,
    key: Any = RSA,
    algorithm: str = "RS256",
    headers: dict[str, Any] | None = None,
) -> str:
    return jwt.encode(dict(claims), key, algorithm, headers=headers)


def tokens_of(*keys: Mapping[str, Any], expected: ExpectedClaims = EXPECTED) -> SignedTokens:
    return SignedTokens(FixedKeys(*keys), expected, lambda: NOW_S * 1000)


@pytest.mark.parametrize(
    ("key", "public", "algorithm"),
    [
        (RSA, rsa_key(), "RS256"),
        (RSA, rsa_key(), "PS512"),
        (RSA, rsa_key(alg="RS512", use="sig"), "RS512"),
        (EC, ECAlgorithm.to_jwk(EC.public_key(), as_dict=True), "ES256"),
        (ED, OKPAlgorithm.to_jwk(ED.public_key(), as_dict=True), "EdDSA"),
    ],
)
def test_a_token_is_accepted(key: Any, public: dict[str, Any], algorithm: str) -> None:
    token = signed(key=key, algorithm=algorithm)
    assert tokens_of(public).validate(token) == Login("alice", (NOW_S + 60) * 1000)


def test_the_key_is_found_by_its_id() -> None:
    tokens = tokens_of(rsa_key(OTHER_RSA, kid="a"), rsa_key(kid="b"))
    assert tokens.validate(signed(headers={"kid": "b"})).user == "alice"
    assert tokens.validate(signed()).user == "alice"
    with pytest.raises(InvalidTokenError, match="signature"):
        tokens.validate(signed(headers={"kid": "a"}))


def test_an_unknown_key_is_noted_as_missing() -> None:
    keys = FixedKeys(rsa_key(kid="a"))
    with pytest.raises(InvalidTokenError, match="key is unknown"):
        SignedTokens(keys, EXPECTED, lambda: NOW_S * 1000).validate(signed(headers={"kid": "b"}))
    assert keys.missing == ["b"]


def public_text_as_secret() -> str:
    """The old attack: HS256 with the text of the public key as the secret."""
    text = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "typ": "JWT"}, CLAIMS)
    )
    signature = base64.urlsafe_b64encode(hmac.digest(text, head + b"." + body, "sha256"))
    return b".".join((head, body, signature.rstrip(b"="))).decode()


@pytest.mark.parametrize(
    "token",
    [
        signed(key=OTHER_RSA),
        signed(key=EC, algorithm="ES256"),
        unsecured_token(CLAIMS),
        public_text_as_secret(),
        signed() + "x",
        signed()[:-4],
        "",
        "a.b.c",
        "...",
        signed(headers={"crit": ["x"], "x": 1}),
    ],
)
def test_a_token_without_a_valid_signature_is_refused(token: str) -> None:
    with pytest.raises(InvalidTokenError):
        tokens_of(rsa_key()).validate(token)


def test_a_key_is_used_only_for_its_algorithm_and_purpose() -> None:
    for key in (rsa_key(alg="RS512"), rsa_key(use="enc")):
        with pytest.raises(InvalidTokenError):
            tokens_of(key).validate(signed())


@pytest.mark.parametrize(
    "change",
    [
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"exp": NOW_S - 30},
        {"exp": "soon"},
        {"nbf": NOW_S + 31},
        {"iat": NOW_S + 61},
        {"aud": "elsewhere"},
        {"scope": ["a", "a"]},
        {"scope": ["a", " "]},
    ],
)
def test_a_token_with_other_claims_is_refused(change: dict[str, Any]) -> None:
    claims = {name: value for name, value in {**CLAIMS, **change}.items() if value is not None}
    with pytest.raises(InvalidTokenError):
        tokens_of(rsa_key()).validate(signed(claims))


@pytest.mark.parametrize(
    "change",
    [
        {"iat": NOW_S - 40, "exp": NOW_S - 29},
        {"nbf": NOW_S + 30},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
    ],
)
def test_a_token_within_the_tolerance_is_accepted(change: dict[str, Any]) -> None:
    assert tokens_of(rsa_key()).validate(signed({**CLAIMS, **change})).user == "alice"


def test_audience_issuer_and_claim_of_the_user_are_those_configured() -> None:
    expected = ExpectedClaims(
        audiences=("kafka", "other"),
        issuer="https://issuer",
        user_claim="client_id",
        scope_claim="scp",
        skew_s=0,
    )
    good = {**CLAIMS, "aud": ["kafka"], "iss": "https://issuer", "client_id": "bob"}
    tokens = tokens_of(rsa_key(), expected=expected)
    assert tokens.validate(signed(good)).user == "bob"
    for change in ({"aud": "elsewhere"}, {"iss": "x"}, {"client_id": ""}, {"aud": []}):
        with pytest.raises(InvalidTokenError):
            tokens.validate(signed({**good, **change}))


# -- where the keys come from ----------------------------------------------------------------------


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [rsa_key(kid="a")]}))
    keys = open_keys(KeySource(file.as_uri(), 1, 1, 1), lambda: 0, wait=True)
    assert [key["kid"] for key in keys.keys] == ["a"]
    file.write_text(json.dumps({"keys": [rsa_key(kid="b")]}))
    keys.refresh_if_due()
    assert [key["kid"] for key in keys.keys] == ["b"]
    file.write_text("{")
    keys.refresh_if_due()
    file.unlink()
    keys.refresh_if_due()
    assert [key["kid"] for key in keys.keys] == ["b"]


def test_a_changed_file_that_cannot_be_read_for_a_time_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [rsa_key(kid="a")]}))
    keys = KeysInFile(file)
    file.write_text(json.dumps({"keys": [rsa_key(kid="b")]}))
    os.utime(file, (1, 1))  # else both may have been written in one tick of the clock

    def refuse(_: Path) -> bytes:
        raise PermissionError("not yet")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refuse)
        for _ in range(3):
            keys.refresh_if_due()
    assert caplog.text.count("not yet") == 1
    assert [key["kid"] for key in keys.keys] == ["a"]
    keys.refresh_if_due()
    assert [key["kid"] for key in keys.keys] == ["b"]


def test_a_file_that_goes_missing_again_is_reported_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, elsewhere = tmp_path / "jwks.json", tmp_path / "elsewhere.json"
    file.write_text(json.dumps({"keys": []}))
    keys = KeysInFile(file)
    for _ in range(2):
        file.rename(elsewhere)
        keys.refresh_if_due()
        elsewhere.rename(file)
        keys.refresh_if_due()
    assert caplog.text.count("stay as they are") == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 1}', '{"keys": [1]}', "[" * 100_000])
def test_a_file_that_is_no_key_set_refuses_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "jwks.json").write_text(text)
    with pytest.raises(ConfigError, match="jwks"):
        KeysInFile(tmp_path / "jwks.json")


def test_a_url_must_be_one_of_a_file_or_of_http() -> None:
    with pytest.raises(ConfigError, match="must begin with"):
        open_keys(KeySource("ftp://localhost/x", 1, 1, 1), lambda: 0, wait=True)


class Issuer:
    """An HTTP server with keys."""

    def __init__(self, tls: TlsFiles | None = None) -> None:
        self.keys: list[dict[str, Any]] = [rsa_key(kid="a")]
        self.broken = False
        self.asked = threading.Semaphore(0)
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the name is the library's
                body = json.dumps({"keys": issuer.keys}).encode()
                self.send_response(500 if issuer.broken else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                issuer.asked.release()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_port}/keys"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.server_pem)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.close()


def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it did not happen")


def test_keys_are_fetched_at_start_at_intervals_and_when_one_is_missing(issuer: Issuer) -> None:
    now_ms = 0
    keys = KeysAtUrl(KeySource(issuer.url, 60_000, 1, 1), lambda: now_ms, wait=True)
    assert [key["kid"] for key in keys.keys] == ["a"]
    issuer.keys = [rsa_key(kid="b")]
    keys.refresh_if_due()
    assert [key["kid"] for key in keys.keys] == ["a"]
    keys.note_missing("b")
    until(lambda: keys.keys[0]["kid"] == "b")
    issuer.keys = [rsa_key(kid="c")]
    now_ms = 60_000
    keys.refresh_if_due()
    until(lambda: keys.keys[0]["kid"] == "c")


def test_a_missing_key_is_fetched_once_a_minute(issuer: Issuer) -> None:
    now_ms = 0
    keys = KeysAtUrl(KeySource(issuer.url, 10**9, 1, 1), lambda: now_ms, wait=True)
    for _ in range(3):
        keys.note_missing("x")
        keys.note_missing("y" * 2000)
        until(lambda: keys._thread is None or not keys._thread.is_alive())  # no other sign
    assert [issuer.asked.acquire(timeout=5) for _ in range(2)] == [True, True]
    assert not issuer.asked.acquire(blocking=False)
    now_ms = 60_000
    keys.note_missing("x")
    assert issuer.asked.acquire(timeout=5)


@pytest.mark.parametrize("retry_ms", [-1, 0, 1])
def test_a_fetch_that_fails_is_repeated_and_the_keys_stay(
    issuer: Issuer, caplog: pytest.LogCaptureFixture, retry_ms: int
) -> None:
    now_ms = 0
    keys = KeysAtUrl(KeySource(issuer.url, 60_000, retry_ms, 4), lambda: now_ms, wait=True)
    issuer.broken = True
    now_ms = 60_000
    keys.refresh_if_due()
    until(lambda: "no keys from" in caplog.text)
    assert [key["kid"] for key in keys.keys] == ["a"]
    asked = 0
    while issuer.asked.acquire(blocking=False):
        asked += 1
    assert asked >= 3


def trust_of(file: Path) -> tuple[tuple[str, str], ...]:
    return ("ssl.truststore.location", str(file)), ("ssl.truststore.type", "PEM")


def test_an_option_of_tls_that_is_not_used_refuses_the_start() -> None:
    prefix = "listener.name.in.oauthbearer"
    options = 'ssl.truststore.type="JKS" ssl.keystore.password="hunter2"'
    config = BrokerConfig.from_texts(
        {
            "listeners": "IN://127.0.0.1:0",
            "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}.sasl.jaas.config": f"{OAUTH_MODULE} required {options};",
            f"{prefix}.sasl.server.callback.handler.class": SIGNED_TOKENS,
            "sasl.oauthbearer.jwks.endpoint.url": "https://localhost/keys",
        }
    )
    (listener,) = sasl_listeners(config)
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.password$"):
        key_source(listener, listener.mechanisms[0])


@pytest.mark.parametrize("claim", ["audience", "issuer"])
def test_a_claim_that_is_not_verified_must_be_permitted(claim: str) -> None:
    def claims_of(name: str, value: str) -> ExpectedClaims:
        (listener,) = sasl_listeners(
            BrokerConfig.from_texts(
                {
                    "listeners": "IN://127.0.0.1:0",
                    "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
                    "sasl.enabled.mechanisms": "OAUTHBEARER",
                    "listener.name.in.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
                    "listener.name.in.oauthbearer.sasl.server.callback.handler.class": (
                        SIGNED_TOKENS
                    ),
                    "sasl.oauthbearer.jwks.endpoint.url": "file:///nowhere",
                    **ANY_TOKEN,
                    f"sasl.oauthbearer.allow.unverified.{claim}": "false",
                    name: value,
                }
            )
        )
        return expected_claims(listener)

    permit = rf"sasl\.oauthbearer\.expected\.{claim} must be set, or .*unverified\.{claim}=true"
    with pytest.raises(ConfigError, match=permit):
        claims_of("sasl.oauthbearer.clock.skew.seconds", "30")
    assert claims_of(f"sasl.oauthbearer.expected.{claim}", "kafka")
    assert claims_of(f"sasl.oauthbearer.allow.unverified.{claim}", "true")


def test_the_server_of_the_keys_must_have_a_certificate_of_the_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_as_python_3_13(monkeypatch)
    tls = TlsFiles(tmp_path)
    issuer = Issuer(tls)
    try:
        source = KeySource(issuer.url, 60_000, 1, 1, trust_of(tls.ca))
        assert KeysAtUrl(source, lambda: 0, wait=True).keys[0]["kid"] == "a"
        for trust in ((), trust_of(TlsFiles(tmp_path / "other").ca)):
            with pytest.raises(ConfigError, match="CERTIFICATE_VERIFY_FAILED"):
                KeysAtUrl(source._replace(trust=trust), lambda: 0, wait=True)
        with pytest.raises(ConfigError, match="nowhere"):
            KeysAtUrl(source._replace(trust=trust_of(Path("/nowhere"))), lambda: 0, wait=True)
    finally:
        issuer.close()


PREFIX = "listener.name.in.oauthbearer"
OF_LISTENER = {
    "listeners": "IN://127.0.0.1:0",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    f"{PREFIX}.sasl.jaas.config": f"{OAUTH_MODULE} required;",
    f"{PREFIX}.sasl.server.callback.handler.class": SIGNED_TOKENS,
    **ANY_TOKEN,
}


def test_a_client_logs_in_with_a_signed_token_and_its_login_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [rsa_key(kid="a")]}))
    settings = {
        **OF_LISTENER,
        "sasl.oauthbearer.jwks.endpoint.url": "file:///nowhere",
        f"{PREFIX}.sasl.oauthbearer.jwks.endpoint.url": file.as_uri(),
        "connection.failed.authentication.delay.ms": "0",
    }
    with broker_in_thread(tmp_path / "data", settings) as broker:
        now_s = broker.clock.wall_ms() // 1000
        claims = {"sub": "alice", "iat": now_s, "exp": now_s + 60}
        with WireClient(broker.ports["IN"]) as client:
            assert 0 < log_in_by_token(client, signed(claims)) <= 60_000
            broker.clock.advance(61_000)
            client.send(client.frame_of(MetadataRequest(topics=[]), 12))
            assert client.is_closed_by_peer()
        for refused in (signed(claims, OTHER_RSA), unsecured_token(claims)):
            with WireClient(broker.ports["IN"]) as client, pytest.raises(LoginRefusedError) as why:
                log_in_by_token(client, refused)
            assert why.value.message == '{"status":"invalid_token"}'


def test_known_keys_stay_when_only_the_intervals_of_their_issuer_change(
    tmp_path: Path, issuer: Issuer
) -> None:
    settings = {**OF_LISTENER, "sasl.oauthbearer.jwks.endpoint.url": issuer.url}
    with broker_in_thread(tmp_path / "data", settings) as broker:
        issuer.broken = True
        interval = "listener.name.in.sasl.oauthbearer.jwks.endpoint.refresh.ms"
        changed = broker.broker.config.with_dynamic({interval: "1000"})
        broker.call(lambda each: each.security.logins.update_config(changed))
        now_s = broker.clock.wall_ms() // 1000
        with WireClient(broker.ports["IN"]) as client:
            log_in_by_token(client, signed({"sub": "alice", "iat": now_s, "exp": now_s + 60}))


def test_a_url_without_keys_refuses_the_start(issuer: Issuer) -> None:
    issuer.broken = True
    with pytest.raises(ConfigError, match="no keys from"):
        KeysAtUrl(KeySource(issuer.url, 1, 1, 1), lambda: 0, wait=True)
