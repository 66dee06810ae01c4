"""The stored state of a share group: requests to the share coordinator, and its records."""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from msgspec.structs import replace

from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStatePartition,
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateTopic,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStatePartition,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateTopic,
)
from odradek.protocol.messages.read_share_group_state import (
    ReadShareGroupStatePartition,
    ReadShareGroupStateRequest,
    ReadShareGroupStateTopic,
)
from odradek.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryPartition,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryTopic,
)
from odradek.protocol.messages.write_share_group_state import (
    WriteShareGroupStateBatch,
    WriteShareGroupStatePartition,
    WriteShareGroupStateRequest,
    WriteShareGroupStateTopic,
)
from odradek.protocol.primitives import uuid_text
from odradek.protocol.record import read_records
from odradek.protocol.records.share_group_state import RECORD_TYPES, ShareSnapshotValue
from odradek.storage.topic_names import SHARE_GROUP_STATE_TOPIC
from tests.conformance.conversation import Conversation, patiently
from tests.conformance.requests import BY_NAME, fetch_request
from tests.support.log_box import split

SHARE = 2
PARTITIONS = 50  # of `__share_group_state`
UPDATES_PER_SNAPSHOT = 500  # the default
CODEC = CoordinatorRecordCodec(RECORD_TYPES)
# Batches as (first offset, last offset, state, delivery count).
Batch = tuple[int, int, int, int]


def await_share_coordinator(talk: Conversation, topic_id: bytes) -> None:
    """Return when `__share_group_state` is there and loaded."""
    key = f"awaited:{uuid_text(topic_id)}:0"
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])

    def found() -> bool | None:
        return talk.silently(request, 6).coordinators[0].error_code == 0 or None

    patiently(found)
    for group in _one_group_of_each_partition(topic_id):
        state = StoredState(talk, group, topic_id)
        patiently(lambda state=state: state.is_loaded() or None)


def _one_group_of_each_partition(topic_id: bytes) -> Iterable[str]:
    groups = (f"awaited-{number}" for number in count())
    found: dict[int, str] = {}
    while len(found) < PARTITIONS:
        group = next(groups)
        key = SharePartitionKey(group, topic_id, 0)
        found.setdefault(partition_of(key.text, PARTITIONS), group)
    return found.values()


class StoredState:
    """The stored state of one group in one topic."""

    def __init__(self, talk: Conversation, group: str, topic_id: bytes) -> None:
        self._talk = talk
        self._group = group
        self._topic_id = topic_id

    def is_loaded(self) -> bool:
        request = self._summary([0])
        [topic] = self._talk.silently(request, 1).results
        return bool(topic.partitions[0].error_code == 0)

    def _ask(self, request: Any, *versions: int) -> None:
        for version in versions:
            name = type(request).__name__
            shown = [one.partitions for one in request.topics]
            self._talk.ask(request, version, title=f"{name} v{version} {self._group} {shown}")

    def initialize(self, *partitions: int, state_epoch: int = 1, start: int = -1) -> None:
        wanted = [
            InitializeShareGroupStatePartition(
                partition=one, state_epoch=state_epoch, start_offset=start
            )
            for one in partitions
        ]
        topic = InitializeShareGroupStateTopic(topic_id=self._topic_id, partitions=wanted)
        self._ask(InitializeShareGroupStateRequest(group_id=self._group, topics=[topic]), 0)

    def read(self, *partitions: int, leader_epoch: int = 0) -> None:
        wanted = [
            ReadShareGroupStatePartition(partition=one, leader_epoch=leader_epoch)
            for one in partitions
        ]
        topic = ReadShareGroupStateTopic(topic_id=self._topic_id, partitions=wanted)
        self._ask(ReadShareGroupStateRequest(group_id=self._group, topics=[topic]), 0)

    def write(
        self,
        *partitions: int,
        state_epoch: int = 1,
        leader_epoch: int = 3,
        start: int = -1,
        done: int = 0,
        batches: list[Batch] | None = None,
    ) -> None:
        wanted = [
            WriteShareGroupStatePartition(
                partition=one,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start,
                delivery_complete_count=done,
                state_batches=[
                    WriteShareGroupStateBatch(
                        first_offset=first,
                        last_offset=last,
                        delivery_state=kind,
                        delivery_count=count,
                    )
                    for first, last, kind, count in batches or []
                ],
            )
            for one in partitions
        ]
        topic = WriteShareGroupStateTopic(topic_id=self._topic_id, partitions=wanted)
        self._ask(WriteShareGroupStateRequest(group_id=self._group, topics=[topic]), 1)

    def delete(self, *partitions: int) -> None:
        wanted = [DeleteShareGroupStatePartition(partition=one) for one in partitions]
        topic = DeleteShareGroupStateTopic(topic_id=self._topic_id, partitions=wanted)
        self._ask(DeleteShareGroupStateRequest(group_id=self._group, topics=[topic]), 0)

    def summary(self, *partitions: int) -> None:
        self._ask(self._summary(partitions), 0, 1)

    def _summary(self, partitions: Any) -> ReadShareGroupStateSummaryRequest:
        wanted = [
            ReadShareGroupStateSummaryPartition(partition=one, leader_epoch=0) for one in partitions
        ]
        topic = ReadShareGroupStateSummaryTopic(topic_id=self._topic_id, partitions=wanted)
        return ReadShareGroupStateSummaryRequest(group_id=self._group, topics=[topic])

    def records(self, partition: int) -> None:
        """Write down the records that are stored for a partition, without their times."""
        key = SharePartitionKey(self._group, self._topic_id, partition)
        found = [
            _without_time(record)
            for record in self._stored(partition_of(key.text, PARTITIONS))
            if record.key is not None and getattr(record.key, "group_id", "") == self._group
        ]
        self._talk.transcript.write(f"records of {self._group}", found)

    def _stored(self, partition: int) -> Iterator[JournalRecord]:
        """All records of a partition of `__share_group_state`."""
        offset = 0
        while True:
            request = fetch_request(SHARE_GROUP_STATE_TOPIC, offset, partitions=[partition])
            [topic] = self._talk.silently(request, BY_NAME).responses
            batches = split(bytes(topic.partitions[0].records or b""))
            if not batches:
                return
            for stored in (one for batch in batches for one in read_records(batch)):
                record = CODEC.decode(stored.key, stored.value)
                assert record is not None
                assert CODEC.encode(record) == (stored.key, stored.value)
                offset = stored.offset + 1
                yield record


def _without_time(record: JournalRecord) -> list[Any]:
    value = record.value
    if isinstance(value, ShareSnapshotValue):
        age_ms = value.write_timestamp - value.create_timestamp
        value = replace(value, create_timestamp=0, write_timestamp=age_ms)
    return [type(record.key).__name__, record.key, value]
