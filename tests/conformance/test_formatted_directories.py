"""What a new data directory begins with, and what a broker on it says of its cluster: as Kafka's.

Kafka's is formatted by `kafka-storage format --standalone`. Features that odradek does not serve
are in neither's account, nor is the controller, which odradek does not register.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.features import SERVED
from odradek.coordinator.metadata.metadata_snapshot import read_snapshot
from odradek.coordinator.metadata.snapshot_batches import control_records
from odradek.coordinator.runtime.journal import stored_records
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from odradek.protocol.records.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from odradek.protocol.records.control import ControlRecordType, VotersRecord, decode_quorum_record
from odradek.storage.checkpoints import read_meta_properties
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader
from tests.conformance.conversation import Conversation, advertised_versions
from tests.conformance.transcript import differences
from tests.support.broker_process import (
    ApacheKafkaProcess,
    BrokerProcess,
    against_apache_kafka,
    free_ports,
)
from tests.support.java_tools import why_no_java

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    pytest.mark.skipif(against_apache_kafka(), reason="compares the two"),
]

VOTERS = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


class Home(NamedTuple):
    """A directory after its first life, and what its broker said in it."""

    data: Path
    features: ApiVersionsResponse
    talk: list[tuple[str, Any]]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, Home]:
    """Kafka's and odradek's."""
    [controller] = free_ports(1)
    kafka = ApacheKafkaProcess(tmp_path_factory.mktemp("kafka"))
    del kafka.settings["controller.quorum.voters"]
    odradek = BrokerProcess(tmp_path_factory.mktemp("odradek"))
    for process in (kafka, odradek):
        plain = process.settings["advertised.listeners"]
        process.settings |= {
            "listeners": f"{plain},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "min.insync.replicas": "2",
        }
    return first_life(kafka), first_life(odradek)


def first_life(process: BrokerProcess) -> Home:
    try:
        process.start()
        versions = advertised_versions(process.port)
        talk = Conversation(process.port, versions)
        asked = DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata",
            partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
        )
        for version in talk.versions_of(DescribeQuorumRequest):
            talk.ask(DescribeQuorumRequest(topics=[asked]), version)
        client = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
        features = talk.silently(client, 4)
        talk.close()
        assert process.terminate() in process.clean_exit_codes
    finally:
        process.stop()
    return Home(process.data, features, talk.transcript.lines)


def test_the_features_are_supported_and_finalised_alike(homes: tuple[Home, Home]) -> None:
    kafkas, ours = (
        (
            {one.name: one for one in home.features.supported_features if one.name in SERVED},
            {one.name: one for one in home.features.finalized_features if one.name in SERVED},
        )
        for home in homes
    )
    assert ours == kafkas
    assert ours[0].keys() == ours[1].keys() == SERVED.keys()


def test_the_quorum_is_described_alike(homes: tuple[Home, Home]) -> None:
    kafkas, ours = homes
    for (title, answer), (_, other) in zip(kafkas.talk, ours.talk, strict=True):
        for side in (answer, other):
            [partition] = side["topics"][0]["partitions"]
            ends = [partition.pop("high_watermark")]
            ends += [voter.pop("log_end_offset") for voter in partition["current_voters"]]
            assert min(ends) > 0, title
            assert len(partition["current_voters"]) == 1
        assert differences(answer, other) == [], title


def test_the_snapshots_of_formatting_say_the_same(homes: tuple[Home, Home]) -> None:
    kafkas, ours = (
        [
            *quorum_records(home, batches := read_snapshot(Files(), home.data / VOTERS)),
            *records_of(batches),
        ]
        for home in homes
    )
    assert ours == kafkas
    assert len(ours) > 4
    for home in homes:
        assert not (home.data / "bootstrap.checkpoint").exists()


def test_the_log_of_a_first_life_begins_with_the_same_records(homes: tuple[Home, Home]) -> None:
    kafkas, ours = (quorum_records(home, metadata_batches(home)) for home in homes)
    assert ours == kafkas
    assert [kind for kind, _ in ours] == [
        ControlRecordType.LEADER_CHANGE,
        ControlRecordType.KRAFT_VERSION,
        ControlRecordType.KRAFT_VOTERS,
    ]
    of_brokers = (RegisterBrokerRecord, BrokerRegistrationChangeRecord)
    kafkas, ours = (
        [
            (value, version)
            for value, version in records_of(metadata_batches(home))
            if not isinstance(value, (*of_brokers, RegisterControllerRecord, NoOpRecord))
        ]
        for home in homes
    )
    assert ours == kafkas


def test_a_first_life_registers_the_broker_alike(homes: tuple[Home, Home]) -> None:
    """Kafka registers it fenced and changes that by further records."""

    def registered(home: Home) -> RegisterBrokerRecord:
        metadata = ClusterMetadata("cluster")
        codec = MetadataRecordCodec.of_cluster()
        for record, context in stored_records(metadata_batches(home), codec, "log"):
            assert isinstance(record, JournalRecord)
            metadata.replay(record, context)
        [broker] = metadata.brokers.values()
        return broker

    (kafkas, theirs), (ours, mine) = ((registered(home), home) for home in homes)
    served = [feature for feature in kafkas.features if feature.name in SERVED]
    assert sorted(ours.features, key=str) == sorted(served, key=str)
    for broker, home in ((kafkas, theirs), (ours, mine)):
        assert broker.log_dirs == [directory_id(home)]
        assert broker.cordoned_log_dirs == []
        assert broker.fenced
    assert ours.rack == kafkas.rack
    assert [one.name for one in ours.end_points] == [one.name for one in kafkas.end_points]


# -- what is compared


def directory_id(home: Home) -> bytes:
    meta = read_meta_properties(Files(), home.data)
    assert meta is not None
    assert meta.directory_id is not None
    return meta.directory_id


def metadata_batches(home: Home) -> list[memoryview]:
    reader = LogReader(home.data / "__cluster_metadata-0")
    return [memoryview(bytes(data)) for _, data in reader.batches(0)]


def quorum_records(home: Home, batches: Sequence[memoryview]) -> list[tuple[object, object]]:
    """Control records; the time of a snapshot left out, the directory's id by its place."""
    found: list[tuple[object, object]] = []
    for kind, record in control_records(batches):
        value: object = record.value
        if kind is ControlRecordType.SNAPSHOT_HEADER:
            value = len(record.value or b"")
        elif kind is ControlRecordType.KRAFT_VOTERS:
            voters = decode_quorum_record(kind, record.value or b"")
            assert isinstance(voters, VotersRecord)
            [voter] = voters.voters
            assert voter.voter_directory_id == directory_id(home)
            value = (voter.voter_id, voter.endpoints, voter.kraft_version_feature)
        found.append((kind, value))
    return found


def records_of(batches: Sequence[memoryview]) -> list[tuple[object, int]]:
    """Metadata records with their versions; levels of features that odradek serves."""
    codec = MetadataRecordCodec.of_cluster()
    stored = [record for record, _ in stored_records(batches, codec, "metadata")]
    return [
        (record.value, record.value_version)
        for record in stored
        if isinstance(record, JournalRecord)
        and not (isinstance(record.value, FeatureLevelRecord) and record.value.name not in SERVED)
    ]
