"""Joins the records of new partitions, so that to replay them takes little time.

A decision may have 10,000 records. All are replayed in one turn of the event loop, because nobody
may see a part of them. What they become is made before that, in steps: a new topic with its first
partitions, or partitions of a topic that exists. A joined record has one of these as its value. It
is never stored: a start replays the records themselves.
"""

from collections.abc import Iterable

from msgspec import Struct

from odradek.coordinator.runtime.outcome import JoinedRecord, JournalRecord
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.protocol.records.cluster_metadata import PartitionRecord, TopicRecord

from .topics import Partition, Topic


class AddedPartitions(Struct, frozen=True):
    """Partitions that a topic gets, by index."""

    topic_id: bytes
    partitions: dict[int, Partition]


def joined_records(records: Iterable[JournalRecord], step: Step) -> list[JoinedRecord]:
    """Join the records of a topic's partitions with each other, and with the topic's."""
    joined: list[JoinedRecord] = []
    topic_id = None  # of the topic that the last joined record adds, or adds partitions to
    added: Topic | dict[int, Partition] = {}
    for record in stepping(records, step):
        message = record.value
        if type(message) is PartitionRecord:
            if message.topic_id != topic_id:
                topic_id, added = message.topic_id, {}
                joined.append(JoinedRecord(JournalRecord(AddedPartitions(topic_id, added)), 0))
            partition = Partition.from_record(message)
            if isinstance(added, Topic):
                added.replay_put(partition)
            else:
                added[partition.index] = partition
            joined[-1].count += 1
        elif type(message) is TopicRecord:
            topic_id, added = message.topic_id, Topic(message.name, message.topic_id)
            joined.append(JoinedRecord(JournalRecord(added), 1))
        else:
            topic_id = None
            joined.append(JoinedRecord(record, 1))
    return joined
