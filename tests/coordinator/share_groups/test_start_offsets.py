"""Start offsets that an administrator sets: which partitions count."""

import pytest

from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tests.support.groups import GROUP, Groups, NoShareStates
from tests.support.metadata import Metadata


class States(NoShareStates):
    """Notes with which start offsets states are created."""

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,  # as a share coordinator
        start_offset: int,
        now_ms: int,  # as a share coordinator
    ) -> None:
        self.starts[key.partition] = start_offset


@pytest.fixture
def states() -> States:
    return States()


@pytest.fixture
def groups(states: States) -> Groups:
    metadata = Metadata()
    metadata.create(NewTopic(name="orders", partition_count=3))
    return Groups(metadata=metadata.state, share_states=states)


def alter(groups: Groups, *topics: dict[int, int]) -> list[list[int]]:
    """Set start offsets of the topic, which is named in each entry. Returns the errors."""
    wanted = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name="orders",
            partitions=[
                AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                for index, offset in topic.items()
            ],
        )
        for topic in topics
    ]
    results = groups.coordinator.share_groups.alter_offsets(GROUP, wanted)
    return [[partition.error_code for partition in topic.partitions] for topic in results]


def partitions_of(groups: Groups) -> list[list[int]]:
    """The partitions that are initialized, and those that are being, by topic."""
    state = groups.coordinator.admin.share_group(GROUP).state_partitions
    topics = [*state.initialized.values(), *state.initializing.values()]
    return [sorted(topic.partitions) for topic in topics]


def test_all_entries_of_a_topic_count(groups: Groups, states: States) -> None:
    assert alter(groups, {0: 5, 1: 6}, {1: 7, 2: 8}) == [[0, 0], [0, 0]]
    assert states.starts == {0: 5, 1: 7, 2: 8}
    assert partitions_of(groups) == [[0, 1, 2]]


@pytest.mark.parametrize("partition", [-1, 3])
def test_a_partition_that_does_not_exist_is_not_initialized(
    groups: Groups, states: States, partition: int
) -> None:
    assert alter(groups, {2: 8}) == [[0]]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(groups, {1: 5, partition: 5}) == [[0, unknown]]
    assert states.starts == {1: 5, 2: 8}
    assert partitions_of(groups) == [[1, 2]]


@pytest.mark.parametrize("partition", [-1, 3])
def test_a_topic_without_a_partition_that_exists_is_not_initialized(
    groups: Groups, partition: int
) -> None:
    """Else its partitions would begin at offset 0, and not where the group's settings say."""
    alter(groups, {partition: 5})
    assert not groups.coordinator.shards.of(GROUP).state.groups
