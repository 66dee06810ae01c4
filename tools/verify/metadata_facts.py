"""Collects from the metadata log what the checks need: topics, their ids, directories and policies.

The broker's own replay refuses a damaged metadata log, so it is not used here: these checks take
every record that can be decoded. Records of a metadata transaction are applied when the transaction
ends (KIP-868).
"""

from dataclasses import dataclass, field

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from odradek.protocol.schema import DecodeError, Message
from odradek.storage.inspect.raw_batch import AnyRecord

_CODEC = MetadataRecordCodec.of_cluster()


@dataclass
class TopicFacts:
    """One topic. `directories`: partition -> the ids of the log directories of its replicas."""

    name: str
    topic_id: bytes
    directories: dict[int, list[bytes]] = field(default_factory=dict)
    cleanup_policy: str | None = None

    @property
    def may_have_gaps(self) -> bool:
        """Whether offsets may be missing: the topic is compacted, or its policy is not known."""
        return self.cleanup_policy is None or self.is_compacted

    @property
    def is_compacted(self) -> bool:
        """Whether the topic is known to be compacted."""
        return self.cleanup_policy is not None and "compact" in self.cleanup_policy


class MetadataFacts:
    """All topics. `add` takes the records of a snapshot and then those of the log, in order."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicFacts] = {}
        self.is_known = False
        self._by_id: dict[bytes, TopicFacts] = {}
        self._transaction: list[Message] | None = None  # the records of an open transaction

    def add(self, record: AnyRecord) -> None:
        """Take the next record. One that cannot be decoded is ignored: RecordCheck reports it."""
        self.is_known = True
        message = _message(record.value)
        if isinstance(message, BeginTransactionRecord):
            self._transaction = []
        elif isinstance(message, EndTransactionRecord | AbortTransactionRecord):
            pending, self._transaction = self._transaction or [], None
            if isinstance(message, EndTransactionRecord):
                for each in pending:
                    self._apply(each)
        elif message is not None and self._transaction is not None:
            self._transaction.append(message)
        elif message is not None:
            self._apply(message)

    def _apply(self, message: Message) -> None:
        match message:
            case TopicRecord():
                topic = TopicFacts(message.name, message.topic_id)
                self.topics[message.name] = self._by_id[message.topic_id] = topic
            case RemoveTopicRecord():
                gone = self._by_id.pop(message.topic_id, None)
                if gone is not None:
                    self.topics.pop(gone.name, None)
            case PartitionRecord():
                self._place(message.topic_id, message.partition_id, message.directories)
            case PartitionChangeRecord() if message.directories is not None:
                self._place(message.topic_id, message.partition_id, message.directories)
            case ConfigRecord() if message.resource_type == ConfigResourceType.TOPIC:
                self._configure(message)

    def _place(self, topic_id: bytes, partition: int, directories: list[bytes]) -> None:
        topic = self._by_id.get(topic_id)
        if topic is not None:
            topic.directories[partition] = directories

    def _configure(self, record: ConfigRecord) -> None:
        topic = self.topics.get(record.resource_name)
        if topic is not None and record.name == "cleanup.policy":
            topic.cleanup_policy = record.value


def _message(value: bytes | None) -> Message | None:
    try:
        message: Message | None = _CODEC.decode(None, value).value
    except DecodeError:
        return None
    return message
