"""What the metadata log says of the topics: enough to tell whose a partition's directory is.

Read apart from the broker's own replay, which believes its log: here it may be damaged, and what
can be read of it is taken. Records of a metadata transaction count once it ends (KIP-868).
"""

from dataclasses import dataclass, field

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.primitives import read_uvarint
from odradek.protocol.records.cluster_metadata import (
    RECORD_TYPES,
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
from odradek.storage.raw_scan import AnyRecord


@dataclass
class TopicFacts:
    """One topic. `directories`: partition -> the ids of the directories its replicas lie in."""

    name: str
    topic_id: bytes
    directories: dict[int, list[bytes]] = field(default_factory=dict)
    cleanup_policy: str | None = None

    @property
    def may_have_gaps(self) -> bool:
        """Whether offsets may be missing: where it is compacted, or where that is not known."""
        return self.cleanup_policy is None or "compact" in self.cleanup_policy


class MetadataFacts:
    """All topics. `see` is shown the records of a snapshot and of the log behind it, in order."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicFacts] = {}
        self.is_known = False
        self._by_id: dict[bytes, TopicFacts] = {}
        self._held: list[Message] | None = None

    def see(self, record: AnyRecord) -> None:
        """The next record; what cannot be decoded is told by others."""
        self.is_known = True
        message = _message(record.value or b"")
        if isinstance(message, BeginTransactionRecord):
            self._held = []
        elif isinstance(message, EndTransactionRecord | AbortTransactionRecord):
            held, self._held = self._held or [], None
            if isinstance(message, EndTransactionRecord):
                for each in held:
                    self._apply(each)
        elif message is not None and self._held is not None:
            self._held.append(message)
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


def _message(value: bytes) -> Message | None:
    try:
        _, position = read_uvarint(value, 0)
        number, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
        declared = RECORD_TYPES.get(number)
        return None if declared is None else declared.decode(value, version, position)
    except (DecodeError, IndexError, ValueError):
        return None
