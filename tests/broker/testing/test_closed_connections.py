"""A member whose connection closes leaves its group at once, unless it is a static one."""

from collections.abc import Iterator

import pytest

from odradek.broker.testing import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

SESSION_MS = 45_000
GROUP, OTHER_GROUP = "readers", "writers"


@pytest.fixture(scope="module")
def started() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(started: Broker) -> Iterator[Broker]:
    prepare(started)
    yield started
    started.reset()


def prepare(broker: Broker) -> None:
    """Have the broker create the topic that keeps groups."""
    request = FindCoordinatorRequest(coordinator_keys=[GROUP])
    with WireClient(port_of(broker)) as client:
        client.ask(request, FindCoordinatorResponse, 4)


def port_of(broker: Broker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


def joined(client: WireClient, group: str, instance_id: str | None = None) -> SyncGroupRequest:
    """Make the client the only member of a classic group."""
    member_id = ""
    for code in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.NONE)[instance_id is not None :]:
        join = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        answer = client.ask(join, JoinGroupResponse, 5)
        assert answer.error_code == code
        member_id = answer.member_id
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        group_instance_id=instance_id,
        assignments=[],
    )
    assert client.ask(sync, SyncGroupResponse, 3).error_code == ErrorCode.NONE
    return sync


def heartbeat(client: WireClient, member: SyncGroupRequest) -> int:
    request = HeartbeatRequest(
        group_id=member.group_id,
        generation_id=member.generation_id,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
    )
    return client.ask(request, HeartbeatResponse, 3).error_code


def members_of(client: WireClient, group: str) -> int:
    request = DescribeGroupsRequest(groups=[group])
    [found] = client.ask(request, DescribeGroupsResponse, 5).groups
    return len(found.members)


def test_a_member_of_a_classic_group_is_removed(broker: Broker) -> None:
    with WireClient(port_of(broker)) as observer, WireClient(port_of(broker)) as client:
        joined(client, GROUP)
        with WireClient(port_of(broker)) as static:
            joined(static, OTHER_GROUP, "one")
        client.close()
        wait_until(lambda: members_of(observer, GROUP) == 0)
        assert members_of(observer, OTHER_GROUP) == 1


def test_a_member_is_not_removed_with_a_connection_that_it_has_left(broker: Broker) -> None:
    with WireClient(port_of(broker)) as later, WireClient(port_of(broker)) as first:
        member = joined(first, GROUP)
        joined(first, OTHER_GROUP)
        assert heartbeat(later, member) == ErrorCode.NONE
        first.close()
        wait_until(lambda: members_of(later, OTHER_GROUP) == 0)
        assert heartbeat(later, member) == ErrorCode.NONE


def test_a_member_of_a_consumer_group_is_removed(broker: Broker) -> None:
    def described() -> int:
        request = ConsumerGroupDescribeRequest(
            group_ids=[GROUP], include_authorized_operations=False
        )
        [found] = observer.ask(request, ConsumerGroupDescribeResponse, 1).groups
        return len(found.members)

    with WireClient(port_of(broker)) as observer, WireClient(port_of(broker)) as client:
        join = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="kJXhNG2ISDWqP4bkVqGqpw",
            member_epoch=0,
            rebalance_timeout_ms=SESSION_MS,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        answer = client.ask(join, ConsumerGroupHeartbeatResponse, 1)
        assert answer.error_code == ErrorCode.NONE
        assert described() == 1
        client.close()
        wait_until(lambda: described() == 0)


@pytest.mark.slow
def test_the_end_of_the_broker_removes_no_member(tmp_path) -> None:
    with Broker(tmp_path) as broker:
        prepare(broker)
        with WireClient(port_of(broker)) as client:
            member = joined(client, GROUP)
            broker.stop()
        broker.start()
        with WireClient(port_of(broker)) as client:
            assert heartbeat(client, member) == ErrorCode.NONE
