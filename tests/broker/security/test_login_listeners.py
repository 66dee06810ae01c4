"""The SASL settings of a running broker change, each listener's alone."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.support.broker_in_thread import BrokerInThread, broker_in_thread
from tests.support.config_requests import alter_configs_request
from tests.support.sasl import (
    OAUTH_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
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
