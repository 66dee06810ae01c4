"""One worker as the broker's own process sees it, whose process ends."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.processes.worker_messages import WriteMarker
from odradek.broker.workers import worker_link
from odradek.broker.workers.worker_link import WorkerLink
from odradek.broker.workers.worker_sockets import WorkerSockets
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.transactions.marker_writer import MarkerSentError
from odradek.storage.append import EndMarker
from odradek.storage.topic_partition import TopicPartition

NOBODY: Any = None  # no request is forwarded
WHERE = TopicPartition("t", 0)
MARKER = EndMarker(9, 0, is_commit=True, coordinator_epoch=0)


async def test_a_marker_is_sent_again_after_the_end_of_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = BrokerConfig.from_texts(
        {
            "log.dirs": str(tmp_path),
            "listeners": "PLAINTEXT://localhost:9092",
            "odradek.workers": "1",
        }
    )
    loop = asyncio.get_running_loop()
    broker = Broker(config, loop, {"PLAINTEXT": 1}, worker_ports=[{"PLAINTEXT": 2}])
    broker.metadata_log.worker_progress.note_applied(1, 1 << 40)  # no worker follows
    await broker.admin.topics.create([NewTopic(name=WHERE.topic, partition_count=1)])
    markers = broker.coordinators.remote_markers
    assert markers is not None
    sent: list[WriteMarker] = []

    def send(process: int, message: WriteMarker) -> bool:
        assert process == 1
        sent.append(message)
        return True

    markers.send = send
    for _ in range(2):
        with pytest.raises(MarkerSentError):
            markers.write(MARKER, WHERE)
    assert sent == [WriteMarker(MARKER, WHERE)]
    monkeypatch.setattr(worker_link, "COMMAND", [sys.executable, "-c", ""])
    link = WorkerLink(broker, 1, WorkerSockets(bound=[], http=None), NOBODY, markers)
    await link.run()
    with pytest.raises(MarkerSentError):
        markers.write(MARKER, WHERE)
    assert len(sent) == 2
    await broker.close()
