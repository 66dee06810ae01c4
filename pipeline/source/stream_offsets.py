"""Where a batch of a stream ends, as Spark keeps it in the checkpoint.

    {"orders": {"0": 23, "1": 40, "topicId": "hbbuwpjEQNG9pjWsPYQ5Wg"},
     "#tasks": {"maxRecordsPerPartition": 1000000}}

The offsets are as in Spark's Kafka source. The topic's id tells it from a later topic of the same
name. It is missing where it is not known: in log directories and with brokers that have no ids.
"#tasks", which is no name of a topic, are the options by which the batch is divided into tasks: a
batch that runs again after they have changed has the same tasks, which the sink requires.
Checkpoints of odradek 0.1 have neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.protocol.primitives import uuid_from_text, uuid_text
from odradek.storage.topic_partition import TopicPartition

from .positions import Offsets

# A partition is a number, so this is none.
_TOPIC_ID = "topicId"
_TASKS = "#tasks"
_MAX_RECORDS, _MIN_PARTITIONS = "maxRecordsPerPartition", "minPartitions"

Json = Mapping[str, Mapping[str, int | str]]


class Tasks(NamedTuple):
    """The options by which a batch is divided into tasks."""

    max_records: int | None
    min_partitions: int | None

    def as_json_object(self) -> dict[str, int | str]:
        """Return those that are set."""
        named = {_MAX_RECORDS: self.max_records, _MIN_PARTITIONS: self.min_partitions}
        return {name: number for name, number in named.items() if number is not None}


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """The next offset of each partition, the ids of their topics, and the tasks of the batch.

    Two are equal if they are the same place, whatever the tasks.
    """

    offsets: Offsets = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    tasks: Tasks | None = field(default=None, compare=False)

    def as_json_object(self) -> dict[str, dict[str, int | str]]:
        """Return the object above, sorted, because Spark compares such offsets as text."""
        topics: dict[str, dict[str, int | str]] = {}
        for partition in sorted(self.offsets):
            of_topic = topics.setdefault(partition.topic, {})
            of_topic[str(partition.partition)] = self.offsets[partition]
        for topic, of_topic in topics.items():
            if topic in self.topic_ids:
                of_topic[_TOPIC_ID] = uuid_text(self.topic_ids[topic])
        if self.tasks is not None:
            topics[_TASKS] = self.tasks.as_json_object()
        return topics


def from_json_object(parsed: Json) -> StreamOffsets:
    """Parse the result of `as_json_object`. Raises ValueError."""
    topics = {name: of_topic for name, of_topic in parsed.items() if name != _TASKS}
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
        _tasks(parsed[_TASKS]) if _TASKS in parsed else None,
    )


def _tasks(parsed: Mapping[str, int | str]) -> Tasks:
    found = (parsed.get(name) for name in (_MAX_RECORDS, _MIN_PARTITIONS))
    return Tasks(*(None if each is None else int(each) for each in found))
