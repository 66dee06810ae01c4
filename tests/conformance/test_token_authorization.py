"""Who may create and see delegation tokens of others: odradek and Apache Kafka answer alike.

alice logs in and asks for tokens of bob and carol. What she may do with bob's is granted or denied.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.acls import PatternType, Permission
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import CreateAclsCreation
from tests.conformance.authorization.grants import Way, entry, everything
from tests.conformance.authorization.side import replace_entries
from tests.conformance.conversation import patiently, response_of
from tests.conformance.transcript import differences
from tests.support.kafka_answers import as_kept, kafka_answers
from tests.support.requests import build
from tests.support.sasl import log_in_by_plain
from tests.support.secured_broker import PASSWORD, SecuredBroker, secured_broker
from tests.support.wire import WireClient

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

OPERATIONS = {
    ResourceType.USER: (
        AclOperation.CREATE_TOKENS,
        AclOperation.DESCRIBE_TOKENS,
        AclOperation.ALL,
    ),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE, AclOperation.ALL),
}
DRAWN = frozenset(
    {"expiry_timestamp", "expiry_timestamp_ms", "hmac", "issue_timestamp", "issue_timestamp_ms"}
    | {"max_timestamp", "max_timestamp_ms", "token_id"}
)
BOB = "bob"
OWNERS = (BOB, "carol")


class Row(NamedTuple):
    """What alice is granted, or denied, for bob or his token."""

    operation: AclOperation
    resource_type: ResourceType
    way: Way

    def __str__(self) -> str:
        return f"{self.way.value} {self.operation.name} {self.resource_type.name}"

    def entries(self, name: str) -> Iterator[CreateAclsCreation]:
        """The entries for a resource of that name."""
        kind, operation = self.resource_type, self.operation
        match self.way:
            case Way.LITERAL:
                yield entry(kind, name, operation)
            case Way.PREFIXED:
                yield entry(kind, name[:-1], operation, PatternType.PREFIXED)
            case Way.WILDCARD:
                yield entry(kind, "*", operation)
            case Way.DENIED:
                yield from everything()
                yield entry(kind, name, operation, permission=Permission.DENY)


ROWS = [
    None,
    *(
        Row(operation, kind, way)
        for kind, operations in OPERATIONS.items()
        for operation in operations
        for way in Way
    ),
]


class Side:
    """One broker: the administrator's connections, and alice's."""

    def __init__(self, broker: SecuredBroker) -> None:
        sasl_port = int(broker.sasl_servers.rpartition(":")[2])
        self._anonymous = WireClient(broker.process.port)
        self._admin, self._alice = WireClient(sasl_port), WireClient(sasl_port)
        log_in_by_plain(self._admin, "admin", PASSWORD)
        log_in_by_plain(self._alice, "alice", "alice-secret")
        self._tokens = {
            owner: ask(self._admin, ApiKey.CREATE_DELEGATION_TOKEN, 3, **creation(owner))
            for owner in OWNERS
        }
        self._wait_for_tokens()

    def close(self) -> None:
        """End the connections."""
        for client in (self._anonymous, self._admin, self._alice):
            client.close()

    def grant(self, row: Row | None) -> None:
        """Replace alice's entries."""
        is_user = row is not None and row.resource_type is ResourceType.USER
        name = f"User:{BOB}" if is_user else self._tokens[BOB].token_id
        entries = [] if row is None else list(row.entries(name))
        replace_entries(partial(ask, self._anonymous), entries)

    def answers(self) -> dict[str, Any]:
        """What alice is answered."""
        found = {"all": self._described(None), "nobody's": self._described([])}
        for owner, token in self._tokens.items():
            found[f"of {owner}"] = self._described([owner_fields(owner)])
            renewal = {"hmac": token.hmac, "renew_period_ms": -1}
            found[f"renewed {owner}"] = self._asked(ApiKey.RENEW_DELEGATION_TOKEN, 2, **renewal)
            ending = {"hmac": token.hmac, "expiry_time_period_ms": 3_600_000}
            found[f"ended {owner}"] = self._asked(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, **ending)
        for owner in (*OWNERS, "alice"):
            wish = creation(owner, renewers=[{"principal_type": "User", "principal_name": "alice"}])
            made = ask(self._alice, ApiKey.CREATE_DELEGATION_TOKEN, 3, **wish)
            found[f"created for {owner}"] = plain(made)
            if made.error_code == ErrorCode.NONE:
                patiently(partial(self._end, made.hmac))
        self._wait_for_tokens()
        return found

    def _end(self, token_hmac: bytes) -> bool | None:
        ending = {"hmac": token_hmac, "expiry_time_period_ms": -1}
        answer = ask(self._alice, ApiKey.EXPIRE_DELEGATION_TOKEN, 2, **ending)
        return answer.error_code == ErrorCode.NONE or None

    def _described(self, owners: list[dict[str, str]] | None) -> Any:
        return self._asked(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=owners)

    def _asked(self, key: ApiKey, version: int, **values: Any) -> Any:
        return plain(ask(self._alice, key, version, **values))

    def _wait_for_tokens(self) -> None:
        """Kafka's broker learns of a change after the controller has answered."""
        expected = {token.token_id for token in self._tokens.values()}

        def settled() -> bool | None:
            answer = ask(self._admin, ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)
            return {token.token_id for token in answer.tokens} == expected or None

        patiently(settled)


def ask(client: WireClient, key: ApiKey, version: int, **values: Any) -> Any:
    request = request_class(HANDLERS[key])
    return client.ask(build(request, version, **values), response_of(request), version)


def owner_fields(owner: str) -> dict[str, str]:
    return {"principal_type": "User", "principal_name": owner}


def creation(owner: str, renewers: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {
        "owner_principal_type": "User",
        "owner_principal_name": owner,
        "renewers": renewers or [],
        "max_lifetime_ms": -1,
    }


def plain(value: Any) -> Any:
    """The value without secrets and times, and with lists in one order."""
    if isinstance(value, list):
        return sorted(map(plain, value), key=repr)
    if not isinstance(value, msgspec.Struct):
        return value
    return {
        name: plain(getattr(value, name)) for name in value.__struct_fields__ if name not in DRAWN
    }


@contextmanager
def side_of(name: str, directory: Path) -> Iterator[Side]:
    """The side of `kafka` or `odradek`."""
    with secured_broker(name, directory, tls=False) as secured:
        side = Side(secured)
        try:
            yield side
        finally:
            side.close()


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    with side_of("odradek", tmp_path_factory.mktemp("odradek")) as side:
        yield side


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What alice is answered by the reference, by row."""

    def answers() -> dict[str, Any]:
        with side_of("kafka", tmp_path_factory.mktemp("kafka")) as side:
            return {str(row): answers_to(row, side) for row in ROWS}

    return kafka_answers("token_authorization", answers)


def answers_to(row: Row | None, side: Side) -> dict[str, Any]:
    side.grant(row)
    return side.answers()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_requests_for_the_tokens_of_others_are_answered_as_by_kafka(
    row: Row | None, kafka: dict[str, Any], odradek: Side
) -> None:
    assert not differences(kafka[str(row)], as_kept(answers_to(row, odradek)))


def test_a_grant_shows_in_the_answers(kafka: dict[str, Any]) -> None:
    """Otherwise the comparison would say nothing."""
    assert len({repr(answers) for answers in kafka.values()}) >= 6
