"""Delegation tokens, used with Kafka's own tool and clients, on odradek and on Apache Kafka."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRenewer,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from tests.support.java_tools import JavaTools, ToolFailedError
from tests.support.kafka_answers import BROKERS
from tests.support.lengths import by_length, only_long
from tests.support.sasl import log_in_by_plain
from tests.support.secured_broker import PASSWORD, SecuredBroker, secured_broker
from tests.support.waiting import wait_for
from tests.support.wire import WireClient

DAY_MS = 86_400_000

pytestmark = pytest.mark.java

# A line of the tool's table: token id, HMAC, owner, requester, renewers.
ROW = re.compile(r"^([\w-]{22})\s+([\w+/=]{80,})\s+(\S+)\s+(\S+)\s+(\[.*?\])", re.MULTILINE)
Token = tuple[str, str, str, str, str]


class TokenTool:
    """kafka-delegation-tokens, run as a user or with a client's file."""

    def __init__(self, java: JavaTools, broker: SecuredBroker) -> None:
        self.java = java
        self.broker = broker
        self.admin = broker.client_file("admin", PASSWORD)

    def run(self, *words: str, config: Path | None = None) -> str:
        server = ("--bootstrap-server", self.broker.sasl_servers)
        file = str(config or self.admin)
        return self.java.run("DelegationTokenCommand", *server, "--command-config", file, *words)

    def create(self, *words: str) -> Token:
        renewer = ("--renewer-principal", "User:alice")
        made = self.run("--create", "--max-life-time-period", "-1", *renewer, *words)
        (token,) = ROW.findall(made)
        return tuple(token)  # type: ignore[return-value] # five groups

    def described(self, owner: str) -> list[Token]:
        shown = self.run("--describe", "--owner-principal", f"User:{owner}")
        return [tuple(row) for row in ROW.findall(shown)]  # type: ignore[misc] # five groups

    def topics(self, config: Path) -> str:
        server = ("--bootstrap-server", self.broker.sasl_servers)
        return self.java.run("TopicCommand", *server, "--command-config", str(config), "--list")

    def refusal(self, *words: str, config: Path | None = None) -> str:
        with pytest.raises(ToolFailedError) as error:
            self.run(*words, config=config)
        return str(error.value)


def creation(*renewers: CreateDelegationTokenRenewer) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(renewers=list(renewers), max_lifetime_ms=-1)


@contextmanager
def logged_in(secured: SecuredBroker, user: str, password: str) -> Iterator[WireClient]:
    with WireClient(int(secured.sasl_servers.partition(":")[2])) as client:
        log_in_by_plain(client, user, password)
        yield client


@pytest.fixture(scope="module", params=BROKERS)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    directory = tmp_path_factory.mktemp("secured")
    with secured_broker(request.param, directory, tls=False, authorizer=False) as broker:
        yield broker


@pytest.fixture
def tool(java: JavaTools, secured: SecuredBroker) -> TokenTool:
    return TokenTool(java, secured)


@only_long("tokens are made, used and expired in tools/test_security_commands.py")
def test_a_client_logs_in_by_a_token_until_it_is_expired(
    tool: TokenTool, secured: SecuredBroker
) -> None:
    token, hmac, *people = tool.create("--owner-principal", "User:bob")
    assert people == ["User:bob", "User:admin", "[User:alice]"]
    wait_for(lambda: tool.described("bob"), [(token, hmac, *people)])
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        tool.topics(secured.client_file(token, hmac, mechanism, by_token=True))
    # A client that has logged in by a token gets no other.
    client = secured.client_file(token, hmac, "SCRAM-SHA-256", by_token=True)
    assert "not allowed" in tool.refusal("--describe", config=client)
    wrong = secured.client_file(token, hmac[:-4] + "AAA=", "SCRAM-SHA-256", by_token=True)
    with pytest.raises(ToolFailedError, match="invalid credentials"):
        tool.topics(wrong)

    alice = secured.client_file("alice", "alice-secret")
    words = ("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed renew" in tool.run(*words, config=alice)
    assert "Owner/Renewer" in tool.refusal(*words)
    ending = ("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert "Completed expire" in tool.run(*ending, config=alice)
    wait_for(lambda: tool.described("bob"), [])
    client = secured.client_file(token, hmac, "SCRAM-SHA-256", by_token=True)
    with pytest.raises(ToolFailedError, match="invalid credentials"):
        tool.topics(client)
    assert "not found" in tool.refusal(*ending, config=alice)


def test_requests_without_authentication_are_answered_alike(secured: SecuredBroker) -> None:
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with WireClient(secured.process.port) as client:
        created = client.ask(creation(), CreateDelegationTokenResponse, 3)
        assert created == CreateDelegationTokenResponse(
            error_code=not_allowed,
            principal_type="User",
            principal_name="ANONYMOUS",
            token_requester_principal_type="User",
            token_requester_principal_name="ANONYMOUS",
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
        )
        renewal = RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1)
        assert client.ask(renewal, RenewDelegationTokenResponse, 2) == (
            RenewDelegationTokenResponse(error_code=not_allowed, expiry_timestamp_ms=-1)
        )
        expiry = ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=1)
        assert client.ask(expiry, ExpireDelegationTokenResponse, 2) == (
            ExpireDelegationTokenResponse(error_code=not_allowed, expiry_timestamp_ms=-1)
        )
        description = DescribeDelegationTokenRequest(owners=None)
        assert client.ask(description, DescribeDelegationTokenResponse, 3) == (
            DescribeDelegationTokenResponse(error_code=not_allowed)
        )


def test_requests_that_cannot_be_met_are_answered_alike(secured: SecuredBroker) -> None:
    with logged_in(secured, "admin", PASSWORD) as client:
        for version in (1, 2):
            renewal = RenewDelegationTokenRequest(hmac=b"unknown", renew_period_ms=1)
            assert client.ask(renewal, RenewDelegationTokenResponse, version) == (
                RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
            )
            expiry = ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=-1)
            assert client.ask(expiry, ExpireDelegationTokenResponse, version) == (
                ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
            )
        renewer = CreateDelegationTokenRenewer(principal_type="Group", principal_name="ops")
        refused = client.ask(creation(renewer), CreateDelegationTokenResponse, 2)
        assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        assert refused.max_timestamp_ms == -1
        nobody = msgspec.structs.replace(
            creation(), owner_principal_type=None, owner_principal_name="bob"
        )
        failed = client.ask(nobody, CreateDelegationTokenResponse, 3)
        assert (failed.error_code, failed.principal_name, failed.issue_timestamp_ms) == (
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "ANONYMOUS",
            -1,
        )
        no_owners = DescribeDelegationTokenRequest(owners=[])
        assert client.ask(no_owners, DescribeDelegationTokenResponse, 1).tokens == []


@pytest.mark.parametrize("version", by_length([3], [1, 2, 3]))
def test_times_of_tokens_are_alike(secured: SecuredBroker, version: int) -> None:
    with logged_in(secured, "admin", PASSWORD) as client:
        created = client.ask(creation(), CreateDelegationTokenResponse, version)
        assert created.error_code == ErrorCode.NONE
        assert created.token_requester_principal_name == ("admin" if version == 3 else "")
        issued_ms, hmac = created.issue_timestamp_ms, created.hmac
        assert created.max_timestamp_ms - issued_ms == 7 * DAY_MS
        assert created.expiry_timestamp_ms - issued_ms == DAY_MS

        def renewed(period_ms: int) -> RenewDelegationTokenResponse:
            request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
            return client.ask(request, RenewDelegationTokenResponse, min(version, 2))

        def expired(period_ms: int) -> ExpireDelegationTokenResponse:
            request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
            return client.ask(request, ExpireDelegationTokenResponse, min(version, 2))

        found = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        wait_for(lambda: renewed(60_000).error_code == found, False)
        for act, period_ms, least_ms in (
            (renewed, 60_000, 60_000),
            (renewed, 0, DAY_MS),
            (renewed, 30 * DAY_MS, DAY_MS),
            (expired, 30 * DAY_MS, 7 * DAY_MS),
            (expired, 60_000, 60_000),
        ):
            answer = act(period_ms)
            assert answer.error_code == ErrorCode.NONE
            later_ms = answer.expiry_timestamp_ms - issued_ms - least_ms
            assert 0 <= later_ms < 60_000, (act, period_ms)
        assert expired(0).error_code == ErrorCode.NONE
        wait_for(lambda: renewed(1).error_code, ErrorCode.DELEGATION_TOKEN_EXPIRED)
        assert expired(1).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
        assert expired(-1).error_code == ErrorCode.NONE
        wait_for(lambda: expired(-1).error_code, found)


@pytest.mark.slow
@only_long("Kafka starts with our tokens in test_metadata_in_kafka.py")
def test_tokens_go_to_kafka_and_come_back(java: JavaTools, tmp_path: Path) -> None:
    """Each broker serves the directory in turn, with one secret key."""
    token = None
    for name in ("kafka", "odradek", "kafka", "odradek"):
        with secured_broker(name, tmp_path, tls=False, authorizer=False) as broker:
            tool = TokenTool(java, broker)
            if token is None:
                token = tool.create()
            wait_for(lambda tool=tool: tool.described("admin"), [token])
            tool.topics(broker.client_file(token[0], token[1], "SCRAM-SHA-256", by_token=True))
            alice = broker.client_file("alice", "alice-secret")
            words = ("--renew", "--renew-time-period", "-1", "--hmac", token[1])
            assert "Completed renew" in tool.run(*words, config=alice)
