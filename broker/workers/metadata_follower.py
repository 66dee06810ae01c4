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
from odradek.coordinator.metadata.joined_records import joined_records
from odradek.coordinator.metadata.topics import Topic, TopicEvent
from odradek.coordinator.runtime.journal import replay_joined, stored_records
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.coordinator.runtime.steps import Step, stepping
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
        await self._node.turns.slices.run(lambda slices: self._apply(appended, slices.step))

    async def _apply(self, appended: MetadataBatches, step: Step) -> None:
        records = self._replay([memoryview(batch) for batch in appended.batches], step)
        self._node.followed_to = appended.end_offset
        self._node.quorum_version = appended.kraft_version
        await self._change_logs(step)
        self._configure([each for each in records if isinstance(each, ConfigRecord)])
        if any(isinstance(each, ClientQuotaRecord) for each in records):
            await self._limit(records)

    def _replay(self, batches: Iterable[memoryview], step: Step) -> list[Message | None]:
        """Replay the records that are new to this process, all in one turn. Returns them.

        What the ACLs have lost leaves their index after that turn. Raises CorruptJournalError for a
        record that contradicts those before it.
        """
        new = [
            (record, context)
            for record, context in stepping(stored_records(batches, self._codec, LOG_NAME), step)
            if isinstance(record, JournalRecord) and context.offset >= self._node.followed_to
        ]
        joined = joined_records((record for record, _ in new), step)
        replay_joined(joined, lambda index: new[index][1], self._metadata, LOG_NAME)
        self._metadata.acls.clean_index(step)
        return [record.value for record, _ in new]

    async def _change_logs(self, step: Step) -> None:
        """Delete the logs of deleted topics, then create those of new partitions."""
        node = self._node
        deleted, self._deleted = self._deleted, []
        changed, self._changed = self._changed, {}
        if deleted:
            partitions = [
                TopicPartition(topic.name, index)
                for topic in deleted
                for index in stepping(topic.partitions, step)
            ]
            async with node.maintenance.cleaner.paused(partitions, step):
                await node.topic_logs.delete(deleted, step)
        existing = [topic for key, topic in changed.items() if key in self._metadata.topics.by_id]
        if existing:
            wanted = [(topic, list(topic.partitions)) for topic in existing]
            await node.topic_logs.create(wanted, node.clock.now_ms(), step)

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
