"""Where a batch of a stream ends, as Spark keeps it in the checkpoint.

    {"orders": {"0": 23, "1": 40, "topicId": "hbbuwpjEQNG9pjWsPYQ5Wg"},
     "#tasks": {"maxRecordsPerPartition": 1000000}, "#begins": {"orders": {"1": 5}}}

The offsets are as in Spark's Kafka source. The topic's id tells it from a later topic of the same
name. It is missing where it is not known: in log directories and with brokers that have no ids.

A batch that runs again must have the same tasks: the sink requires it. So the end also has, under
names that no topic can have, what else the tasks depend on: the options by which the batch is
divided, and where it begins in partitions that the batch before does not have, or has of another
topic. Their earliest offset may be a later one by then. Checkpoints of odradek 0.1 have neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from odradek.protocol.primitives import uuid_from_text, uuid_text
from odradek.storage.topic_partition import TopicPartition

from .positions import Offsets

# A partition is a number, so this is none.
_TOPIC_ID = "topicId"
_TASKS, _BEGINS = "#tasks", "#begins"
_MAX_RECORDS, _MIN_PARTITIONS = "maxRecordsPerPartition", "minPartitions"


class Tasks(NamedTuple):
    """The options by which a batch is divided into tasks."""

    max_records: int | None
    min_partitions: int | None

    def as_json_object(self) -> dict[str, int]:
        """Return those that are set."""
        named = {_MAX_RECORDS: self.max_records, _MIN_PARTITIONS: self.min_partitions}
        return {name: number for name, number in named.items() if number is not None}


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """The next offset of each partition, the ids of their topics, and the tasks of the batch.

    Two are equal if they are the same place, whatever the tasks. `begins` is where the batch begins
    in partitions of which the end of the batch before does not say it.
    """

    offsets: Offsets = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    tasks: Tasks | None = field(default=None, compare=False)
    begins: Offsets = field(default_factory=dict, compare=False)

    def as_json_object(self) -> dict[str, dict[str, Any]]:
        """Return the object above, sorted, because Spark compares such offsets as text."""
        topics = _by_topic(self.offsets)
        for topic, of_topic in topics.items():
            if topic in self.topic_ids:
                of_topic[_TOPIC_ID] = uuid_text(self.topic_ids[topic])
        if self.tasks is not None:
            topics[_TASKS] = self.tasks.as_json_object()
        if self.begins:
            topics[_BEGINS] = _by_topic(self.begins)
        return topics


def _by_topic(offsets: Offsets) -> dict[str, dict[str, Any]]:
    topics: dict[str, dict[str, Any]] = {}
    for partition in sorted(offsets):
        of_topic = topics.setdefault(partition.topic, {})
        of_topic[str(partition.partition)] = offsets[partition]
    return topics


def _by_partition(topics: Mapping[str, Mapping[str, Any]]) -> dict[TopicPartition, int]:
    offsets = {
        TopicPartition(topic, int(name)): int(offset)
        for topic, of_topic in topics.items()
        for name, offset in of_topic.items()
        if name != _TOPIC_ID
    }
    for partition, offset in offsets.items():
        if offset < 0:  # it would be taken for "from the beginning" or "from the end"
            raise ValueError(
                f"the checkpoint has offset {offset} of {partition}, which cannot be one: "
                "use a new checkpoint"
            )
    return offsets


def from_json_object(parsed: Mapping[str, Mapping[str, Any]]) -> StreamOffsets:
    """Parse the result of `as_json_object`. Raises ValueError."""
    topics = {name: each for name, each in parsed.items() if name not in (_TASKS, _BEGINS)}
    return StreamOffsets(
        _by_partition(topics),
        {
            topic: uuid_from_text(of_topic[_TOPIC_ID])
            for topic, of_topic in topics.items()
            if _TOPIC_ID in of_topic
        },
        _tasks(parsed[_TASKS]) if _TASKS in parsed else None,
        _by_partition(parsed.get(_BEGINS, {})),
    )


def _tasks(parsed: Mapping[str, Any]) -> Tasks:
    return Tasks(parsed.get(_MAX_RECORDS), parsed.get(_MIN_PARTITIONS))
