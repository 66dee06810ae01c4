"""Where a batch of a stream ends, as Spark keeps it in the checkpoint.

    {"orders": {"0": 23, "1": 40, "topicId": "hbbuwpjEQNG9pjWsPYQ5Wg"}}

The offsets are as in Spark's Kafka source. The topic's id tells it from a later topic of the same
name. It is missing where it is not known: in checkpoints of odradek 0.1, in log directories and
with brokers that have no ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.protocol.primitives import uuid_from_text, uuid_text
from odradek.storage.topic_partition import TopicPartition

from .positions import Offsets

# A partition is a number, so this is none.
_TOPIC_ID = "topicId"


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """The next offset of each partition, and the ids of their topics."""

    offsets: Offsets = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)

    def as_json_object(self) -> dict[str, dict[str, int | str]]:
        """Return the object above, sorted, because Spark compares such offsets as text."""
        topics: dict[str, dict[str, int | str]] = {}
        for partition in sorted(self.offsets):
            of_topic = topics.setdefault(partition.topic, {})
            of_topic[str(partition.partition)] = self.offsets[partition]
        for topic, of_topic in topics.items():
            if topic in self.topic_ids:
                of_topic[_TOPIC_ID] = uuid_text(self.topic_ids[topic])
        return topics


def from_json_object(topics: Mapping[str, Mapping[str, int | str]]) -> StreamOffsets:
    """Parse the result of `as_json_object`. Raises ValueError."""
    return StreamOffsets(
        {
            TopicPartition(topic, int(name)): int(offset)
            for topic, of_topic in topics.items()
            for name, offset in of_topic.items()
            if name != _TOPIC_ID
        },
        {
            topic: uuid_from_text(str(of_topic[_TOPIC_ID]))
            for topic, of_topic in topics.items()
            if _TOPIC_ID in of_topic
        },
    )
