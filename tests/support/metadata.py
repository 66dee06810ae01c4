"""Cluster metadata on a log in memory, for tests of the decisions on it."""

from collections.abc import Sequence
from typing import TypeVar

from odradek.coordinator.metadata.broker_registration import Endpoint, registration_record
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.joined_records import joined_records
from odradek.coordinator.metadata.topic_creation import (
    CreatedTopic,
    NewTopic,
    TopicRules,
    create_topics,
)
from odradek.coordinator.metadata.topic_deletion import TopicDeletionResult, TopicRef, delete_topics
from odradek.coordinator.runtime.journal import Journal
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.errors import ApiError
from tests.support.memory_log import MemoryLog

NODE = 1
DIRECTORY = bytes(15) + b"\xd1"
R = TypeVar("R")


class Metadata:
    """The state machine, its journal, and shorthands for the commonest decisions."""

    def __init__(
        self,
        *,
        directories: Sequence[bytes] = (DIRECTORY,),
        default_replication_factor: int = 1,
        log: MemoryLog | None = None,
    ) -> None:
        self.log = log or MemoryLog()
        self.state = ClusterMetadata("cluster")
        codec = MetadataRecordCodec.of_cluster()
        self.journal = Journal(self.log, self.state, codec, join=joined_records)  # type: ignore[arg-type] # a MemoryLog serves a journal
        self.last_records: tuple[JournalRecord, ...] = ()
        self.rules = TopicRules(
            node_id=NODE,
            directories=directories,
            default_partitions=2,
            default_replication_factor=default_replication_factor,
            check_configs=lambda overrides: None,
        )
        if NODE not in self.state.brokers:
            self._register()

    def _register(self) -> None:
        registration = registration_record(
            NODE,
            self.log.log_end_offset,
            incarnation_id=bytes(15) + b"\x11",
            endpoints=(Endpoint("PLAINTEXT", "localhost", 9092),),
            directories=self.rules.directories,
        )
        record = self.state.features.versioned(registration)
        self.commit(Outcome(reply=None, records=(record,)))

    def commit(self, outcome: Outcome[R]) -> R:
        self.last_records = outcome.records
        return self.journal.commit(outcome, 0)

    def create(self, *wishes: NewTopic) -> dict[str, CreatedTopic | ApiError]:
        return self.commit(create_topics(self.state, wishes, self.rules))

    def delete(self, *names: str) -> list[TopicDeletionResult]:
        return self.commit(delete_topics(self.state, [TopicRef(name) for name in names]))

    def restarted(self) -> "Metadata":
        """The same log, read by a new life."""
        return Metadata(directories=self.rules.directories, log=self.log)
