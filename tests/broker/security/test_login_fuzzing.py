"""Any bytes in place of a login: they are refused, and nobody is logged in."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.principal import Principal
from odradek.broker.security.sasl.authenticator import (
    Authenticator,
    IllegalSaslStateError,
    LoginFailedError,
    LoginListener,
    LoginMechanism,
    UnsupportedMechanismError,
)
from odradek.broker.security.sasl.exchange import Exchange, Login, SaslError
from odradek.broker.security.sasl.failed_logins import FailedLogins
from odradek.broker.security.sasl.oauthbearer import OAuthBearerExchange
from odradek.broker.security.sasl.plain import PlainExchange
from odradek.broker.security.sasl.scram import DecoyCredentials, ScramExchange
from odradek.broker.security.sasl.scram_credential import ScramCredential
from odradek.broker.security.sasl.unsecured_tokens import InvalidTokenError, UnsecuredTokens
from odradek.broker.security.session import Session
from odradek.config.listeners import Listener, SecurityProtocol
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism, keys_of, salted
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.api_keys import ApiKey
from tests.support.sasl import ScramClient, unsecured_token

NOW_MS = 1_800_000_000_000
PASSWORD = "pencil"
SALT = b"salt"
KEYS = keys_of(ScramMechanism.SHA_256, salted(ScramMechanism.SHA_256, PASSWORD, SALT, 4096))
CREDENTIAL = ScramCredential(SALT, KEYS.stored_key, KEYS.server_key, 4096, Login("alice"))


def credential_of(_: ScramMechanism, name: str, is_token: bool) -> ScramCredential | None:
    return CREDENTIAL if name == "alice" and not is_token else None


def scram() -> Exchange:
    return ScramExchange(ScramMechanism.SHA_256, credential_of, DecoyCredentials(lambda *_: None))


def plain() -> Exchange:
    return PlainExchange({"alice": PASSWORD.encode()})


def oauthbearer() -> Exchange:
    # Nobody can be logged in: a required scope that no random token has.
    tokens = UnsecuredTokens({"unsecuredValidatorRequiredScope": "x" * 40}, lambda: NOW_MS)
    return OAuthBearerExchange(tokens)


EXCHANGES = {"PLAIN": plain, "SCRAM-SHA-256": scram, "OAUTHBEARER": oauthbearer}
LISTENER = LoginListener(
    name="IN",
    mechanisms={name: LoginMechanism(made, 1000) for name, made in EXCHANGES.items()},
    max_receive_bytes=1000,
    max_request_bytes=2000,
    issuers={},
)
pieces = st.sampled_from(
    [
        *(b"n,", b"a=", b"n=", b"r=", b"c=", b"p=", b"y,", b"biws", b"alice", b"\0", b"\x01"),
        *(b"auth=", b"Bearer ", b"e30.", b".", b"=2C", b"=3D", b"=", b",", b"tokenauth=true"),
        *(b"eyJhbGciOiJub25lIn0.", b"eyJzdWIiOiJhIn0.", "é".encode(), b"\xff"),
    ]
)
messages = st.binary(max_size=60) | st.lists(pieces | st.binary(max_size=4), max_size=12).map(
    b"".join
)


@given(st.sampled_from(sorted(EXCHANGES)), st.lists(messages, min_size=1, max_size=3))
def test_no_message_is_a_login_or_a_fault(mechanism: str, tokens: list[bytes]) -> None:
    exchange = EXCHANGES[mechanism]()
    for token in tokens:
        try:
            step = exchange.evaluate(token)
        except SaslError:
            return
        assert step.login is None, token


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "OAUTHBEARER"])
def test_a_message_that_takes_long_to_parse_is_refused(mechanism: str) -> None:
    token = {
        "SCRAM-SHA-256": b"n,,n=alice,r=nonce" + b",a=b" * 25_000,
        "OAUTHBEARER": b"n,,\x01auth=Bearer e30.e30.\x01" + b"a=b\x01" * 25_000 + b"\x01",
    }[mechanism]
    with pytest.raises(SaslError, match="is too long"):
        EXCHANGES[mechanism]().evaluate(token)


@given(st.data())
def test_a_changed_proof_is_no_login(data: st.DataObject) -> None:
    client = ScramClient("SCRAM-SHA-256", "alice", PASSWORD)
    exchange = scram()
    final = bytearray(client.final(exchange.evaluate(client.first()).token))
    position = data.draw(st.integers(0, len(final) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda one: one != final[position]))
    before = final[position]
    final[position] = other
    try:
        step = exchange.evaluate(bytes(final))
    except SaslError:
        return
    # The last digit of base64 has bits that do not count.
    assert step.login is None or (position >= len(final) - 2 and chr(before) != "=")


claims = st.dictionaries(
    st.sampled_from(["sub", "exp", "iat", "scope", "nbf"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda values: st.lists(values, max_size=3),
        max_leaves=4,
    ),
)


@given(claims, st.sampled_from([{"alg": "none"}, {"alg": None}, {}, {"alg": "HS256"}]))
def test_no_claims_are_a_fault(claims: dict[str, Any], header: dict[str, Any]) -> None:
    tokens = UnsecuredTokens({}, lambda: NOW_MS)
    try:
        login = tokens.validate(unsecured_token(claims, header))
    except InvalidTokenError:
        return
    shown = json.loads(json.dumps(claims))
    assert header == {"alg": "none"}
    assert login.user == shown["sub"]
    assert login.expires_at_ms is not None
    assert login.expires_at_ms >= NOW_MS


keys = st.sampled_from(
    [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA]
) | st.integers(-1, 100)
mechanisms = st.sampled_from([*EXCHANGES, "GSSAPI", ""])
good = st.just(f"\0alice\0{PASSWORD}".encode())


@given(st.lists(st.tuples(keys, mechanisms, st.booleans(), messages | good), max_size=8))
def test_no_order_of_requests_leads_past_the_login(
    requests: list[tuple[int, str, bool, bytes]],
) -> None:
    now_ms = 0
    session = Session(
        Listener("IN", None, 0, SecurityProtocol.SASL_PLAINTEXT), ("127.0.0.1", 1), "127.0.0.1"
    )
    guard = Authenticator(
        lambda: LISTENER, FailedLogins(lambda: now_ms), lambda: Now(NOW_MS + now_ms, now_ms)
    )
    session.principal, session.guard = None, guard
    has_logged_in = False
    for key, mechanism, raw_tokens, token in requests:
        now_ms += 600
        try:
            if guard.takes_raw_tokens:
                guard.evaluate(session, token)
            elif not guard.admits(session, key):
                break
            elif key == ApiKey.API_VERSIONS:
                guard.versions_sent()
            elif key == ApiKey.SASL_HANDSHAKE:
                guard.choose(session, mechanism, raw_tokens=raw_tokens)
            elif key == ApiKey.SASL_AUTHENTICATE:
                guard.evaluate(session, token)
            else:
                assert session.principal is not None, "served without a login"
        except (LoginFailedError, UnsupportedMechanismError):
            break
        except IllegalSaslStateError as error:
            if error.is_final:
                break
        has_logged_in |= token == f"\0alice\0{PASSWORD}".encode()
        assert session.principal in (
            (None, Principal("User", "alice")) if has_logged_in else (None,)
        )


@pytest.mark.parametrize(("lived_s", "is_valid"), [(-1, False), (0, False), (1, True)])
def test_a_token_expires_after_it_was_issued(lived_s: int, is_valid: bool) -> None:
    options = {"unsecuredValidatorAllowableClockSkewMs": "60000"}
    issued_s = NOW_MS // 1000
    claims = {"sub": "alice", "iat": issued_s, "exp": issued_s + lived_s}
    tokens = UnsecuredTokens(options, lambda: NOW_MS)
    if is_valid:
        assert tokens.validate(unsecured_token(claims)).expires_at_ms == claims["exp"] * 1000
        return
    with pytest.raises(InvalidTokenError, match="expired before it was issued"):
        tokens.validate(unsecured_token(claims))
