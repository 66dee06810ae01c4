"""Apache Kafka reads the metadata that we write: its dump tool, and the broker itself."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.kraft_log import open_kraft_log
from odradek.coordinator.metadata.metadata_format import format_metadata
from odradek.coordinator.metadata.metadata_image import MetadataImage
from odradek.coordinator.metadata.metadata_snapshot import snapshot_pieces
from odradek.coordinator.metadata.producer_ids import BLOCK_SIZE
from odradek.coordinator.metadata.quorum import QuorumMember, voter_records
from odradek.coordinator.metadata.snapshot_keeping import SnapshotKeeper, SnapshotRules
from odradek.coordinator.metadata.token_changes import NewToken, TokenRules
from odradek.coordinator.metadata.token_hmacs import TokenHmacs
from odradek.coordinator.metadata.topic_creation import MorePartitions, NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.primitives import METADATA_TOPIC_ID, random_uuid
from odradek.storage.checkpoints import (
    MetaProperties,
    write_clean_shutdown,
    write_meta_properties,
    write_topic_id,
)
from odradek.storage.deletions import Deletions
from odradek.storage.filenames import MetadataSnapshotName
from odradek.storage.files import Files
from tests.support.broker_process import free_ports
from tests.support.java_tools import JavaTools
from tests.support.lengths import by_length
from tests.support.metadata_logs import ME, controller_of, metadata_log
from tests.support.timer import Timer

pytestmark = pytest.mark.java

CLUSTER_ID = "Y45AvnC3Rhqkz8Ak_NyCPA"
FILES = Files()
START_SECONDS = 180
SECRET_KEY = "secret"
DAY_MS = 86_400_000


def member() -> QuorumMember:
    return QuorumMember(node_id=1, directory_id=random_uuid(), endpoint=ME.endpoint)


def open_controller(data: Path, me: QuorumMember) -> Controller:
    now_ms = time.time_ns() // 1_000_000
    log = metadata_log(data, files=FILES)
    kraft = open_kraft_log(log, FILES, CLUSTER_ID, me, now_ms=now_ms)
    return controller_of(kraft)


def write_snapshot(controller: Controller, kept: SnapshotKeeper) -> None:
    """As the broker does it, at once."""
    log = controller.log
    image = MetadataImage.of(controller.metadata, log.log_end_offset)
    pieces = snapshot_pieces(
        voter_records(controller.quorum),
        image.records(),
        MetadataRecordCodec.of_cluster(),
        last_contained_ms=image.last_contained_ms,
        now_ms=8,
        epoch=log.leader_epoch,
    )
    kept.store(MetadataSnapshotName(image.end_offset, log.leader_epoch), pieces)
    log.roll(8)


def leave_only_the_end(controller: Controller) -> None:
    """Two snapshots, of which the first goes again, and the log before the second."""
    rules = SnapshotRules(retention_bytes=0)
    kept = SnapshotKeeper(controller.log, FILES, Deletions(Timer()), rules, now_ms=0)
    write_snapshot(controller, kept)
    for _ in range(BLOCK_SIZE):  # there must be a record between the two
        controller.producer_ids.take(8)
    write_snapshot(controller, kept)
    assert kept.clean(8) > 0
    assert controller.log.segments[0].base_offset > 0


def make_tokens(controller: Controller) -> None:
    """One that stays valid, and one that is removed."""
    hmacs = TokenHmacs(SECRET_KEY, controller.metadata.delegation_tokens)
    rules = TokenRules(hmacs=hmacs, max_lifetime_ms=DAY_MS, expiry_time_ms=DAY_MS)
    now_ms = time.time_ns() // 1_000_000
    for token_id in ("stays", "goes"):
        wanted = NewToken(
            token_id=token_id,
            owner="User:alice",
            requester="User:carol",
            renewers=["User:bob"],
            max_lifetime_ms=-1,
        )
        controller.create_token(wanted, rules, now_ms)
    controller.renew_token(hmacs.of("stays"), 60_000, "User:bob", rules, now_ms)
    controller.expire_token(hmacs.of("goes"), -1, "User:bob", rules, now_ms)


def live(data: Path, me: QuorumMember, *, dynamic: bool, cleaned: bool = False) -> None:
    """A life of ours on an empty directory that ends cleanly, after an unclean restart."""
    data.mkdir()
    write_meta_properties(FILES, data, MetaProperties(CLUSTER_ID, 1, me.directory_id))
    if dynamic:
        format_metadata(FILES, data, me, now_ms=1)
    for start in range(2):
        controller = open_controller(data, me)
        broker_epoch = controller.register_broker(
            incarnation_id=random_uuid(),
            endpoints=[Endpoint("PLAINTEXT", "localhost", 9092)],
            directories=[me.directory_id],
            rack=None,
            now_ms=2,
        )
        controller.take_over(clean_shutdown=False, directory_of={}, now_ms=3)
        if start == 0:
            wishes = [NewTopic(name="orders", configs={"retention.ms": "7"}), NewTopic(name="gone")]
            controller.create_topics(wishes, 4)
            controller.create_partitions([MorePartitions(name="orders", count=3)], 5)
            controller.delete_topics([TopicRef("gone")], 6)
            controller.producer_ids.take(7)
            make_tokens(controller)
            if cleaned:
                leave_only_the_end(controller)
    controller.fence_broker(8)
    controller.log.close(9)
    write_topic_id(FILES, controller.log.directory / "partition.metadata", METADATA_TOPIC_ID)
    write_clean_shutdown(FILES, data, broker_epoch)


def test_kafkas_dump_tool_decodes_every_record_that_we_write(
    java: JavaTools, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    live(data, member(), dynamic=True)
    log = data / "__cluster_metadata-0"
    files = [
        log / "00000000000000000000-0000000000.checkpoint",
        log / "00000000000000000000.log",
    ]
    dump = java.run(
        "DumpLogSegments", "--cluster-metadata-decoder", "--files", ",".join(map(str, files))
    )
    for kind in (
        "SnapshotHeader",
        "SnapshotFooter",
        "KRaftVersion",
        "KRaftVoters",
        "LeaderChange",
        "BEGIN_TRANSACTION_RECORD",
        "FEATURE_LEVEL_RECORD",
        "END_TRANSACTION_RECORD",
        "REGISTER_BROKER_RECORD",
        "TOPIC_RECORD",
        "CONFIG_RECORD",
        "PARTITION_RECORD",
        "PARTITION_CHANGE_RECORD",
        "REMOVE_TOPIC_RECORD",
        "PRODUCER_IDS_RECORD",
        "DELEGATION_TOKEN_RECORD",
        "REMOVE_DELEGATION_TOKEN_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
    ):
        assert kind in dump, kind
    batches = [line for line in dump.splitlines() if line.startswith("baseOffset")]
    assert batches
    assert all("isvalid: true" in line for line in batches)
    assert "Could not" not in dump
    assert "Exception" not in dump


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "cleaned"),
    by_length([("dynamic", True)], [("dynamic", True), ("static", True), ("static", False)]),
)
def test_kafka_starts_on_our_directory_and_we_start_on_what_it_leaves(
    form: str, cleaned: bool, java: JavaTools, tmp_path: Path
) -> None:
    """Also where a snapshot stands for the beginning of the log (`cleaned`)."""
    data, me = tmp_path / "data", member()
    live(data, me, dynamic=form == "dynamic", cleaned=cleaned)
    before = open_controller(data, me)
    tokens = before.metadata.delegation_tokens.by_id
    before.log.close(10)
    port, controller_port = free_ports(2)
    quorum = {
        "dynamic": f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}",
        "static": f"controller.quorum.voters=1@127.0.0.1:{controller_port}",
    }
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"""\
process.roles=broker,controller
node.id=1
{quorum[form]}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
delegation.token.secret.key={SECRET_KEY}
"""
    )
    server = f"127.0.0.1:{port}"
    kafka = java.popen("kafka.Kafka", str(properties))
    try:
        described = described_by(java, server)
        topics = ("--bootstrap-server", server, "--create", "--topic", "made.by.kafka")
        java.run("TopicCommand", *topics)
    finally:
        kafka.terminate()
        output, _ = kafka.communicate(timeout=START_SECONDS)
    assert "ERROR" not in output, output
    assert "PartitionCount: 3" in described
    assert "retention.ms=7" in described
    assert "gone" not in described
    assert described.count("Leader: 1") == 3

    controller = open_controller(data, me)
    assert list(controller.metadata.topics) == ["orders", "made.by.kafka"]
    assert controller.metadata.delegation_tokens.by_id == tokens
    assert list(tokens) == ["stays"]
    assert controller.take_over(clean_shutdown=True, directory_of={}, now_ms=0) == []
    assert controller.metadata.topics["orders"].partitions[2].isr == (1,)
    shutil.rmtree(data)


def described_by(java: JavaTools, server: str) -> str:
    """What Kafka says of its topics, once it listens."""
    host, _, port = server.partition(":")
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return java.run("TopicCommand", "--bootstrap-server", server, "--describe")
        except (OSError, subprocess.SubprocessError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
