"""Who leads: at start, and when somebody asks for an election."""

import pytest
from msgspec.structs import replace

from odradek.coordinator.metadata.elections import (
    ElectionType,
    all_partitions,
    elect_leaders,
    take_over,
    without_needless,
)
from odradek.coordinator.metadata.topics import NO_LEADER, LeaderRecoveryState, Partition
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import no_step
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.cluster_metadata import TopicRecord
from odradek.storage.topic_partition import TopicPartition
from tests.support.metadata import DIRECTORY, NODE, Metadata

TOPIC_ID = bytes(15) + b"\x77"
OTHER_DIRECTORY = bytes(15) + b"\xd2"
LED = Partition(
    index=0,
    replicas=(NODE,),
    isr=(NODE,),
    leader=NODE,
    leader_epoch=3,
    partition_epoch=5,
    directories=(DIRECTORY,),
)


def metadata_with(*partitions: Partition) -> Metadata:
    """A topic `t` with these partitions, however odd."""
    metadata = Metadata(directories=(DIRECTORY, OTHER_DIRECTORY))
    messages = [TopicRecord(name="t", topic_id=TOPIC_ID)]
    messages += [partition.to_record(TOPIC_ID) for partition in partitions]
    records = tuple(JournalRecord(message, 2 if i else 0) for i, message in enumerate(messages))
    metadata.commit(Outcome(reply=None, records=records))
    return metadata


def started(
    metadata: Metadata, *, clean: bool = True, directory: bytes | None = DIRECTORY
) -> list[TopicPartition]:
    places = {} if directory is None else {("t", 0): directory}
    return metadata.commit(
        take_over(metadata.state, NODE, clean_shutdown=clean, directory_of=places)
    )


def first(metadata: Metadata) -> Partition:
    return metadata.state.topics["t"].partitions[0]


def asked(
    metadata: Metadata, election: ElectionType, wanted: list[TopicPartition] | None
) -> dict[TopicPartition, ErrorCode | None]:
    places = all_partitions(metadata.state, no_step) if wanted is None else wanted
    reply = metadata.commit(elect_leaders(metadata.state, NODE, election, places))
    if wanted is None:
        reply = without_needless(reply)
    return {place: error.code if error else None for place, error in reply.items()}


def test_a_clean_restart_writes_nothing() -> None:
    metadata = metadata_with(LED)
    assert started(metadata) == []
    assert metadata.last_records == ()


def test_an_unclean_restart_raises_the_leader_epoch() -> None:
    metadata = metadata_with(LED)
    assert started(metadata, clean=False) == []
    assert (first(metadata).leader, first(metadata).leader_epoch) == (NODE, 4)
    assert first(metadata).isr == (NODE,)


@pytest.mark.parametrize(
    "left",
    [
        {"isr": (), "eligible_leader_replicas": (NODE,), "last_known_elr": (NODE,)},
        {"isr": (), "eligible_leader_replicas": (NODE, 2)},
        {"isr": (), "last_known_elr": (NODE,), "recovery_state": LeaderRecoveryState.RECOVERING},
        {"isr": (NODE,)},
        {"isr": (2, NODE), "replicas": (2, NODE), "directories": (OTHER_DIRECTORY, DIRECTORY)},
    ],
    ids=str,
)
def test_what_a_stopped_kafka_leaves_is_led_again(left: dict[str, object]) -> None:
    metadata = metadata_with(replace(LED, leader=NO_LEADER, **left))
    assert started(metadata) == []
    partition = first(metadata)
    assert (partition.leader, partition.isr, partition.leader_epoch) == (NODE, (NODE,), 4)
    assert NODE not in partition.eligible_leader_replicas
    assert partition.last_known_elr == ()
    assert partition.recovery_state == LeaderRecoveryState.RECOVERED


def test_a_partition_whose_data_may_be_elsewhere_is_led_by_nobody() -> None:
    stale = replace(LED, replicas=(2, NODE), isr=(2,), leader=2, directories=())
    metadata = metadata_with(stale)
    assert started(metadata) == [("t", 0)]
    assert (first(metadata).leader, first(metadata).isr) == (NO_LEADER, (2,))
    before = metadata.log.log_end_offset
    assert started(metadata) == [("t", 0)]
    assert metadata.log.log_end_offset == before


def test_a_partition_without_a_replica_here_is_led_by_nobody() -> None:
    metadata = metadata_with(replace(LED, replicas=(2,), isr=(2,), leader=2))
    assert started(metadata) == [("t", 0)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_was_moved_to_another_directory_is_written_down(clean: bool) -> None:
    metadata = metadata_with(LED)
    started(metadata, clean=clean, directory=OTHER_DIRECTORY)
    assert first(metadata).directories == (OTHER_DIRECTORY,)
    assert first(metadata).leader_epoch == (3 if clean else 4)
    assert started(metadata, directory=OTHER_DIRECTORY) == []
    assert metadata.last_records == ()


def test_preferred_and_unclean_elections_are_not_needed_where_we_lead() -> None:
    metadata = metadata_with(LED)
    for election in ElectionType:
        assert asked(metadata, election, [("t", 0)]) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}
        assert asked(metadata, election, None) == {}


def test_unknown_partitions_are_named() -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    places = [("t", 1), ("u", 0)]
    reply = asked(metadata_with(LED), ElectionType.PREFERRED, places)
    assert reply == dict.fromkeys(places, unknown)


def test_a_preferred_leader_that_is_not_here_is_not_available() -> None:
    metadata = metadata_with(replace(LED, replicas=(2, NODE), isr=(2, NODE)))
    assert asked(metadata, ElectionType.PREFERRED, None) == {
        ("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    }


def test_an_unclean_election_takes_a_replica_from_outside_the_isr() -> None:
    stale = replace(LED, replicas=(2, NODE), isr=(2,), leader=NO_LEADER)
    metadata = metadata_with(stale)
    assert asked(metadata, ElectionType.UNCLEAN, [("t", 0)]) == {("t", 0): None}
    assert (first(metadata).leader, first(metadata).isr) == (NODE, (NODE,))


def test_an_unclean_election_without_a_replica_here_finds_no_leader() -> None:
    metadata = metadata_with(replace(LED, replicas=(2,), isr=(2,), leader=NO_LEADER))
    assert asked(metadata, ElectionType.UNCLEAN, [("t", 0)]) == {
        ("t", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    }
