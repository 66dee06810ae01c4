"""The leader in answers to clients that have an older epoch, or ask too early (KIP-951)."""

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.shares.sessions import SessionKey
from odradek.broker.shares.shares import Shares
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchReplicaState,
    FetchRequest,
    FetchTopic,
)
from odradek.protocol.schema import replace
from odradek.storage.log_manager import LogManager
from tests.support import share_requests
from tests.support.broker_in_loop import produce_to
from tests.support.contexts import broker_with_topic, handled, request_context
from tests.support.log_box import NOW_MS, batch_of

NO_LEADER = (-1, -1)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker_with_topic(tmp_path, 1) as made:
        yield made


def fetch_request(broker: Broker, epoch: int = -1, follower: int = -1) -> FetchRequest:
    partition = FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=epoch
    )
    topic_id = broker.metadata.topics["t"].id
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        replica_state=FetchReplicaState(replica_id=follower),
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
    )


def not_recovered(_manager: LogManager, topic: str, partition: int) -> Any:
    raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{partition} is being recovered")


def own_leader(broker: Broker) -> tuple[int, int]:
    epoch = broker.metadata.topics["t"].partitions[0].leader_epoch
    log = broker.log_manager.find("t", 0)
    return broker.nodes.own_id, max(epoch, log.leader_epoch if log is not None else epoch)


def check(
    broker: Broker,
    response: Any,
    partition: Any,
    code: ErrorCode,
    *,
    is_named: bool,
    has_address: bool,
) -> None:
    leader = partition.current_leader
    assert partition.error_code == code
    assert (leader.leader_id, leader.leader_epoch) == (
        own_leader(broker) if is_named else NO_LEADER
    )
    endpoints = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
    assert endpoints == ([(broker.nodes.own_id, "localhost", 9092)] if has_address else [])


@pytest.mark.parametrize(
    ("version", "why", "code"),
    [
        (16, "epoch", ErrorCode.FENCED_LEADER_EPOCH),
        (16, "follower", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (16, "recovery", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (15, "recovery", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (16, "newer epoch", ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_a_fetch_names_the_leader(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, version: int, why: str, code: ErrorCode
) -> None:
    request = fetch_request(broker)
    if why == "epoch":
        broker.log_manager.get("t", 0).become_leader(3)
        request = fetch_request(broker, epoch=2)
    elif why == "newer epoch":
        request = fetch_request(broker, epoch=7)
    elif why == "follower":
        request = fetch_request(broker, follower=5)
    else:
        monkeypatch.setattr(LogManager, "get", not_recovered)
    response = handled(request_context(broker, version, NOW_MS, ApiKey.FETCH), request)
    (partition,) = response.responses[0].partitions
    is_named = version >= 16 and code is not ErrorCode.UNKNOWN_LEADER_EPOCH
    has_address = is_named and why != "follower"
    check(broker, response, partition, code, is_named=is_named, has_address=has_address)


@pytest.mark.parametrize("version", [9, 12, 13])
async def test_a_produce_names_the_leader(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    request = produce_to("t", memoryview(batch_of(b"v")))
    if version >= 13:
        topic = replace(request.topic_data[0], name="", topic_id=broker.metadata.topics["t"].id)
        request = replace(request, topic_data=[topic])
    monkeypatch.setattr(LogManager, "get", not_recovered)
    monkeypatch.setattr(LogManager, "find", lambda *_: None)
    response = handled(request_context(broker, version, NOW_MS, ApiKey.PRODUCE), request)
    (partition,) = response.responses[0].partition_responses
    code, is_named = ErrorCode.NOT_LEADER_OR_FOLLOWER, version >= 10
    check(broker, response, partition, code, is_named=is_named, has_address=is_named)


def not_led(*_arguments: object) -> Any:
    raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the state has a newer leader epoch")


async def test_a_share_fetch_names_the_leader(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shares, "open", not_led)
    request = share_requests.fetch("m", 0, broker.metadata.topics["t"].id, 0, 1)
    context = request_context(broker, 1, NOW_MS, ApiKey.SHARE_FETCH)
    response = handled(context, request)
    if isinstance(response, Awaitable):
        response = await response
    (answered,) = response.responses[0].partitions
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    check(broker, response, answered, code, is_named=True, has_address=True)


async def test_a_share_acknowledgement_names_the_leader(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shares, "acknowledge", not_led)
    context = request_context(broker, 1, NOW_MS, ApiKey.SHARE_ACKNOWLEDGE)
    member = SessionKey(share_requests.SHARE_GROUP, "m")
    broker.coordinators.shares.sessions.open(member, [], context.session)
    topic_id = broker.metadata.topics["t"].id
    accepted = {0: share_requests.ACCEPT}
    response = handled(context, share_requests.acknowledge("m", 1, topic_id, 0, accepted))
    (answered,) = response.responses[0].partitions
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    check(broker, response, answered, code, is_named=True, has_address=True)
