"""Changes of single partitions of a played cluster do not look at all others."""

from collections.abc import Iterator

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsPartition,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from tests.support.turns import TURN_MS, MeasuredBroker, measured_broker
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

TOPIC = "orders"
PARTITIONS = 3_000
REASSIGNMENTS = 5  # one after the other, a turn each


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredBroker]:
    with measured_broker(tmp_path_factory.mktemp("turns"), {"odradek.nodes": "3"}) as started:
        topic = CreateTopicsTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=3, assignments=[], configs=[]
        )
        with WireClient(started.port) as client:
            answer = client.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
        assert answer.topics[0].error_code == ErrorCode.NONE
        yield started


def test_a_reassignment_is_a_short_turn(broker: MeasuredBroker) -> None:
    longest_ms = []
    with WireClient(broker.port) as client:
        for index in range(REASSIGNMENTS):
            request = AlterPartitionReassignmentsRequest(
                topics=[
                    AlterPartitionReassignmentsTopic(
                        name=TOPIC,
                        partitions=[
                            AlterPartitionReassignmentsPartition(
                                partition_index=index, replicas=[0]
                            )
                        ],
                    )
                ]
            )
            broker.turns()
            answer = client.ask(request, AlterPartitionReassignmentsResponse, 1)
            longest_ms.append(broker.turns().longest_ms)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    assert min(longest_ms) <= TURN_MS / 5


def test_an_election_in_all_partitions_gives_way(broker: MeasuredBroker) -> None:
    with WireClient(broker.port) as client:
        longest_ms = []
        for _ in range(REASSIGNMENTS):
            broker.turns()
            answer = client.ask(
                ElectLeadersRequest(election_type=0, topic_partitions=None),
                ElectLeadersResponse,
                2,
            )
            longest_ms.append(broker.turns().longest_ms)
            assert answer.error_code == ErrorCode.NONE
    assert min(longest_ms) <= TURN_MS
