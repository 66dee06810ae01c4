"""Where replicas lie: on this broker only, in one of its directories."""

from collections.abc import Sequence

import pytest

from odradek.coordinator.metadata.reassignments import assign_directory, check_reassignment
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.metadata import DIRECTORY, NODE, Metadata

OTHER_DIRECTORY = bytes(15) + b"\xd2"


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata(directories=(DIRECTORY, OTHER_DIRECTORY))
    metadata.create(NewTopic(name="t", partition_count=2))
    return metadata


def refusal(
    metadata: Metadata,
    replicas: Sequence[int] | None,
    *,
    topic: str = "t",
    index: int = 0,
    allowed: bool = True,
) -> ErrorCode | None:
    try:
        check_reassignment(
            metadata.state, topic, index, replicas, allow_replication_factor_change=allowed
        )
    except ApiError as error:
        return error.code
    return None


def test_replicas_may_only_be_where_they_are(metadata: Metadata) -> None:
    assert refusal(metadata, [NODE]) is None
    assert refusal(metadata, [NODE], allowed=False) is None
    for replicas in ([], [7], [NODE, 7], [NODE, NODE], [-1]):
        assert refusal(metadata, replicas) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refusal(metadata, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    for topic, index in (("t", 9), ("u", 0)):
        code = refusal(metadata, [NODE], topic=topic, index=index)
        assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_metadata_names_the_directory_that_a_log_was_moved_to(metadata: Metadata) -> None:
    before = metadata.state.topics["t"].partitions[1]
    there = OTHER_DIRECTORY if before.directories == (DIRECTORY,) else DIRECTORY
    metadata.commit(assign_directory(metadata.state, NODE, "t", 1, there))
    after = metadata.state.topics["t"].partitions[1]
    assert after.directories == (there,)
    assert (after.leader_epoch, after.partition_epoch) == (
        before.leader_epoch,
        before.partition_epoch + 1,
    )
    assert assign_directory(metadata.state, NODE, "t", 1, there).records == ()


def test_metadata_that_knows_no_directories_is_left_alone(metadata: Metadata) -> None:
    metadata.state.features.in_log["metadata.version"] = 16
    assert assign_directory(metadata.state, NODE, "t", 0, bytes(16)).records == ()
