"""The APIs of delegation tokens: who may use them, and what they answer."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.handlers.create_delegation_token import MAX_RENEWERS
from odradek.broker.requests.dispatch import request_class
from odradek.broker.security.authorizer import Authorizer
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener, SecurityProtocol
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.contexts import handled, request_context
from tests.support.requests import build

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
ALICE, BOB, CAROL, DAVE = (Principal("User", name) for name in ("alice", "bob", "carol", "dave"))
APIS = (
    (ApiKey.CREATE_DELEGATION_TOKEN, 3),
    (ApiKey.RENEW_DELEGATION_TOKEN, 2),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, 2),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, 3),
)


class Rules(Authorizer):
    """Allows what is listed as (user, operation, type, name)."""

    has_rules = True

    def __init__(self, *allowed: tuple[str, str, str, str]) -> None:
        self.allowed = allowed

    def allows(
        self,
        principal: Principal,
        client_host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        return (principal.name, operation.name, resource_type.name, name) in self.allowed


class Rig:
    """A broker with a secret key, whose clock stands still, and its clients."""

    def __init__(self, directory: Path, **settings: str) -> None:
        config = BrokerConfig.from_texts(
            {
                "log.dirs": str(directory),
                "listeners": "PLAINTEXT://localhost:9092",
                "delegation.token.secret.key": "secret",
                "node.id": "1",
                **settings,
            }
        )
        self.now_ms = START_MS
        loop = asyncio.get_running_loop()
        self.broker = Broker(config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: self.now_ms)

    async def ask(
        self,
        api: ApiKey,
        version: int,
        principal: Principal = ALICE,
        protocol: SecurityProtocol = SecurityProtocol.SASL_PLAINTEXT,
        *,
        by_token: bool = False,
        **values: Any,
    ) -> Any:
        context = request_context(self.broker, version, self.now_ms)
        context.session.listener = Listener("CLIENT", "localhost", 9093, protocol)
        context.session.principal = principal
        context.session.token_authenticated = by_token
        request = build(request_class(HANDLERS[api]), version, **values)
        answer = handled(context, request)
        if inspect.isawaitable(answer):
            answer = await answer
        answer.encode(version)
        return answer

    async def create(self, principal: Principal = ALICE, **values: Any) -> Any:
        return await self.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, principal, **values)

    async def described(self, principal: Principal = ALICE, **values: Any) -> list[str]:
        answer = await self.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, principal, **values)
        assert not answer.error_code
        return [token.token_id for token in answer.tokens]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path / "data")
    yield made
    await made.broker.close()


def owner(principal: Principal) -> dict[str, str]:
    return {"principal_type": principal.kind, "principal_name": principal.name}


@pytest.mark.parametrize(
    ("principal", "protocol", "by_token"),
    [
        (ANONYMOUS, SecurityProtocol.PLAINTEXT, False),
        (ANONYMOUS, SecurityProtocol.SSL, False),
        (ALICE, SecurityProtocol.SASL_SSL, True),
        (ALICE, SecurityProtocol.SASL_PLAINTEXT, True),
    ],
)
async def test_tokens_are_for_clients_that_are_authenticated_and_not_by_a_token(
    rig: Rig, principal: Principal, protocol: SecurityProtocol, by_token: bool
) -> None:
    for api, version in APIS:
        answer = await rig.ask(api, version, principal, protocol, by_token=by_token)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        if api is not ApiKey.DESCRIBE_DELEGATION_TOKEN:
            assert answer.expiry_timestamp_ms == -1


async def test_a_client_certificate_is_enough(rig: Rig) -> None:
    answer = await rig.ask(ApiKey.CREATE_DELEGATION_TOKEN, 1, ALICE, SecurityProtocol.SSL)
    assert not answer.error_code


async def test_without_a_secret_key_tokens_are_disabled_and_those_that_exist_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(tmp_path / "data")
    await rig.create()
    await rig.broker.close()
    assert "1 delegation tokens are kept and refused" not in caplog.text
    for settings in ({"delegation.token.secret.key": ""}, {}):
        rig = Rig(tmp_path / "data", **settings)
        rig.now_ms += 1000 * HOUR_MS
        if settings:
            for api, version in APIS:
                answer = await rig.ask(api, version)
                assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
            assert "1 delegation tokens are kept and refused" in caplog.text
        await rig.broker.remove_expired_tokens()
        assert len(rig.broker.metadata.delegation_tokens.by_id) == len(settings)
        await rig.broker.close()


async def test_a_token_is_created_described_renewed_and_expired(rig: Rig) -> None:
    created = await rig.create(
        renewers=[owner(BOB)], max_lifetime_ms=100 * HOUR_MS, owner_principal_name=""
    )
    assert (created.principal_type, created.principal_name) == ALICE
    assert created.token_requester_principal_name == "alice"
    assert created.issue_timestamp_ms == START_MS
    assert created.expiry_timestamp_ms == START_MS + 24 * HOUR_MS
    assert created.max_timestamp_ms == START_MS + 100 * HOUR_MS
    assert len(created.token_id) == 22
    assert len(created.hmac) == 64

    rig.now_ms += HOUR_MS
    renewed = await rig.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, BOB, hmac=created.hmac)
    assert renewed.expiry_timestamp_ms == START_MS + 25 * HOUR_MS

    answer = await rig.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)
    [token] = answer.tokens
    assert (token.token_id, token.hmac) == (created.token_id, created.hmac)
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")
    assert [(each.principal_type, each.principal_name) for each in token.renewers] == [BOB]
    assert token.issue_timestamp == START_MS
    assert token.expiry_timestamp == START_MS + 25 * HOUR_MS
    assert token.max_timestamp == START_MS + 100 * HOUR_MS

    expired = await rig.ask(
        ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=created.hmac, expiry_time_period_ms=-1
    )
    assert expired.expiry_timestamp_ms == rig.now_ms
    again = await rig.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=created.hmac)
    assert again.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert again.expiry_timestamp_ms == 0


async def test_a_token_for_somebody_else_needs_create_tokens_on_that_user(rig: Rig) -> None:
    rig.broker.security.authorizer = Rules(("carol", "CREATE_TOKENS", "USER", "User:alice"))
    wanted = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    refused = await rig.create(DAVE, **wanted)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("alice", "dave")
    assert refused.issue_timestamp_ms == refused.max_timestamp_ms == -1
    created = await rig.create(CAROL, **wanted)
    assert not created.error_code
    assert (created.principal_name, created.token_requester_principal_name) == ("alice", "carol")
    own = await rig.create(DAVE, owner_principal_type="User", owner_principal_name="dave")
    assert not own.error_code


async def test_renewers_are_users_and_an_owner_has_a_type(rig: Rig) -> None:
    group = {"principal_type": "Group", "principal_name": "admins"}
    answer = await rig.create(renewers=[group])
    assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert answer.expiry_timestamp_ms == -1
    answer = await rig.create(owner_principal_type=None, owner_principal_name="alice")
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_the_number_of_renewers_is_limited(rig: Rig) -> None:
    answer = await rig.create(renewers=[owner(BOB)] * (MAX_RENEWERS + 1))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.expiry_timestamp_ms == -1
    answer = await rig.create(renewers=[owner(BOB)] * MAX_RENEWERS)
    assert not answer.error_code


async def test_only_some_may_describe_a_token(rig: Rig) -> None:
    rig.broker.security.authorizer = Rules(("carol", "CREATE_TOKENS", "USER", "User:alice"))
    wanted = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    created = await rig.create(CAROL, renewers=[owner(BOB)], **wanted)
    for principal in (ALICE, BOB, CAROL):
        assert await rig.described(principal, owners=None) == [created.token_id]
        assert await rig.described(principal, owners=[owner(BOB)]) == [created.token_id]
        assert await rig.described(principal, owners=[owner(DAVE)]) == []
        assert await rig.described(principal, owners=[]) == []
    assert await rig.described(DAVE, owners=None) == []
    for right in (
        ("dave", "DESCRIBE", "DELEGATION_TOKEN", created.token_id),
        ("dave", "DESCRIBE_TOKENS", "USER", "User:alice"),
    ):
        rig.broker.security.authorizer = Rules(right)
        assert await rig.described(DAVE, owners=None) == [created.token_id]
        assert await rig.described(DAVE, owners=[owner(DAVE)]) == []


async def test_expired_tokens_are_removed_and_that_is_in_the_log(rig: Rig) -> None:
    await rig.create(max_lifetime_ms=HOUR_MS)
    lasting = await rig.create()
    rig.now_ms += HOUR_MS + 1
    await rig.broker.remove_expired_tokens()
    assert await rig.described(owners=None) == [lasting.token_id]
    derived = rig.broker.security.token_credentials._derived
    assert {token_id for _, token_id in derived} == {lasting.token_id}
