"""The SASL settings of a running broker change, each listener's alone."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.security.sasl.authenticator import LoginListener
from odradek.broker.security.sasl.login_mechanisms import LoginMechanisms
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.sasl import SaslListener
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.support.broker_in_thread import BrokerInThread, broker_in_thread
from tests.support.config_requests import alter_configs_request
from tests.support.sasl import (
    OAUTH_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    SIGNED_TOKENS,
    LoginRefusedError,
    handshake,
    log_in_by_plain,
)
from tests.support.wire import WireClient

TOKENS = "listener.name.tokens.oauthbearer.sasl.jaas.config"
PLAIN = "listener.name.plain.plain.sasl.jaas.config"
MECHANISMS = "listener.name.plain.sasl.enabled.mechanisms"
SCRAM = "listener.name.plain.scram-sha-256.sasl.jaas.config"
MAX_REAUTH_MS = 60_000
SETTINGS = {
    "listeners": "OPEN://127.0.0.1:0,TOKENS://127.0.0.1:0,PLAIN://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,TOKENS:SASL_PLAINTEXT,PLAIN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "OPEN",
    "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
    MECHANISMS: "PLAIN,SCRAM-SHA-256",
    SCRAM: f"{SCRAM_MODULE} required;",
    "listener.name.plain.connections.max.reauth.ms": str(MAX_REAUTH_MS),
    "connection.failed.authentication.delay.ms": "0",
}


def tokens_with(skew_ms: str) -> str:
    return f'{OAUTH_MODULE} required unsecuredValidatorAllowableClockSkewMs="{skew_ms}";'


def alice_with(password: str) -> str:
    return f'{PLAIN_MODULE} required user_alice="{password}";'


@pytest.fixture
def served(tmp_path: Path) -> Iterator[BrokerInThread]:
    logins = {TOKENS: tokens_with("0"), PLAIN: alice_with("old")}
    with broker_in_thread(tmp_path, {**SETTINGS, **logins}) as broker:
        yield broker


def alter(served: BrokerInThread, settings: Mapping[str, str]) -> str | None:
    """Set keys of the broker; the error message, if it is refused."""
    request = alter_configs_request(4, str(served.broker.config.node_id), settings)
    with WireClient(served.ports["OPEN"]) as client:
        return client.ask(request, IncrementalAlterConfigsResponse, 1).responses[0].error_message


def logs_in(served: BrokerInThread, password: str) -> bool:
    with WireClient(served.ports["PLAIN"]) as client:
        try:
            log_in_by_plain(client, "alice", password)
        except LoginRefusedError:
            return False
        return True


def test_a_setting_that_cannot_be_applied_is_refused(served: BrokerInThread) -> None:
    for settings, words in (
        ({TOKENS: tokens_with("soon")}, "listener TOKENS: Invalid option"),
        ({TOKENS: f"{SCRAM_MODULE} required;"}, "listener TOKENS: .*login module must be"),
        ({MECHANISMS: "PLAIN,SCRAM-SHA-512"}, r"listener PLAIN: .*sasl\.jaas\.config is not set"),
    ):
        refusal = alter(served, settings)
        assert refusal is not None
        assert re.match(f"Invalid dynamic configuration: {words}", refusal), refusal
    assert alter(served, {PLAIN: alice_with("new")}) is None
    assert logs_in(served, "new")
    assert not logs_in(served, "old")


def test_stored_settings_that_cannot_be_applied_leave_other_listeners_and_settings_alone(
    served: BrokerInThread, caplog: pytest.LogCaptureFixture
) -> None:
    """The file may have changed since, or another software has written the log."""

    def stored(skew_ms: str) -> BrokerConfig:
        settings = {TOKENS: tokens_with(skew_ms), PLAIN: alice_with("new")}
        return served.broker.config.with_dynamic(settings)

    logins = served.broker.security.logins
    served.call(lambda _: logins.update_config(stored("soon")))
    assert "listener TOKENS keeps its logins: Invalid option" in caplog.text
    assert logs_in(served, "new")
    served.call(lambda _: logins.check_settings(stored("soon")))
    with pytest.raises(ConfigError, match="listener TOKENS"):
        served.call(lambda _: logins.check_settings(stored("0").with_dynamic({TOKENS: "x"})))


def test_a_key_file_that_stays_unusable_does_not_block_other_settings(
    served: BrokerInThread, tmp_path: Path
) -> None:
    file = tmp_path / "jwks.json"
    prefix = "listener.name.tokens.oauthbearer.sasl"
    tokens = {
        f"{prefix}.jaas.config": f"{OAUTH_MODULE} required;",
        f"{prefix}.server.callback.handler.class": SIGNED_TOKENS,
        f"{prefix}.oauthbearer.jwks.endpoint.url": file.as_uri(),
        f"{prefix}.oauthbearer.allow.unverified.audience": "true",
        f"{prefix}.oauthbearer.allow.unverified.issuer": "true",
    }
    logins = served.broker.security.logins
    stored = served.broker.config.with_dynamic(tokens)
    served.call(lambda _: logins.update_config(stored))
    file.write_text("{")  # another reason than that it is missing
    other = stored.with_dynamic({**tokens, "log.retention.ms": "5000"})
    served.call(lambda _: logins.check_settings(other))
    more = stored.with_dynamic({**tokens, "listener.name.tokens.connections.max.reauth.ms": "1"})
    with pytest.raises(ConfigError, match="no JWKS"):
        served.call(lambda _: logins.check_settings(more))


def test_logins_are_made_again_only_if_their_settings_change_and_once(
    served: BrokerInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = LoginMechanisms.listener

    def noted(
        mechanisms: LoginMechanisms, listener: SaslListener, *args: Any, **options: Any
    ) -> LoginListener:
        made.append(listener.name)
        return make(mechanisms, listener, *args, **options)

    monkeypatch.setattr(LoginMechanisms, "listener", noted)
    assert alter(served, {"log.retention.ms": "5000"}) is None
    assert made == []
    assert alter(served, {PLAIN: alice_with("new")}) is None
    assert made == ["PLAIN"]
    assert logs_in(served, "new")


def test_a_new_login_of_a_connection_needs_what_is_configured_then(served: BrokerInThread) -> None:
    def connected() -> WireClient:
        client = WireClient(served.ports["PLAIN"])
        log_in_by_plain(client, "alice", "old")
        return client

    with connected() as first, connected() as second:
        assert alter(served, {PLAIN: alice_with("new")}) is None
        with pytest.raises(LoginRefusedError):
            log_in_by_plain(first, "alice", "old")
        assert log_in_by_plain(second, "alice", "new") == MAX_REAUTH_MS
    with WireClient(served.ports["PLAIN"]) as client:
        log_in_by_plain(client, "alice", "new")
        assert alter(served, {MECHANISMS: "SCRAM-SHA-256"}) is None
        answer = handshake(client, "PLAIN")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["SCRAM-SHA-256"]
