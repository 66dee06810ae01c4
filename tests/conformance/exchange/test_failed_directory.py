"""A log directory is lost under a broker, and comes back: Kafka and odradek say and write the same.

Kafka makes the data directories; each serves a copy of them, loses the second one, and is killed;
then the other one serves what is left, with the lost directory back.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.runtime.journal import stored_records
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from odradek.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
    DescribeTopicPartitionsResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)
from odradek.storage.log_reader import LogReader
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess, against_apache_kafka
from tests.support.bystander import PRODUCE_VERSION, produce_request
from tests.support.java_tools import why_no_java
from tests.support.lengths import only_long
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    pytest.mark.skipif(against_apache_kafka(), reason="compares the two"),
    only_long("other directories are exchanged in test_exchange.py"),
]

PARTITIONS = 6
SETTINGS = {
    # By this write a broker finds that the directory has gone.
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "offsets.topic.num.partitions": "1",
    # A broker that was killed still counts as alive for so long.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "500",
}


def broker_on(kind: type[BrokerProcess], shared: Path, **more: str) -> BrokerProcess:
    directories = f"{shared / 'data'},{shared / 'other'}"
    settings = {**SETTINGS, "log.dirs": directories, **more}
    if kind is BrokerProcess:
        settings = {key: value for key, value in settings.items() if "broker." not in key}
    return kind(shared, settings)


def partitions(broker: BrokerProcess) -> dict[int, Any]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    with WireClient(broker.port) as client:
        told = client.ask(request, MetadataResponse, 12).topics[0].partitions
    return {one.partition_index: one for one in told}


def described(broker: BrokerProcess) -> dict[int, Any]:
    request = DescribeTopicPartitionsRequest(topics=[DescribeTopicPartitionsRequestTopic(name="t")])
    with WireClient(broker.port) as client:
        told = client.ask(request, DescribeTopicPartitionsResponse, 0).topics[0].partitions
    return {one.partition_index: one for one in told}


def errors_of_directories(broker: BrokerProcess) -> list[int]:
    with WireClient(broker.port) as client:
        told = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4).results
    return sorted(one.error_code for one in told)


def produce_to_all(broker: BrokerProcess) -> list[int]:
    """The error of each partition."""
    request = produce_request("t", build_batch([Record(None, b"v", 0)]), partitions=PARTITIONS)
    with WireClient(broker.port) as client:
        told = client.ask(request, ProduceResponse, PRODUCE_VERSION).responses[0]
    by_index = {one.index: one.error_code for one in told.partition_responses}
    return [by_index[index] for index in range(PARTITIONS)]


def is_led(broker: BrokerProcess) -> bool:
    return all(one.leader_id == 0 for one in partitions(broker).values())


def metadata_records(shared: Path) -> list[tuple[int, Any]]:
    """The version and value of every record of the metadata log."""
    reader = LogReader(shared / "data" / "__cluster_metadata-0")
    batches = [batch.data for batch in reader.batches()]
    stored = stored_records(batches, MetadataRecordCodec.of_cluster(), "metadata")
    return [(record.value_version, record.value) for record, _ in stored]


def lose_other(broker: BrokerProcess, shared: Path) -> dict[str, Any]:
    """All that is told and written when the second directory goes; then the broker is killed."""
    already = len(metadata_records(shared))
    (shared / "other").rename(shared / "away")
    produce_to_all(broker)  # odradek writes the checkpoint only when there is something to say
    wait_until(lambda: any(one.leader_epoch for one in described(broker).values()
                           if one.leader_id == -1))  # fmt: skip
    told = {
        "metadata": partitions(broker),
        "described": described(broker),
        "directories": errors_of_directories(broker),
        "produce": produce_to_all(broker),
    }
    broker.kill()
    changes = [
        (version, value)
        for version, value in metadata_records(shared)[already:]
        if (isinstance(value, PartitionChangeRecord) and value.leader == -1)
        or (isinstance(value, BrokerRegistrationChangeRecord) and value.log_dirs)
    ]
    (shared / "away").rename(shared / "other")
    partition_changes = [one for one in changes if isinstance(one[1], PartitionChangeRecord)]
    told["changes"] = sorted(partition_changes, key=lambda one: one[1].partition_id)
    told["directories left"] = [
        (version, value.log_dirs) for version, value in changes[len(partition_changes) :]
    ]
    return told


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data directories of Kafka's, with a topic that lies in both; Kafka was killed."""
    shared = tmp_path_factory.mktemp("made")
    broker = broker_on(ApacheKafkaProcess, shared).start()
    create_topic(broker.bootstrap, "t", PARTITIONS)
    wait_until(lambda: is_led(broker) and set(produce_to_all(broker)) == {0})
    broker.kill()
    (shared / "broker.log").unlink()
    return shared


def test_a_directory_is_lost_and_comes_back(made: Path, tmp_path: Path) -> None:
    found = {}
    for kind, other in ((ApacheKafkaProcess, BrokerProcess), (BrokerProcess, ApacheKafkaProcess)):
        shared = tmp_path / kind.name
        shutil.copytree(made, shared)
        first, second = broker_on(kind, shared), broker_on(other, shared)
        try:
            first.start()
            wait_until(lambda broker=first: is_led(broker))
            before = partitions(first)
            found[kind.name] = lose_other(first, shared)
            hurt = {i for i, told in found[kind.name]["metadata"].items() if told.leader_id == -1}
            assert 0 < len(hurt) < PARTITIONS
            assert all((shared / "other" / f"t-{index}").is_dir() for index in hurt)
            second.start()
            wait_until(lambda broker=second: is_led(broker))
            wait_until(lambda broker=second: set(produce_to_all(broker)) == {0})
            for index in hurt:
                assert partitions(second)[index].leader_epoch >= before[index].leader_epoch + 2
            assert errors_of_directories(second) == [0, 0]
        finally:
            first.stop()
            second.stop()
    assert epochs_apart(found["odradek"]) == epochs_apart(found["kafka"])


def epochs_apart(told: dict[str, Any]) -> dict[str, Any]:
    """Without the leader epochs: how often each has led the partition is no matter here."""
    for name in ("metadata", "described"):
        told[name] = {
            index: {**as_dict(one), "leader_epoch": None} for index, one in told[name].items()
        }
    told["changes"] = [(version, as_dict(value)) for version, value in told["changes"]]
    return told


def as_dict(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__struct_fields__}
