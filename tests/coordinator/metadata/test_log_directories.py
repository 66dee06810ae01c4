"""Log directories that fail, are cordoned, and come back: what the metadata log says of them."""

import pytest

from odradek.coordinator.metadata.broker_registration import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    changed_registration,
    has_online,
)
from odradek.coordinator.metadata.elections import ElectionType, elect_leaders, take_over
from odradek.coordinator.metadata.features import ELR_VERSION, METADATA_VERSION
from odradek.coordinator.metadata.log_directories import directories_cordoned, directories_offline
from odradek.coordinator.metadata.reassignments import assign_directories
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topics import NO_LEADER, Partition
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
)
from tests.support.metadata import DIRECTORY, NODE, Metadata

OTHER = bytes(15) + b"\xd2"


def metadata_of_two(*, elr: bool = False) -> Metadata:
    """A topic `t` of two partitions, one in each directory."""
    metadata = Metadata(directories=(DIRECTORY, OTHER))
    if elr:
        finalise(metadata, ELR_VERSION, 1)
    metadata.create(NewTopic(name="t", partition_count=2))
    metadata.commit(
        assign_directories(metadata.state, NODE, {("t", 0): DIRECTORY, ("t", 1): OTHER})
    )
    assert [one.directories for one in partitions(metadata)] == [(DIRECTORY,), (OTHER,)]
    return metadata


def finalise(metadata: Metadata, name: str, level: int) -> None:
    record = JournalRecord(FeatureLevelRecord(name=name, feature_level=level))
    metadata.commit(Outcome(reply=None, records=(record,)))


def partitions(metadata: Metadata) -> list[Partition]:
    return list(metadata.state.topics["t"].partitions.values())


def lose(metadata: Metadata, failed: bytes, **directory_of: bytes) -> list[tuple[str, int]]:
    places = {("t", int(name[1:])): directory for name, directory in directory_of.items()}
    return metadata.commit(directories_offline(metadata.state, NODE, [failed], places))


def directories(metadata: Metadata) -> tuple[bytes, ...]:
    return tuple(metadata.state.brokers[NODE].log_dirs)


def start(metadata: Metadata, **directory_of: bytes) -> list[tuple[str, int]]:
    """A clean start; with a directory offline where one is not registered."""
    places = {("t", int(name[1:])): directory for name, directory in directory_of.items()}
    outcome = take_over(
        metadata.state,
        NODE,
        clean_shutdown=True,
        directory_of=places,
    )
    return metadata.commit(outcome)


def test_without_eligible_leader_replicas_the_isr_stays() -> None:
    metadata = metadata_of_two()
    assert lose(metadata, OTHER) == [("t", 1)]
    assert directories(metadata) == (DIRECTORY,)
    kept, lost = partitions(metadata)
    assert (kept.leader, kept.leader_epoch) == (NODE, 0)
    assert (lost.leader, lost.leader_epoch, lost.isr) == (NO_LEADER, 1, (NODE,))
    assert (lost.eligible_leader_replicas, lost.last_known_elr) == ((), ())


def test_with_eligible_leader_replicas_the_isr_empties() -> None:
    metadata = metadata_of_two(elr=True)
    lose(metadata, OTHER)
    lost = partitions(metadata)[1]
    assert (lost.leader, lost.isr) == (NO_LEADER, ())
    assert (lost.eligible_leader_replicas, lost.last_known_elr) == ((NODE,), (NODE,))


def test_the_registration_changes_in_the_version_that_has_the_field() -> None:
    metadata = metadata_of_two()
    lose(metadata, OTHER)
    last = metadata.last_records[-1]
    assert isinstance(last.value, BrokerRegistrationChangeRecord)
    assert (last.value_version, last.value.log_dirs) == (2, [DIRECTORY])


@pytest.mark.parametrize("failed", [OTHER, bytes(15) + b"\xd9"], ids=["lost already", "unknown"])
def test_what_is_not_registered_is_no_news(failed: bytes) -> None:
    metadata = metadata_of_two()
    lose(metadata, OTHER)
    assert lose(metadata, failed) == []
    assert metadata.last_records == ()


def test_metadata_that_is_too_old_to_name_directories_is_left_alone() -> None:
    metadata = metadata_of_two()
    finalise(metadata, METADATA_VERSION, 16)
    assert lose(metadata, OTHER) == []
    metadata.commit(directories_cordoned(metadata.state, NODE, [OTHER]))
    assert metadata.last_records == ()


def test_a_log_that_has_moved_away_keeps_its_leader_and_its_place_is_put_right() -> None:
    metadata = metadata_of_two()
    assert lose(metadata, OTHER, p1=DIRECTORY) == []
    moved = partitions(metadata)[1]
    assert (moved.leader, moved.leader_epoch, moved.directories) == (NODE, 0, (DIRECTORY,))


def test_a_log_that_lies_in_it_is_lost_whatever_the_metadata_says() -> None:
    metadata = metadata_of_two()
    assert lose(metadata, DIRECTORY, p0=DIRECTORY, p1=DIRECTORY) == [("t", 0), ("t", 1)]


@pytest.mark.parametrize("elr", [False, True])
def test_a_start_with_the_directory_offline_leads_the_others_only(elr: bool) -> None:
    metadata = metadata_of_two(elr=elr)
    lose(metadata, OTHER)
    assert start(metadata, p0=DIRECTORY) == [("t", 1)]
    assert metadata.last_records == ()  # it is said already


def test_a_start_that_finds_the_directory_offline_writes_it_down() -> None:
    metadata = metadata_of_two()
    metadata.state.brokers[NODE] = changed_registration(
        metadata.state.brokers[NODE],
        BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=0, log_dirs=[DIRECTORY]),
    )
    assert start(metadata, p0=DIRECTORY) == [("t", 1)]
    assert partitions(metadata)[1].leader_epoch == 1


def test_a_log_whose_directory_went_offline_after_it_was_found_is_not_led() -> None:
    metadata = metadata_of_two()
    lose(metadata, OTHER)
    assert start(metadata, p0=DIRECTORY, p1=OTHER) == [("t", 1)]


@pytest.mark.parametrize("elr", [False, True])
def test_a_directory_that_is_back_gets_its_leaders_back_in_a_new_epoch(elr: bool) -> None:
    metadata = metadata_of_two(elr=elr)
    lose(metadata, OTHER)
    metadata.state.brokers[NODE] = changed_registration(
        metadata.state.brokers[NODE],
        BrokerRegistrationChangeRecord(broker_id=NODE, broker_epoch=0, log_dirs=[DIRECTORY, OTHER]),
    )
    assert start(metadata, p0=DIRECTORY, p1=OTHER) == []
    back = partitions(metadata)[1]
    assert (back.leader, back.leader_epoch, back.isr) == (NODE, 2, (NODE,))
    assert (back.eligible_leader_replicas, back.last_known_elr) == ((), ())


@pytest.mark.parametrize(
    ("election", "code"),
    [
        (ElectionType.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (ElectionType.UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_nobody_is_elected_while_the_directory_is_offline(
    election: ElectionType, code: ErrorCode
) -> None:
    metadata = metadata_of_two()
    lose(metadata, OTHER)
    [error] = metadata.commit(elect_leaders(metadata.state, NODE, election, [("t", 1)])).values()
    assert error is not None
    assert error.code is code


def test_a_directory_is_online_when_it_is_registered_or_not_named() -> None:
    metadata = metadata_of_two()
    registration = metadata.state.brokers[NODE]
    for online in (DIRECTORY, OTHER, None, UNASSIGNED_DIRECTORY, bytes(16)):
        assert has_online(registration, online)
    for offline in (LOST_DIRECTORY, bytes(15) + b"\xd9"):
        assert not has_online(registration, offline)


def test_a_place_is_written_down_once_and_of_partitions_that_there_are() -> None:
    metadata = metadata_of_two()
    directory_of = {("t", 1): DIRECTORY, ("t", 7): DIRECTORY, ("gone", 0): DIRECTORY}
    metadata.commit(assign_directories(metadata.state, NODE, directory_of))
    assert [one.directories for one in partitions(metadata)] == [(DIRECTORY,), (DIRECTORY,)]
    metadata.commit(assign_directories(metadata.state, NODE, directory_of))
    assert metadata.last_records == ()


def test_cordoned_directories_are_named_in_the_version_that_has_the_field() -> None:
    metadata = metadata_of_two()
    for cordoned in ([OTHER], [OTHER, DIRECTORY], []):
        metadata.commit(directories_cordoned(metadata.state, NODE, cordoned))
        [record] = metadata.last_records
        assert record.value_version == 3
        assert metadata.state.brokers[NODE].cordoned_log_dirs == cordoned
        assert directories(metadata) == (DIRECTORY, OTHER)
        metadata.commit(directories_cordoned(metadata.state, NODE, cordoned[::-1]))
        assert metadata.last_records == ()
