"""Which coordinator is notified when a log comes or goes."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.startup.coordinator_logs import CoordinatorLogs
from odradek.coordinator.metadata.topics import Topics
from odradek.protocol.records.cluster_metadata import PartitionRecord, TopicRecord

NAMES = ("__letters", "__numbers", "orders")


class Recorder:
    """A coordinator that only remembers what it was notified of."""

    def __init__(self, topic: str) -> None:
        self.events: list[object] = []
        self.shards: Any = SimpleNamespace(
            topic=topic, postpone=lambda log: self.events.append(("postponed", log.partition))
        )

    def open_topic(self, logs: Iterable[Any], partition_count: int) -> None:
        self.events.append(("open", [log.partition for log in logs], partition_count))

    def partition_online(self, log: Any) -> None:
        self.events.append(("online", log.partition))

    def partition_offline(self, partition: int) -> None:
        self.events.append(("offline", partition))

    def close(self) -> None:
        self.events.append("close")


class Rig:
    """Two coordinators, and three topics of two partitions; partition 1 is offline everywhere."""

    def __init__(self) -> None:
        self.letters, self.numbers = Recorder("__letters"), Recorder("__numbers")
        self.topics = Topics()
        for name in NAMES:
            topic_id = name.rjust(16).encode()
            self.topics.replay_topic(TopicRecord(name=name, topic_id=topic_id))
            for index in range(2):
                self.topics.replay_partition(partition_record(topic_id, index))
        self.found = {(name, 0): self.log(name) for name in NAMES}
        log_manager: Any = SimpleNamespace(find=lambda *key: self.found.get(key))
        self.logs = CoordinatorLogs([self.letters, self.numbers], log_manager, self.topics)

    @staticmethod
    def log(topic: str, partition: int = 0) -> Any:
        return SimpleNamespace(topic=topic, partition=partition, is_online=True)


def partition_record(topic_id: bytes, index: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=[7],
        isr=[7],
        removing_replicas=[],
        adding_replicas=[],
        leader=7,
        leader_epoch=0,
        partition_epoch=0,
        directories=[],
    )


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_at_start_each_coordinator_loads_the_logs_of_its_topic_that_are_online(rig: Rig) -> None:
    rig.found["__numbers", 0].is_online = False
    rig.logs.load()
    assert rig.letters.events == [("open", [0], 2)]
    assert rig.numbers.events == [("open", [], 2)]


def test_only_the_coordinator_of_its_topic_is_notified_of_a_log(rig: Rig) -> None:
    for name in NAMES[1:]:
        rig.logs.log_found(rig.log(name, 1))
        rig.logs.log_lost(rig.log(name, 0))
        rig.logs.topic_deleted(rig.topics[name])
    assert rig.letters.events == []
    assert rig.numbers.events == [("online", 1), ("offline", 0), ("postponed", 0), "close"]


def test_partitions_that_a_topic_gets_later_are_opened_if_they_are_online(rig: Rig) -> None:
    rig.found["__numbers", 3] = rig.log("__numbers", 3)
    for name in ("__numbers", "orders"):
        rig.logs.partitions_created(rig.topics[name], [2, 3])
    assert rig.numbers.events == [("online", 3)]
    assert rig.letters.events == []


def test_when_the_broker_stops_all_coordinators_are_closed(rig: Rig) -> None:
    rig.logs.close()
    assert rig.letters.events == rig.numbers.events == ["close"]
