"""The share coordinator: its five requests, and who finds it (KIP-932)."""

from collections.abc import Iterable
from itertools import count
from typing import Any

from odradek.coordinator.java_hash import partition_of
from odradek.coordinator.share_partition_key import SharePartitionKey
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
from tests.conformance.conversation import Conversation, patiently, unknown_id

SHARE = 2
PARTITIONS = 50  # of `__share_group_state`
SOME_ID = uuid_text(bytes(range(16)))
# Batches as (first offset, last offset, state, delivery count).
Batch = tuple[int, int, int, int]


def share_coordinators_are_found_by_group_topic_and_partition(talk: Conversation) -> None:
    topic = talk.create_topic("state-found")
    await_share_coordinator(talk, topic.topic_id)
    key = f"g:{SOME_ID}:0"
    for version in (3, 5):
        one = {"key": key} if version < 4 else {"coordinator_keys": [key]}
        request = FindCoordinatorRequest(key_type=SHARE, **one)  # type: ignore[arg-type] # as named
        talk.ask(request, version, title=f"share coordinator v{version}")
    keys = [key, f"a:b:{key}", "g", "g:t:0", f"g:{SOME_ID}:x", f" {key[1:]}", ""]
    for one in keys:
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[one])
        talk.ask(request, 6, title=f"share coordinator of {one!r}")


def state_is_initialized_written_read_and_deleted(talk: Conversation) -> None:
    topic = talk.create_topic("state-kept", 3)
    talk.transcript.write("topic", [{"topic_id": topic.topic_id}])
    await_share_coordinator(talk, topic.topic_id)
    state = _State(talk, "state-kept", topic.topic_id)
    state.summary(0, 2)
    state.read(0)
    state.write(0)
    state.initialize(0, 1)
    state.summary(0)
    state.read(0)
    state.read(0, leader_epoch=3)
    state.summary(0)
    state.read(0, leader_epoch=2)
    state.write(0, start=5, done=0, batches=[(5, 9, 0, 1), (10, 14, 2, 1)])
    state.read(0, leader_epoch=3)
    state.write(0, start=-1, done=3, batches=[(8, 12, 2, 2)])
    state.write(0, start=7, done=1, batches=[(20, 20, 4, 5), (15, 19, 0, 1)])
    state.read(0, leader_epoch=3)
    state.summary(0)
    state.write(0, leader_epoch=1)
    state.write(0, state_epoch=0)
    state.write(0, state_epoch=9, leader_epoch=9, start=8)
    state.read(0, leader_epoch=3)
    state.initialize(0, state_epoch=0)
    state.initialize(0, state_epoch=5, start=100)
    state.read(0, leader_epoch=0)
    state.summary(0)
    state.delete(0, 1)
    state.delete(0)
    state.summary(0)
    state.read(0)


def what_cannot_be_in_a_state_request_is_refused(talk: Conversation) -> None:
    topic = talk.create_topic("state-wrong", 1)
    await_share_coordinator(talk, topic.topic_id)
    for topic_id, group in (
        (topic.topic_id, "state-wrong"),
        (unknown_id(), "state-wrong"),
        (topic.topic_id, ""),
    ):
        state = _State(talk, group, topic_id)
        for partition in (-1, 1, 0):
            state.initialize(partition)
            state.write(partition)
            state.read(partition)
            state.summary(partition)
            state.delete(partition)
        state.initialize()
        state.write()
        state.read()
        state.summary()
        state.delete()
    talk.ask(InitializeShareGroupStateRequest(group_id="g", topics=[]), 0)
    talk.ask(ReadShareGroupStateRequest(group_id="g", topics=[]), 0)
    talk.ask(WriteShareGroupStateRequest(group_id="g", topics=[]), 1)
    talk.ask(DeleteShareGroupStateRequest(group_id="g", topics=[]), 0)
    talk.ask(ReadShareGroupStateSummaryRequest(group_id="g", topics=[]), 1)


def batches_of_offsets_are_combined(talk: Conversation) -> None:
    topic = talk.create_topic("state-combined", 1)
    await_share_coordinator(talk, topic.topic_id)
    cases: list[list[list[Batch]]] = [
        [[(0, 9, 0, 1)], [(0, 9, 2, 1)]],
        [[(0, 9, 2, 2)], [(0, 9, 0, 1)]],
        [[(0, 4, 0, 1), (5, 9, 0, 1)]],
        [[(0, 4, 0, 1)], [(5, 9, 0, 1)], [(10, 10, 0, 2)]],
        [[(0, 20, 0, 1)], [(5, 9, 2, 1)], [(8, 30, 0, 2)]],
        [[(5, 9, 0, 3)], [(0, 20, 0, 1)], [(9, 9, 4, 3)]],
        [[(0, 4, 0, 1), (6, 9, 0, 1)], [(5, 5, 0, 1)]],
        [[(0, 4, 2, 1), (5, 9, 0, 1), (5, 9, 2, 1)]],
        [[(9, 9, 0, 1), (0, 0, 0, 1), (3, 5, 2, 1), (4, 4, 4, 2)]],
    ]
    for number, writes in enumerate(cases):
        state = _State(talk, f"state-combined-{number}", topic.topic_id)
        state.initialize(0, start=0)
        for batches in writes:
            state.write(0, start=-1, batches=batches)
        state.read(0, leader_epoch=1)
        state.write(0, start=4, batches=[])
        state.read(0, leader_epoch=1)


def await_share_coordinator(talk: Conversation, topic_id: bytes) -> None:
    """Return when `__share_group_state` is there and loaded."""
    key = f"awaited:{uuid_text(topic_id)}:0"
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])

    def found() -> bool | None:
        return talk.silently(request, 6).coordinators[0].error_code == 0 or None

    patiently(found)
    for group in _one_group_of_each_partition(topic_id):
        state = _State(talk, group, topic_id)
        patiently(lambda state=state: state.is_loaded() or None)


def _one_group_of_each_partition(topic_id: bytes) -> Iterable[str]:
    groups = (f"awaited-{number}" for number in count())
    found: dict[int, str] = {}
    while len(found) < PARTITIONS:
        group = next(groups)
        key = SharePartitionKey(group, topic_id, 0)
        found.setdefault(partition_of(key.text, PARTITIONS), group)
    return found.values()


class _State:
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
