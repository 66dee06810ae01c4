"""Applies what is appended to the metadata log in a worker.

The records are replayed into the metadata by the same code as at a start. Then the worker does what
they ask for: it creates and deletes the logs of its share, changes their configuration, and puts
quotas in force. Kafka: BrokerMetadataPublisher.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.processes.worker_messages import MetadataBatches
from odradek.coordinator.metadata.client_quotas import IP
from odradek.coordinator.metadata.config_changes import ConfigResource
from odradek.coordinator.metadata.topics import Topic, TopicEvent
from odradek.coordinator.runtime.journal import replay_stored, stored_records
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.records.cluster_metadata import (
    ClientQuotaRecord,
    ConfigRecord,
)
from odradek.protocol.schema import Message
from odradek.storage.topic_partition import TopicPartition

from .worker_node import WorkerNode

LOG_NAME = "__cluster_metadata-0"


class MetadataFollower:
    """Follows the metadata log for a worker, whose `followed_to` is the next offset."""

    def __init__(self, node: WorkerNode) -> None:
        self._node = node
        self._metadata = node.metadata
        self._codec = MetadataRecordCodec.of_cluster()
        self._changed: dict[bytes, Topic] = {}  # by id: created, or with more partitions
        self._deleted: list[Topic] = []
        self._metadata.topics.on_change.append(self._note)

    def _note(self, topic: Topic, event: TopicEvent) -> None:
        if event is TopicEvent.DELETED:
            self._deleted.append(topic)
        else:
            self._changed[topic.id] = topic

    async def apply(self, appended: MetadataBatches) -> None:
        """Replay the batches, and return when all has been done that they ask for."""
        views = [memoryview(batch) for batch in appended.batches]
        stored = list(stored_records(views, self._codec, LOG_NAME))
        replay_stored(stored, self._metadata, self._node.followed_to, LOG_NAME)
        self._node.followed_to = appended.end_offset
        self._node.quorum_version = appended.kraft_version
        records = [record.value for record, _ in stored if isinstance(record, JournalRecord)]
        await self._change_logs()
        self._configure([each for each in records if isinstance(each, ConfigRecord)])
        if any(isinstance(each, ClientQuotaRecord) for each in records):
            await self._limit(records)

    async def _change_logs(self) -> None:
        """Delete the logs of deleted topics, then create those of new partitions."""
        node = self._node
        deleted, self._deleted = self._deleted, []
        changed, self._changed = self._changed, {}
        if deleted:
            partitions = [
                TopicPartition(topic.name, index) for topic in deleted for index in topic.partitions
            ]
            async with node.maintenance.cleaner.paused(partitions):
                await node.topic_logs.delete(deleted)
        existing = [topic for key, topic in changed.items() if key in self._metadata.topics.by_id]
        if existing:
            wanted = [(topic, list(topic.partitions)) for topic in existing]
            await node.topic_logs.create(wanted, node.clock.now_ms())

    def _configure(self, changes: Iterable[ConfigRecord]) -> None:
        resources = {ConfigResource(each.resource_type, each.resource_name) for each in changes}
        self._node.applied_config.apply(resources)

    async def _limit(self, records: Iterable[Message | None]) -> None:
        """Put the client quotas in force."""
        quotas = [each for each in records if isinstance(each, ClientQuotaRecord)]
        entities = [entity for each in quotas for entity in each.entity]
        hosts = {each.entity_name for each in entities if each.entity_type == IP}
        await self._node.quotas.addresses.look_up(host for host in hosts if host is not None)
        self._node.quotas.refresh()
