"""Joins the records of new partitions and of ACLs, so that to replay them takes little time.

A decision may have 10,000 records. All are replayed in one turn of the event loop, because nobody
may see a part of them. What they become is made before that, in steps: a new topic with its first
partitions, or partitions of a topic that exists; ACLs with their index; the ids of removed ACLs. A
joined record has one of these as its value. It is never stored: a start replays the records
themselves.
"""

from collections.abc import Iterable

from msgspec import Struct

from odradek.coordinator.runtime.outcome import JoinedRecord, JournalRecord
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.protocol.records.cluster_metadata import (
    AccessControlEntryRecord,
    PartitionRecord,
    RemoveAccessControlEntryRecord,
    TopicRecord,
)

from .acls import Acls
from .topics import Partition, Topic


class AddedPartitions(Struct, frozen=True):
    """Partitions that a topic gets, by index."""

    topic_id: bytes
    partitions: dict[int, Partition]


class RemovedAcls(Struct, frozen=True):
    """The ids of ACLs that are removed."""

    ids: list[bytes]


def joined_records(records: Iterable[JournalRecord], step: Step) -> list[JoinedRecord]:
    """Join the records of a topic's partitions with each other, and with the topic's.

    Of other kinds, those that follow each other are joined.
    """
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
        elif type(message) is AccessControlEntryRecord:
            topic_id = None
            _acls_of(joined).replay(message)
            joined[-1].count += 1
        elif type(message) is RemoveAccessControlEntryRecord:
            topic_id = None
            _removed_of(joined).ids.append(message.id)
            joined[-1].count += 1
        else:
            topic_id = None
            joined.append(JoinedRecord(record, 1))
    return joined


def _acls_of(joined: list[JoinedRecord]) -> Acls:
    """The last of the joined records, if it adds ACLs, or a new one."""
    last = joined[-1].record.value if joined else None
    if not isinstance(last, Acls):
        last = Acls()
        joined.append(JoinedRecord(JournalRecord(last), 0))
    return last


def _removed_of(joined: list[JoinedRecord]) -> RemovedAcls:
    """The last of the joined records, if it removes ACLs, or a new one."""
    last = joined[-1].record.value if joined else None
    if not isinstance(last, RemovedAcls):
        last = RemovedAcls([])
        joined.append(JoinedRecord(JournalRecord(last), 0))
    return last
