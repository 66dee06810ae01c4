"""A transactional batch is stored only if the coordinator was asked about its transaction."""

from typing import Any

import pytest

from odradek.broker.producing import produced_transactions
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.transactions import Transactions


def fail_once(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, code: ErrorCode) -> None:
    """Let the first call of a function fail."""
    function = getattr(owner, name)

    def failing(*_: object) -> Any:
        monkeypatch.setattr(owner, name, function)
        raise ApiError(code, "not now")

    monkeypatch.setattr(owner, name, failing)


async def check_refused(rig: Transactions, code: ErrorCode) -> None:
    one = rig.producer()
    await one.start()
    assert await one.write() is code
    assert rig.log().log_end_offset == 0
    assert await one.write() is ErrorCode.NONE
    assert rig.known("shop").partitions == {("t", 0)}


async def test_a_batch_is_refused_whose_log_opens_after_the_request_was_verified(
    rig: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    fail_once(monkeypatch, rig.broker.log_manager, "get", code)
    await check_refused(rig, code)


async def test_a_batch_is_refused_whose_topic_is_known_after_the_request_was_verified(
    rig: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_once(monkeypatch, produced_transactions, "topic_name", ErrorCode.UNKNOWN_TOPIC_ID)
    await check_refused(rig, ErrorCode.INVALID_TXN_STATE)
