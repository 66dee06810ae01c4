"""Snapshots say what the log before them said, all of it, even what we cannot read."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.metadata_image import MetadataImage
from odradek.coordinator.metadata.metadata_snapshot import (
    RECORDS_PER_BATCH,
    snapshot_bytes,
    snapshot_pieces,
)
from odradek.coordinator.runtime.journal import replay_stored, stored_records
from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.batch_header import read_header
from odradek.protocol.records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from odradek.protocol.schema import Message, replace
from tests.support.metadata_logs import ACL

CODEC = MetadataRecordCodec.of_cluster()
UNREAD = bytes.fromhex("01a70100")  # frame 1, record type 167, version 0


def uuid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def level(name: str, feature_level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=feature_level)


BROKER = RegisterBrokerRecord(
    broker_id=1,
    incarnation_id=uuid(3),
    broker_epoch=7,
    end_points=[BrokerEndpoint(name="P", host="h", port=9, security_protocol=0)],
    features=[BrokerFeature(name="x.version", min_supported_version=1, max_supported_version=4)],
    rack="r",
    fenced=False,
    log_dirs=[uuid(4), uuid(5)],
    cordoned_log_dirs=[uuid(5)],
)
CONTROLLER = RegisterControllerRecord(
    controller_id=1,
    incarnation_id=uuid(6),
    zk_migration_ready=False,
    end_points=[BrokerEndpoint(name="C", host="h", port=8, security_protocol=0)],
    features=[
        BrokerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1)
    ],
)
TOPIC = TopicRecord(name="t", topic_id=uuid(9))
PARTITION = PartitionRecord(
    partition_id=0,
    topic_id=uuid(9),
    replicas=[1],
    isr=[1],
    removing_replicas=[],
    adding_replicas=[],
    leader=1,
    leader_epoch=2,
    partition_epoch=3,
    directories=[uuid(4)],
)
QUOTA = ClientQuotaRecord(
    entity=[EntityData(entity_type="user", entity_name=None)],
    key="producer_byte_rate",
    value=1024.5,
    remove=False,
)
SCRAM = UserScramCredentialRecord(
    name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
)
TOKEN = DelegationTokenRecord(
    owner="User:a",
    requester="User:a",
    renewers=["User:b"],
    issue_timestamp=1,
    max_timestamp=9,
    expiration_timestamp=5,
    token_id="id",
)
CONFIG = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="7")
PRODUCER_IDS = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=2000)

# One of everything, in the order in which Kafka writes it.
EVERYTHING: tuple[Message, ...] = (
    level("metadata.version", 30),
    level("eligible.leader.replicas.version", 1),
    BROKER,
    CONTROLLER,
    TOPIC,
    PARTITION,
    CONFIG,
    QUOTA,
    PRODUCER_IDS,
    ACL,
    SCRAM,
    TOKEN,
)


def replayed(records: Sequence[Message | bytes]) -> ClusterMetadata:
    metadata = ClusterMetadata("cluster")
    for offset, record in enumerate(records):
        known = isinstance(record, Message)
        typed = JournalRecord(record) if known else JournalRecord(None, unread=record)
        metadata.replay(typed, ReplayContext(offset, 1_000 + offset))
    return metadata


def image_of(metadata: ClusterMetadata) -> list[Message | bytes | None]:
    image = MetadataImage.of(metadata, metadata.last_offset + 1)
    return [record.unread or record.value for record in image.records()]


def test_an_image_has_everything_in_kafkas_order() -> None:
    shuffled = [level("eligible.leader.replicas.version", 1), UNREAD, *reversed(EVERYTHING[5:])]
    metadata = replayed([*EVERYTHING[:5], *shuffled])
    assert image_of(metadata) == [*EVERYTHING, UNREAD]


def test_an_image_has_the_sum_of_changes_and_not_their_history() -> None:
    changes = [
        *EVERYTHING,
        NoOpRecord(),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=1, log_dirs=[uuid(5)]),
        PartitionChangeRecord(partition_id=0, topic_id=uuid(9), leader=1, isr=[1]),
        ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None),
        level("eligible.leader.replicas.version", 0),
    ]
    told = image_of(replayed(changes))
    broker = next(one for one in told if isinstance(one, RegisterBrokerRecord))
    assert (broker.fenced, broker.log_dirs, broker.features) == (True, [uuid(5)], BROKER.features)
    partition = next(one for one in told if isinstance(one, PartitionRecord))
    assert (partition.leader_epoch, partition.partition_epoch) == (3, 4)
    assert not any(isinstance(one, ConfigRecord | NoOpRecord) for one in told)
    assert [one for one in told if isinstance(one, FeatureLevelRecord)] == [EVERYTHING[0]]


def test_what_was_removed_is_in_no_image() -> None:
    removals = [
        RemoveTopicRecord(topic_id=uuid(9)),
        ClientQuotaRecord(entity=QUOTA.entity, key=QUOTA.key, value=0.0, remove=True),
        RemoveAccessControlEntryRecord(id=ACL.id),
        RemoveUserScramCredentialRecord(name="a", mechanism=1),
        RemoveDelegationTokenRecord(token_id="id"),
        UnregisterControllerRecord(controller_id=1),
    ]
    assert image_of(replayed([*EVERYTHING, *removals])) == [
        *EVERYTHING[:3],
        PRODUCER_IDS,
    ]


def test_an_aborted_transaction_is_in_no_image_and_an_ended_one_is() -> None:
    begin, end, abort = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
    metadata = replayed([EVERYTHING[0], begin, UNREAD, SCRAM, abort, begin, b"\x01\x63\x00", end])
    assert image_of(metadata) == [EVERYTHING[0], b"\x01\x63\x00"]


def test_half_a_transaction_makes_no_image() -> None:
    with pytest.raises(AssertionError):
        MetadataImage.of(replayed([BeginTransactionRecord()]), 1)


def test_an_image_stays_as_it_was_while_the_metadata_goes_on() -> None:
    metadata = replayed(EVERYTHING)
    image = MetadataImage.of(metadata, 0)
    records = image.records()
    next(records)
    for message in (RemoveTopicRecord(topic_id=uuid(9)), level("metadata.version", 7), SCRAM):
        metadata.replay(JournalRecord(message), ReplayContext(99, 0))
    metadata.scram_credentials.replay_removal(
        RemoveUserScramCredentialRecord(name="a", mechanism=1)
    )
    assert [record.value for record in records] == list(EVERYTHING[1:])


def test_eligible_leader_replicas_are_left_out_where_the_feature_is_off() -> None:
    change = PartitionChangeRecord(
        partition_id=0, topic_id=uuid(9), eligible_leader_replicas=[1], last_known_elr=[1]
    )
    for on in (True, False):
        elr = level("eligible.leader.replicas.version", int(on))
        told = image_of(replayed([*EVERYTHING, change, elr]))
        partition = next(one for one in told if isinstance(one, PartitionRecord))
        assert partition.eligible_leader_replicas == ([1] if on else None)
        assert partition.last_known_elr == ([1] if on else None)


@given(st.permutations(EVERYTHING[6:]), st.lists(st.binary(min_size=1, max_size=5), max_size=3))
def test_a_snapshot_file_replays_into_the_same_metadata(
    rest: list[Message], unread: list[bytes]
) -> None:
    strange = [b"\x01\x63\x00" + tail for tail in unread]  # frame version 1, type 99, anything
    metadata = replayed([*EVERYTHING[:6], *rest, *strange])
    image = MetadataImage.of(metadata, 100)
    data = memoryview(
        snapshot_bytes([], image.records(), CODEC, last_contained_ms=5, now_ms=6, epoch=3)
    )
    batches = []
    while data:
        size = read_header(data).size_bytes
        batches.append(data[:size])
        data = data[size:]
    again = ClusterMetadata("cluster")
    replay_stored(stored_records(batches, CODEC, "snapshot"), again, -1, "snapshot")
    assert image_of(again) == image_of(metadata)


def test_a_large_snapshot_is_made_in_pieces_whose_offsets_go_on() -> None:
    metadata = replayed(EVERYTHING[:6])
    for index in range(1, 2 * RECORDS_PER_BATCH + 5):
        partition = replace(PARTITION, partition_id=index)
        metadata.replay(JournalRecord(partition), ReplayContext(10, 0))
    image = MetadataImage.of(metadata, 100)
    pieces = list(
        snapshot_pieces([], image.records(), CODEC, last_contained_ms=5, now_ms=6, epoch=3)
    )
    headers = [read_header(memoryview(piece)) for piece in pieces if piece]
    assert [header.record_count for header in headers] == [1, 1000, 1000, 10, 1]
    assert [header.base_offset for header in headers] == [0, 1, 1001, 2001, 2011]
    assert [header.is_control for header in headers] == [True, False, False, False, True]
    assert {header.partition_leader_epoch for header in headers} == {3}
    assert pieces.count(b"") == 18  # a breath every hundred records
