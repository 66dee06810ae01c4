"""Logins by delegation tokens, through raw connections."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from tests.support.broker_in_thread import BrokerInThread, broker_in_thread
from tests.support.sasl import (
    PLAIN_MODULE,
    SCRAM_MODULE,
    LoginRefusedError,
    log_in_by_plain,
    log_in_by_scram,
)
from tests.support.wire import WireClient

HOUR_MS = 3_600_000
BY_TOKEN = ",tokenauth=true"
MECHANISM = "SCRAM-SHA-256"
SETTINGS = {
    "listeners": "IN://127.0.0.1:0",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.in.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="secret";',
    "listener.name.in.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "listener.name.in.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "connection.failed.authentication.delay.ms": "1",
    "delegation.token.secret.key": "key",
    "delegation.token.expiry.time.ms": str(HOUR_MS),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInThread]:
    with broker_in_thread(tmp_path_factory.mktemp("logins"), SETTINGS) as broker:
        yield broker


@pytest.fixture
def alice(served: BrokerInThread) -> Iterator[WireClient]:
    with WireClient(served.ports["IN"]) as client:
        log_in_by_plain(client, "alice", "secret")
        yield client


@pytest.fixture
def client(served: BrokerInThread) -> Iterator[WireClient]:
    with WireClient(served.ports["IN"]) as connected:
        yield connected


def new_token(client: WireClient) -> Any:
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    return client.ask(request, CreateDelegationTokenResponse, 3)


def log_in(client: WireClient, token: Any, mechanism: str = MECHANISM) -> int:
    password = base64.b64encode(token.hmac).decode()
    return log_in_by_scram(client, mechanism, token.token_id, password, BY_TOKEN)


def assert_served(client: WireClient) -> None:
    assert client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_by_a_token_is_valid_as_long_as_the_token(
    served: BrokerInThread, alice: WireClient, client: WireClient, mechanism: str
) -> None:
    token = new_token(alice)
    assert HOUR_MS - 10_000 < log_in(client, token, mechanism) <= HOUR_MS
    assert_served(client)
    served.clock.advance(HOUR_MS + 1)
    client.send(client.frame_of(MetadataRequest(topics=[]), 12))
    assert client.is_closed_by_peer()
    with WireClient(served.ports["IN"]) as again, pytest.raises(LoginRefusedError):
        log_in(again, token, mechanism)


def test_a_client_that_logs_in_again_has_what_a_renewal_has_added(
    served: BrokerInThread, alice: WireClient, client: WireClient
) -> None:
    token = new_token(alice)
    log_in(client, token)
    served.clock.advance(HOUR_MS // 2)
    renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
    assert alice.ask(renewal, RenewDelegationTokenResponse, 2).error_code == ErrorCode.NONE
    assert HOUR_MS - 10_000 < log_in(client, token) <= HOUR_MS
    served.clock.advance(HOUR_MS // 2 + 1)
    assert_served(client)


def test_a_client_with_a_token_is_its_owner_but_makes_no_tokens(
    alice: WireClient, client: WireClient
) -> None:
    token = new_token(alice)
    log_in(client, token)
    answer = new_token(client)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert answer.principal_name == "alice"


def test_a_removed_token_logs_nobody_in(alice: WireClient, client: WireClient) -> None:
    token = new_token(alice)
    request = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
    assert alice.ask(request, ExpireDelegationTokenResponse, 2).error_code == ErrorCode.NONE
    with pytest.raises(LoginRefusedError):
        log_in(client, token)


@pytest.mark.parametrize("extensions", ["", ",tokenauth=false"])
def test_a_token_is_no_user(alice: WireClient, client: WireClient, extensions: str) -> None:
    token = new_token(alice)
    password = base64.b64encode(token.hmac).decode()
    with pytest.raises(LoginRefusedError):
        log_in_by_scram(client, MECHANISM, token.token_id, password, extensions)
