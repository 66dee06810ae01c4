"""Opening the metadata log: our own directories, and those that Apache Kafka left."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.features import levels_at_format
from odradek.coordinator.metadata.kraft_log import KraftLog, open_kraft_log
from odradek.coordinator.metadata.metadata_format import (
    format_metadata,
    is_formatted,
    metadata_log_directory,
)
from odradek.coordinator.metadata.metadata_snapshot import (
    read_snapshot,
    snapshot_bytes,
)
from odradek.coordinator.metadata.quorum import (
    NotSoleVoterError,
    QuorumMember,
    sole_voter_records,
    voter_records,
)
from odradek.coordinator.metadata.quorum_state import (
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)
from odradek.coordinator.metadata.servability import UnsupportedMetadataError
from odradek.coordinator.metadata.snapshot_batches import control_records
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.journal import stored_records
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.record_codec import CorruptJournalError, MetadataRecordCodec
from odradek.protocol.batch_header import read_header
from odradek.protocol.primitives import uuid_text
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from odradek.protocol.records.control import (
    ControlRecordType,
    VotersRecord,
    decode_quorum_record,
)
from odradek.protocol.schema import Message
from odradek.storage.log import AppendOrigin, PartitionLog
from tests.support.metadata_logs import (
    ACL,
    FILES,
    ME,
    controller_of,
    formatted,
    member_of,
    metadata_log,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata"
CODEC = MetadataRecordCodec.of_cluster()
LEVELS_OF_43 = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
LEVELS_OF_44 = {**LEVELS_OF_43, "metadata.version": 33, "share.version": 2}
FIRST_SNAPSHOT = "00000000000000000000-0000000000.checkpoint"
USER = UserScramCredentialRecord(
    name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
)
# What a directory that is formatted today begins with.
NEW_LEVELS = LEVELS_OF_44


def golden(form: str, tmp_path: Path) -> tuple[Path, QuorumMember]:
    """A copy of a directory that Kafka wrote, and the member it belongs to."""
    target = tmp_path / "data"
    shutil.copytree(GOLDEN / form, target)
    return target, member_of(target)


def opened(data: Path, me: QuorumMember = ME) -> KraftLog:
    return open_kraft_log(metadata_log(data), FILES, "cluster", me, now_ms=1_000)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An empty data directory, formatted."""
    return formatted(tmp_path)


def append(log: PartitionLog, *messages: Message) -> None:
    records = [Record(*CODEC.encode(JournalRecord(message)), 0) for message in messages]
    log.append(build_batch(records), now_ms=0, origin=AppendOrigin.COORDINATOR)


def control_kinds(log: PartitionLog) -> list[ControlRecordType | None]:
    return [kind for kind, _ in control_records(log.batches(0))]


def epochs_of_batches(log: PartitionLog) -> list[int]:
    return [read_header(batch).partition_leader_epoch for batch in log.batches(0)]


# -- a directory of our own


def test_a_new_log_begins_with_the_election_the_voters_and_the_feature_levels(data: Path) -> None:
    kraft = open_kraft_log(
        metadata_log(data), FILES, "cluster", ME, now_ms=1_000, default_min_insync_replicas=2
    )
    log = kraft.journal.log
    assert control_kinds(log) == [
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    assert epochs_of_batches(log) == [1, 1]
    assert kraft.metadata.features.in_log == NEW_LEVELS
    assert kraft.metadata.configs.of(ConfigResourceType.BROKER, "") == {"min.insync.replicas": "2"}
    assert kraft.leader_epoch == 1
    assert read_quorum_state(FILES, log.directory) == QuorumState(leader_id=1, leader_epoch=1)
    assert log.recovery_point == log.log_end_offset


def test_each_start_opens_an_epoch_and_writes_the_voters_only_once(data: Path) -> None:
    for epoch in (1, 2, 3):
        kraft = opened(data)
        assert kraft.leader_epoch == epoch
        log = kraft.journal.log
        log.close(0)
    assert control_kinds(metadata_log(data)).count(ControlRecordType.KRAFT_VOTERS) == 1
    assert control_kinds(metadata_log(data)).count(ControlRecordType.LEADER_CHANGE) == 3
    assert epochs_of_batches(metadata_log(data)) == [1, 1, 2, 3]


def test_an_epoch_is_never_used_twice_though_the_crash_came_before_its_first_batch(
    data: Path,
) -> None:
    opened(data)
    write_quorum_state(
        FILES, metadata_log_directory(data), QuorumState(leader_id=1, leader_epoch=9)
    )
    assert opened(data).leader_epoch == 10


def test_formatting_twice_after_a_crash_is_harmless(data: Path) -> None:
    format_metadata(FILES, data, ME, now_ms=501)
    assert opened(data).metadata.is_bootstrapped


def test_without_first_records_a_new_log_gets_our_own_levels(data: Path) -> None:
    written_into_the_first_snapshot(data)
    assert opened(data).metadata.features.in_log == NEW_LEVELS


@pytest.mark.parametrize("was_started", [False, True])
def test_a_directory_formatted_without_eligible_leader_replicas_stays_without(
    was_started: bool, data: Path
) -> None:
    levels = {"metadata.version": 30, "group.version": 1}
    records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    written_into_the_first_snapshot(data, *records)
    if was_started:
        opened(data)
        format_metadata(FILES, data, ME, now_ms=0)
    metadata = opened(data).metadata
    assert metadata.features.in_log == metadata.features.finalized == levels
    assert list(metadata.configs.records()) == []


def written_into_the_first_snapshot(data: Path, *records: Message) -> None:
    """A directory as Kafka 4.4 formats it: the voters and the first records are in one file."""
    first = [JournalRecord(record) for record in records]
    content = snapshot_bytes(sole_voter_records(ME), first, CODEC, last_contained_ms=0, now_ms=0)
    (metadata_log_directory(data) / FIRST_SNAPSHOT).write_bytes(content)


def test_the_first_snapshot_has_the_first_records_of_the_log(data: Path) -> None:
    levels = {"metadata.version": 29, "eligible.leader.replicas.version": 1}
    records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    written_into_the_first_snapshot(data, *records, USER)
    kraft = opened(data)
    stored = stored_records(kraft.journal.log.batches(0), CODEC, "the log")
    assert [record.value for record, _ in stored if isinstance(record, JournalRecord)] == [
        BeginTransactionRecord(name="Bootstrap records"),
        *records,
        USER,
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        EndTransactionRecord(),
    ]
    again = opened(data).metadata
    assert again.features.in_log == levels
    assert again.scram_credentials.records() == kraft.metadata.scram_credentials.records()


@pytest.mark.parametrize("form", ["4.3", "4.4"])
def test_a_formatted_directory_from_the_future_is_refused_as_it_is(form: str, data: Path) -> None:
    future = FeatureLevelRecord(name="metadata.version", feature_level=99)
    if form == "4.4":
        written_into_the_first_snapshot(data, future)
    else:
        written_into_the_first_snapshot(data)
        content = snapshot_bytes([], [JournalRecord(future)], CODEC, last_contained_ms=0, now_ms=0)
        (data / "bootstrap.checkpoint").write_bytes(content)
    log = metadata_log(data)
    with pytest.raises(UnsupportedMetadataError, match=r"metadata\.version 99"):
        open_kraft_log(log, FILES, "cluster", ME, now_ms=0)
    assert log.log_end_offset == 0
    assert read_quorum_state(FILES, log.directory) is None


def test_what_the_controller_decided_is_there_after_a_restart(data: Path) -> None:
    kraft = opened(data)
    controller = controller_of(kraft)
    broker_epoch = controller.register_broker(
        incarnation_id=bytes(15) + b"\x11",
        endpoints=[Endpoint("PLAINTEXT", "localhost", 9092)],
        directories=[ME.directory_id],
        rack=None,
        now_ms=1_001,
    )
    controller.create_topics([NewTopic(name="t", configs={"retention.ms": "7"})], 1_002)
    first_id = controller.producer_ids.take(1_003)
    controller.fence_broker(1_004)

    again = opened(data)
    assert again.metadata.topics == kraft.metadata.topics
    assert again.metadata.brokers == kraft.metadata.brokers
    assert again.metadata.brokers[1].broker_epoch == broker_epoch
    assert again.metadata.brokers[1].fenced
    assert again.metadata.configs.of_topic("t") == {"retention.ms": "7"}
    assert controller_of(again).producer_ids.take(0) == first_id + 1_000


def test_the_broker_epoch_is_the_offset_of_its_registration(data: Path) -> None:
    kraft = opened(data)
    end = kraft.journal.log.log_end_offset
    epoch = controller_of(kraft).register_broker(
        incarnation_id=bytes(15) + b"\x11", endpoints=[], directories=[], rack=None, now_ms=0
    )
    assert epoch == end
    assert kraft.metadata.last_offset == epoch


# -- what stops a start


def test_a_log_with_other_voters_is_not_led(data: Path) -> None:
    stranger = QuorumMember(node_id=1, directory_id=bytes(15) + b"\xee", endpoint=ME.endpoint)
    with pytest.raises(NotSoleVoterError, match=uuid_text(ME.directory_id)):
        opened(data, stranger)
    assert metadata_log(data).log_end_offset == 0


def test_a_static_quorum_with_other_voters_is_not_led(tmp_path: Path) -> None:
    log = metadata_log(tmp_path)
    state = QuorumState(leader_id=2, leader_epoch=5, voters=(1, 2, 3))
    write_quorum_state(FILES, log.directory, state)
    with pytest.raises(NotSoleVoterError, match=r"\[1, 2, 3\], not \[1\]"):
        open_kraft_log(log, FILES, "cluster", ME, now_ms=0)
    assert read_quorum_state(FILES, log.directory) == state


def test_acls_are_kept_until_they_are_removed(data: Path) -> None:
    append(opened(data).journal.log, ACL)
    assert opened(data).metadata.acls.by_id == {ACL.id: ACL}
    append(metadata_log(data), RemoveAccessControlEntryRecord(id=ACL.id))
    assert opened(data).metadata.acls.by_id == {}


def test_metadata_from_the_future_is_refused(data: Path) -> None:
    append(opened(data).journal.log, FeatureLevelRecord(name="metadata.version", feature_level=34))
    with pytest.raises(UnsupportedMetadataError, match=r"metadata\.version 34"):
        opened(data)


def test_a_damaged_snapshot_is_named(data: Path) -> None:
    path = metadata_log_directory(data) / "00000000000000000000-0000000000.checkpoint"
    sound = path.read_bytes()
    flipped = sound[:90] + bytes([sound[90] ^ 1]) + sound[91:]
    for damaged in (sound[:-1], sound[:166], flipped, b"", sound[:10]):
        path.write_bytes(damaged)
        with pytest.raises(CorruptJournalError, match=r"0000000000\.checkpoint"):
            opened(data)


def test_a_damaged_log_is_named(data: Path) -> None:
    log = opened(data).journal.log
    path = log.directory / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:40] + b"?" + path.read_bytes()[41:])
    with pytest.raises(CorruptJournalError, match="__cluster_metadata-0: "):
        open_kraft_log(log, FILES, "cluster", ME, now_ms=0)


# -- transactions


def topic(name: str, last_byte: int) -> TopicRecord:
    return TopicRecord(name=name, topic_id=bytes([*bytes(15), last_byte]))


def test_a_transaction_that_a_crash_left_open_is_aborted(data: Path) -> None:
    append(opened(data).journal.log, BeginTransactionRecord(), topic("a", 1))
    append(metadata_log(data), topic("b", 2))
    kraft = opened(data)
    assert kraft.metadata.topics == {}
    assert not kraft.metadata.in_transaction
    kraft.journal.commit(Outcome(reply=None, records=(JournalRecord(topic("c", 3)),)), 0)
    assert list(opened(data).metadata.topics) == ["c"]


def test_an_aborted_transaction_never_was(data: Path) -> None:
    begin, abort = BeginTransactionRecord(), AbortTransactionRecord()
    append(opened(data).journal.log, begin, topic("a", 1), abort, topic("b", 2))
    assert list(opened(data).metadata.topics) == ["b"]


# -- directories that Apache Kafka wrote


@pytest.mark.parametrize(
    ("form", "levels"),
    [
        ("static", LEVELS_OF_43),
        ("dynamic", LEVELS_OF_43),
        ("4.4/static", LEVELS_OF_44),
        ("4.4/dynamic", LEVELS_OF_44),
    ],
)
def test_a_directory_that_kafka_stopped_on_is_taken_over(
    form: str, levels: dict[str, int], tmp_path: Path
) -> None:
    data, me = golden(form, tmp_path)
    kraft = opened(data, me)
    metadata = kraft.metadata
    assert {name: len(topic.partitions) for name, topic in metadata.topics.items()} == {
        "orders": 4,
        "auto": 1,
    }
    assert metadata.configs.of_topic("orders") == {
        "cleanup.policy": "compact",
        "retention.ms": "1000000",
    }
    assert metadata.configs.of(ConfigResourceType.BROKER, "") == {"min.insync.replicas": "1"}
    assert metadata.features.in_log["transaction.version"] == 2
    assert metadata.features.finalized == levels
    assert metadata.next_producer_id == 1000
    assert metadata.brokers[1].fenced
    assert metadata.brokers[1].in_controlled_shutdown
    partition = metadata.topics["orders"].partitions[3]
    assert (partition.leader, partition.isr) == (-1, ())
    assert partition.eligible_leader_replicas == partition.last_known_elr == (1,)

    assert kraft.leader_epoch == 2
    leaderless = controller_of(kraft).take_over(clean_shutdown=True, directory_of={}, now_ms=0)
    assert leaderless == []
    partition = metadata.topics["orders"].partitions[3]
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 2, (1,))
    assert opened(data, me).metadata.topics == metadata.topics


@pytest.mark.parametrize(
    ("form", "kraft_version"),
    [("static", 0), ("dynamic", 1), ("4.4/static", 0), ("4.4/dynamic", 1)],
)
def test_the_form_of_the_quorum_is_kept(form: str, kraft_version: int, tmp_path: Path) -> None:
    data, me = golden(form, tmp_path)
    voters_before = control_kinds(metadata_log(data)).count(ControlRecordType.KRAFT_VOTERS)
    kraft = opened(data, me)
    assert kraft.quorum.kraft_version == kraft_version
    state = read_quorum_state(FILES, kraft.journal.log.directory)
    assert state == QuorumState(leader_id=1, leader_epoch=2, voters=None if kraft_version else (1,))
    assert control_kinds(kraft.journal.log).count(ControlRecordType.KRAFT_VOTERS) == voters_before


def test_a_directory_that_kafka_formatted_gets_the_levels_that_kafka_chose(tmp_path: Path) -> None:
    data, me = golden("formatted", tmp_path)
    metadata = opened(data, me).metadata
    assert metadata.features.in_log == LEVELS_OF_43
    assert metadata.configs.of(ConfigResourceType.BROKER, "") == {"min.insync.replicas": "1"}


@pytest.mark.parametrize(("form", "kraft_version"), [("static", 0), ("dynamic", 1)])
def test_a_directory_that_kafka_44_formatted_begins_as_kafka_chose(
    form: str, kraft_version: int, tmp_path: Path
) -> None:
    data, me = golden(f"4.4/formatted-{form}", tmp_path)
    kraft = opened(data, me)
    assert kraft.quorum.kraft_version == kraft_version
    assert kraft.metadata.features.in_log == LEVELS_OF_44
    assert kraft.metadata.configs.of(ConfigResourceType.BROKER, "") == {"min.insync.replicas": "1"}
    [user] = kraft.metadata.scram_credentials.records()
    assert user.name == "alice"
    # What Kafka 4.4 itself has written on the same directory, up to its registrations.
    theirs, _ = golden(f"4.4/{form}", tmp_path / "kafkas")
    count = 10
    assert [record.value for record in records_in(kraft.journal.log)] == [
        record.value for record in records_in(metadata_log(theirs, clean=True))[:count]
    ]


def records_in(log: PartitionLog) -> list[JournalRecord]:
    stored = stored_records(log.batches(0), CODEC, "the log")
    return [record for record, _ in stored if isinstance(record, JournalRecord)]


@pytest.mark.parametrize(
    ("form", "level", "file"),
    [
        ("formatted", 30, "bootstrap.checkpoint"),
        ("4.4/formatted-dynamic", 33, f"__cluster_metadata-0/{FIRST_SNAPSHOT}"),
    ],
)
def test_formatting_leaves_what_kafkas_own_formatting_leaves(
    form: str, level: int, file: str, tmp_path: Path
) -> None:
    kafkas, me = golden(form, tmp_path)
    ours = tmp_path / "ours"
    first = f"__cluster_metadata-0/{FIRST_SNAPSHOT}"
    [voter] = voters_in(kafkas / first).voters
    endpoint = Endpoint("CONTROLLER", "127.0.0.1", voter.endpoints[0].port)
    member = QuorumMember(node_id=1, directory_id=me.directory_id, endpoint=endpoint)
    format_metadata(FILES, ours, member, now_ms=0, levels=levels_at_format(level))
    assert shape(ours / first)[1:] == shape(kafkas / first)[1:]
    assert levels_in(ours / file) == levels_in(kafkas / file)
    assert (ours / "bootstrap.checkpoint").exists() == (kafkas / "bootstrap.checkpoint").exists()


def voters_in(path: Path) -> VotersRecord:
    [value] = [value for kind, value in shape(path) if kind is ControlRecordType.KRAFT_VOTERS]
    voters = decode_quorum_record(ControlRecordType.KRAFT_VOTERS, value)
    assert isinstance(voters, VotersRecord)
    return voters


def test_a_bootstrap_checkpoint_that_kafka_made_is_not_overwritten(tmp_path: Path) -> None:
    data, me = golden("formatted", tmp_path)
    shutil.rmtree(metadata_log_directory(data))
    assert not is_formatted(FILES, data)
    format_metadata(FILES, data, me, now_ms=0)
    assert is_formatted(FILES, data)
    assert opened(data, me).metadata.features.in_log["transaction.version"] == 2


def test_a_crash_while_formatting_leaves_a_directory_that_is_not_formatted(data: Path) -> None:
    (metadata_log_directory(data) / "00000000000000000000-0000000000.checkpoint").unlink()
    assert not is_formatted(FILES, data)


def shape(path: Path) -> Sequence[tuple[ControlRecordType | None, bytes]]:
    """The control records of a snapshot, without their times (which the first one repeats)."""
    batch = memoryview(path.read_bytes())
    first = batch[: read_header(batch).size_bytes]
    return [(kind, record.value or b"") for kind, record in control_records([first])]


def levels_in(path: Path) -> list[tuple[str, int]]:
    """The feature levels in a snapshot, in its order."""
    stored = stored_records(read_snapshot(FILES, path), CODEC, path.name)
    values = [record.value for record, _ in stored if isinstance(record, JournalRecord)]
    return [
        (value.name, value.feature_level)
        for value in values
        if isinstance(value, FeatureLevelRecord)
    ]


def test_a_log_that_begins_with_a_snapshot_is_read_from_there(data: Path) -> None:
    """As Kafka leaves it when it has dropped the log before its newest snapshot."""
    kraft = opened(data)
    log = kraft.journal.log
    controller_of(kraft).create_topics([NewTopic(name="old")], 0)
    end = log.log_end_offset
    old = kraft.metadata.topics["old"]
    records = [
        JournalRecord(FeatureLevelRecord(name="metadata.version", feature_level=30)),
        JournalRecord(TopicRecord(name="old", topic_id=old.id)),
        kraft.metadata.features.versioned(old.partitions[0].to_record(old.id)),
    ]
    controls = [record for _, record in control_records(log.batches(0))][1:3]
    snapshot = snapshot_bytes(controls, records, CODEC, last_contained_ms=0, now_ms=0)
    (log.directory / f"{end:020d}-{1:010d}.checkpoint").write_bytes(snapshot)
    controller_of(kraft).create_topics([NewTopic(name="new")], 0)
    log.roll(0)
    log.increment_log_start_offset(end)

    again = open_kraft_log(log, FILES, "cluster", ME, now_ms=0)
    assert again.metadata.topics == kraft.metadata.topics
    assert list(again.metadata.topics) == ["old", "new"]
    assert again.leader_epoch == 2
    assert control_kinds(log).count(ControlRecordType.KRAFT_VOTERS) == 1


def test_a_log_that_ends_before_its_newest_snapshot_goes_on_behind_it(data: Path) -> None:
    kraft = opened(data)
    levels = [JournalRecord(FeatureLevelRecord(name="metadata.version", feature_level=30))]
    controls = voter_records(kraft.quorum)
    snapshot = snapshot_bytes(controls, levels, CODEC, last_contained_ms=0, now_ms=0, epoch=7)
    (kraft.journal.log.directory / f"{500:020d}-{7:010d}.checkpoint").write_bytes(snapshot)
    again = opened(data)
    log = again.journal.log
    assert (log.log_start_offset, again.leader_epoch) == (500, 8)
    assert log.log_end_offset == 501  # the LeaderChange
    assert opened(data).metadata.features.in_log == {"metadata.version": 30}


# -- older metadata


@pytest.mark.parametrize(("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2)])
def test_records_are_written_as_the_finalised_metadata_version_can_read_them(
    level: int, version: int, data: Path
) -> None:
    log = opened(data).journal.log
    append(log, FeatureLevelRecord(name="metadata.version", feature_level=level))
    kraft = opened(data)
    controller_of(kraft).create_topics([NewTopic(name="t")], 0)
    partition = kraft.metadata.topics["t"].partitions[0]
    record = kraft.metadata.features.versioned(partition.to_record(kraft.metadata.topics["t"].id))
    assert record.value_version == version
    assert partition.directories == ((ME.directory_id,) if version else ())
    assert opened(data).metadata.topics == kraft.metadata.topics
