"""Names as long as a request can hold. An answer that quotes one has no room for more than that."""

from collections.abc import Iterator

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.requests import build
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

LONGEST = 32_767


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("long_names")) as process:
        yield process
        assert process.crashes_in_log() == [], process.log_text()[-4000:]


@pytest.fixture(params=["x" * LONGEST, "€" * (LONGEST // 3)], ids=["ascii", "euro"])
def name(request: pytest.FixtureRequest) -> str:
    longest: str = request.param
    return longest


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[WireClient]:
    with WireClient(broker.port) as client:
        yield client


def test_an_error_about_a_long_name_is_answered(client: WireClient, name: str) -> None:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    for version in (5, 7):
        request = build(CreateTopicsRequest, version, topics=[topic, {**topic, "name": "short"}])
        answer = client.ask(request, CreateTopicsResponse, version)
        long, short = sorted(answer.topics, key=lambda topic: len(topic.name), reverse=True)
        assert long.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert long.error_message is not None
        assert short.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def test_a_group_of_a_long_name_that_does_not_exist_is_answered(
    client: WireClient, name: str
) -> None:
    coordinated(client)
    described = client.ask(
        build(ConsumerGroupDescribeRequest, 0, group_ids=[name]), ConsumerGroupDescribeResponse, 0
    )
    assert described.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_user_of_a_long_name_that_does_not_exist_is_answered(
    client: WireClient, name: str
) -> None:
    answer = client.ask(
        build(DescribeUserScramCredentialsRequest, 0, users=[{"name": name}]),
        DescribeUserScramCredentialsResponse,
        0,
    )
    assert answer.results[0].error_code == ErrorCode.RESOURCE_NOT_FOUND


@pytest.mark.parametrize("part", ["client id", "group.instance.id"])
def test_a_member_of_a_classic_group_with_a_long_name_can_be_mentioned(
    broker: BrokerProcess, name: str, part: str
) -> None:
    group = f"{part} of {name[:1]}"
    with WireClient(broker.port, client_id=name if part == "client id" else "short") as client:
        coordinated(client)
        instance = None if part == "client id" else name
        answer = client.ask(join_request(group, "", instance), JoinGroupResponse, 5)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            request = join_request(group, answer.member_id, instance)
            answer = client.ask(request, JoinGroupResponse, 5)
        assert answer.error_code == ErrorCode.NONE
        assert len(answer.member_id.encode()) <= LONGEST
        described = client.ask(
            build(DescribeGroupsRequest, 5, groups=[group]), DescribeGroupsResponse, 5
        )
        assert [member.member_id for member in described.groups[0].members] == [answer.member_id]


def coordinated(client: WireClient) -> None:
    """Wait until groups have a coordinator."""
    request = build(FindCoordinatorRequest, 0, key="any")

    def is_found() -> bool:
        answer = client.ask(request, FindCoordinatorResponse, 0)
        return answer.error_code == ErrorCode.NONE

    wait_until(is_found)


def join_request(group: str, member_id: str, instance: str | None) -> JoinGroupRequest:
    request: JoinGroupRequest = build(
        JoinGroupRequest,
        5,
        group_id=group,
        member_id=member_id,
        group_instance_id=instance,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )
    return request
