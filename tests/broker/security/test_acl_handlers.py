"""CreateAcls, DeleteAcls and DescribeAcls on a broker with an authorizer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.answer import RefusedRequestError
from odradek.broker.requests.dispatch import request_class
from odradek.broker.turns import slices as slices_module
from odradek.broker.turns.slices import Slices
from odradek.config.broker_config import BrokerConfig
from odradek.config.keys_authorizer import STANDARD_AUTHORIZER
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.contexts import handled, request_context
from tests.support.requests import build

# The client of request_context is User:ANONYMOUS.
AS_ROOT = {"super.users": "User:ANONYMOUS"}
ALL_ENTRIES = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
ENTRY = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:ANONYMOUS",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
Start = Callable[..., Broker]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a broker on one directory; the last one is closed."""
    brokers: list[Broker] = []

    def started(settings: dict[str, str], authorizer: str = STANDARD_AUTHORIZER) -> Broker:
        texts = {
            "log.dirs": str(tmp_path / "data"),
            "listeners": "PLAINTEXT://localhost:9092",
            "authorizer.class.name": authorizer,
            **settings,
        }
        config = BrokerConfig.from_texts(texts)
        brokers.append(Broker(config, asyncio.get_running_loop(), {"PLAINTEXT": 9092}))
        return brokers[-1]

    yield started
    await brokers[-1].close()


async def ask(broker: Broker, api: ApiKey, **values: Any) -> Any:
    request = build(request_class(HANDLERS[api]), 3, **values)
    answer = handled(request_context(broker, 3, 0), request)
    if asyncio.iscoroutine(answer):
        answer = await answer
    answer.encode(3)
    return answer


async def listed(broker: Broker) -> list[tuple[str, int]]:
    answer = await ask(broker, ApiKey.DESCRIBE_ACLS, **ALL_ENTRIES)
    assert answer.error_code == ErrorCode.NONE
    return [(one.resource_name, acl.operation) for one in answer.resources for acl in one.acls]


async def test_entries_are_in_force_and_on_disk_with_the_answer(start: Start) -> None:
    broker = start(AS_ROOT)
    answer = await ask(broker, ApiKey.CREATE_ACLS, creations=[ENTRY, {**ENTRY, "operation": 99}])
    codes = [one.error_code for one in answer.results]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert broker.controller.log.recovery_point == broker.controller.log.log_end_offset
    assert await listed(broker) == [("t", 3)]
    await broker.close()
    broker = start(AS_ROOT)
    assert await listed(broker) == [("t", 3)]
    answer = await ask(broker, ApiKey.DELETE_ACLS, filters=[ALL_ENTRIES, ALL_ENTRIES])
    matches = [[one.resource_name for one in each.matching_acls] for each in answer.filter_results]
    assert matches == [["t"], ["t"]]
    assert broker.controller.log.recovery_point == broker.controller.log.log_end_offset
    assert await listed(broker) == []


async def test_a_deletion_is_complete_when_its_client_disconnects(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start(AS_ROOT)
    creations = [{**ENTRY, "resource_name": f"t{number}"} for number in range(50)]
    await ask(broker, ApiKey.CREATE_ACLS, creations=creations)
    request = build(request_class(HANDLERS[ApiKey.DELETE_ACLS]), 3, filters=[ALL_ENTRIES])
    monkeypatch.setattr(slices_module, "SLICE_S", 0.0)

    async def in_slices(slices: Slices) -> Any:
        context = request_context(broker, 3, 0)
        context.slices = slices
        return await HANDLERS[ApiKey.DELETE_ACLS](context, request)

    acls = broker.metadata.acls
    answer = asyncio.ensure_future(broker.turns.slices.run(in_slices))
    while acls.by_id:  # noqa: ASYNC110 # each turn of the loop runs one slice
        await asyncio.sleep(0)
    assert acls._of_pattern, "the index is cleaned before the client disconnects"
    answer.cancel()
    await broker.admin.operations.wait()
    assert not acls._of_pattern


async def test_entries_without_an_authorizer_are_kept_with_a_warning(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start(AS_ROOT)
    await ask(broker, ApiKey.CREATE_ACLS, creations=[ENTRY])
    for authorizer, is_warned in ((STANDARD_AUTHORIZER, False), ("", True)):
        await broker.close()
        caplog.clear()
        broker = start(AS_ROOT, authorizer)
        assert len(broker.metadata.acls.by_id) == 1
        assert ("1 ACLs are kept and not enforced" in caplog.text) == is_warned


@pytest.mark.parametrize(
    ("settings", "authorizer", "error"),
    [
        ({}, STANDARD_AUTHORIZER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ({}, "", ErrorCode.SECURITY_DISABLED),
    ],
)
async def test_every_entry_and_filter_is_refused(
    start: Start, settings: dict[str, str], authorizer: str, error: ErrorCode
) -> None:
    broker = start(settings, authorizer)
    created = await ask(broker, ApiKey.CREATE_ACLS, creations=[ENTRY, ENTRY])
    assert [one.error_code for one in created.results] == [error] * 2
    deleted = await ask(broker, ApiKey.DELETE_ACLS, filters=[ALL_ENTRIES])
    assert [one.error_code for one in deleted.filter_results] == [error]
    described = await ask(broker, ApiKey.DESCRIBE_ACLS, **ALL_ENTRIES)
    assert described.error_code == error
    assert not broker.metadata.acls.by_id


@pytest.mark.parametrize(
    ("api", "values"),
    [
        (ApiKey.DESCRIBE_ACLS, {**ALL_ENTRIES, "operation": 0}),
        (ApiKey.CREATE_ACLS, {"creations": [ENTRY, {**ENTRY, "permission_type": 0}]}),
        (ApiKey.DELETE_ACLS, {"filters": [{**ALL_ENTRIES, "resource_type_filter": 0}]}),
    ],
)
async def test_a_code_that_means_unknown_closes_the_connection(
    start: Start, api: ApiKey, values: dict[str, Any]
) -> None:
    with pytest.raises(RefusedRequestError):
        await ask(start(AS_ROOT), api, **values)
