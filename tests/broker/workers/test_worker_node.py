"""A worker's node on the test's own loop, without its process and without the broker's."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.common.log_lines import log_format_in_use
from odradek.broker.processes.remote_transactions import RemoteTransactions
from odradek.broker.processes.worker_messages import (
    MetadataBatches,
    SharedDirectory,
    StartWorker,
)
from odradek.broker.security.session import Session
from odradek.broker.workers.forwarding import Forwarder, WorkerDispatcher
from odradek.broker.workers.metadata_follower import MetadataFollower
from odradek.broker.workers.remote_assignments import RemoteAssignments
from odradek.broker.workers.worker_node import WorkerNode
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.metadata_format import metadata_log_directory
from odradek.coordinator.metadata.metadata_reading import read_metadata
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.journal import CorruptJournalError
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersTopic,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import RemoveTopicRecord
from tests.support.faulty_files import FaultyFiles, below
from tests.support.wire import request_frame

NOBODY: Any = None  # at the other end of the channel
PORTS = [{"PLAINTEXT": 1}, {"PLAINTEXT": 2}]
MARKER = WriteTxnMarkersMarker(
    producer_id=9,
    producer_epoch=0,
    transaction_result=False,
    topics=[WriteTxnMarkersTopic(name="t", partition_indexes=[0])],
    coordinator_epoch=0,
)


async def test_a_worker_answers_when_what_a_request_wrote_was_not_synced(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    files = FaultyFiles()
    node = await worker_node(config, files)
    log = node.log_manager.get("t", 0)
    dispatcher = WorkerDispatcher(node, Forwarder(NOBODY))
    frame = request_frame(WriteTxnMarkersRequest(markers=[MARKER]), 1, 1, "admin")[4:]
    session = Session(config.open_listeners[0], ("127.0.0.1", 40000))
    files.fail(below(log.directory.parent, "fsync"))
    answer: Any = dispatcher.dispatch(session, memoryview(bytearray(frame)))
    await dispatcher.complete(answer)
    [result] = answer.response.markers
    assert result.topics[0].partitions[0].error_code == 0, "it is written, as in the broker's own"
    assert not log.is_online
    files.heal()
    node.answer_parked_requests()
    await node.close_logs()


async def test_a_followed_record_that_contradicts_the_metadata_is_named_with_log_and_offset(
    tmp_path: Path,
) -> None:
    config = config_in(tmp_path)
    node = await worker_node(config, FaultyFiles())
    offset = node.followed_to
    record = JournalRecord(RemoveTopicRecord(topic_id=bytes(range(16))))
    value = MetadataRecordCodec.of_cluster().encode(record)[1]
    batch = bytes(build_batch([Record(None, value, 0)], base_offset=offset))
    appended = MetadataBatches([batch], offset + 1, node.quorum_version)
    with pytest.raises(CorruptJournalError, match=f"__cluster_metadata-0, offset {offset}: Remove"):
        await MetadataFollower(node).apply(appended)
    await node.close_logs()


async def test_a_worker_that_has_closed_its_logs_has_ended_its_disk_threads(tmp_path: Path) -> None:
    node = await worker_node(config_in(tmp_path), FaultyFiles())
    await node.disk.run(int)
    assert await node.close_logs() == [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(RuntimeError, match="after shutdown"):
        node.disk.run(int)


def config_in(path: Path) -> BrokerConfig:
    return BrokerConfig.from_texts(
        {
            "log.dirs": f"{path / 'a'},{path / 'b'}",
            "listeners": "PLAINTEXT://localhost:9092",
            "odradek.workers": "1",
        }
    )


async def worker_node(config: BrokerConfig, files: FaultyFiles) -> WorkerNode:
    """The node of the only worker, which has the one partition of the topic `t`."""
    loop = asyncio.get_running_loop()
    broker = Broker(config, loop, PORTS[0], worker_ports=PORTS[1:])
    broker.metadata_log.worker_progress.note_applied(1, 1 << 40)  # no worker follows
    topic = NewTopic(name="t", partition_count=1, configs={"flush.messages": "1"})
    await broker.admin.topics.create([topic])
    cluster_id = broker.log_manager.cluster_id
    shared = [
        SharedDirectory(each.path, cluster_id, each.directory_id, had_clean_shutdown=True)
        for each in broker.log_manager.directories
    ]
    await broker.close()
    start = StartWorker(
        process=1,
        is_restarted=False,
        settings=config.texts,
        log_format=log_format_in_use(),
        directories=shared,
        offline={},
        ports=PORTS,
        sockets={},
        http_sockets=[],
    )
    path = metadata_log_directory(config.metadata_directory.absolute())
    reading = read_metadata(files, path, cluster_id, allow_torn_end=True)
    return WorkerNode(
        config,
        loop,
        start,
        files,
        reading,
        lambda *_: None,
        RemoteAssignments(NOBODY),
        RemoteTransactions(NOBODY),
    )
