"""Delegation tokens, used with Kafka's own tool and clients, on odradek and on Apache Kafka."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.java_tools import JavaTools, ToolFailedError
from tests.support.secured_broker import PASSWORD, SecuredBroker, secured_broker

pytestmark = pytest.mark.java

LIMIT_S = 20.0
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


def soon(ask: Callable[[], object], expected: object) -> None:
    """Kafka's broker learns of a change only after the controller has answered."""
    deadline = time.monotonic() + LIMIT_S
    while (found := ask()) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found == expected


@pytest.fixture(scope="module", params=["odradek", "kafka"])
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    directory = tmp_path_factory.mktemp("secured")
    with secured_broker(request.param, directory, tls=False, authorizer=False) as broker:
        yield broker


@pytest.fixture
def tool(java: JavaTools, secured: SecuredBroker) -> TokenTool:
    return TokenTool(java, secured)


def test_a_client_logs_in_by_a_token_until_it_is_expired(
    tool: TokenTool, secured: SecuredBroker
) -> None:
    token, hmac, *people = tool.create("--owner-principal", "User:bob")
    assert people == ["User:bob", "User:admin", "[User:alice]"]
    soon(lambda: tool.described("bob"), [(token, hmac, *people)])
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
    soon(lambda: tool.described("bob"), [])
    client = secured.client_file(token, hmac, "SCRAM-SHA-256", by_token=True)
    with pytest.raises(ToolFailedError, match="invalid credentials"):
        tool.topics(client)
    assert "not found" in tool.refusal(*ending, config=alice)


@pytest.mark.slow
def test_tokens_go_to_kafka_and_come_back(java: JavaTools, tmp_path: Path) -> None:
    """Each broker serves the directory in turn, with one secret key."""
    token = None
    for name in ("kafka", "odradek", "kafka", "odradek"):
        with secured_broker(name, tmp_path, tls=False, authorizer=False) as broker:
            tool = TokenTool(java, broker)
            if token is None:
                token = tool.create()
            soon(lambda tool=tool: tool.described("admin"), [token])
            tool.topics(broker.client_file(token[0], token[1], "SCRAM-SHA-256", by_token=True))
            alice = broker.client_file("alice", "alice-secret")
            words = ("--renew", "--renew-time-period", "-1", "--hmac", token[1])
            assert "Completed renew" in tool.run(*words, config=alice)
