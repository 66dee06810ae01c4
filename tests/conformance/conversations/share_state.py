"""The share coordinator: its five requests, and who finds it (KIP-932)."""

from odradek.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
)
from odradek.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from odradek.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
)
from odradek.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from odradek.protocol.primitives import uuid_text
from tests.conformance.conversation import Conversation, unknown_id
from tests.conformance.stored_states import (
    SHARE,
    UPDATES_PER_SNAPSHOT,
    Batch,
    StoredState,
    await_share_coordinator,
)

SOME_ID = uuid_text(bytes(range(16)))


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
    state = StoredState(talk, "state-kept", topic.topic_id)
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
        state = StoredState(talk, group, topic_id)
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
        state = StoredState(talk, f"state-combined-{number}", topic.topic_id)
        state.initialize(0, start=0)
        for batches in writes:
            state.write(0, start=-1, batches=batches)
        state.read(0, leader_epoch=1)
        state.write(0, start=4, batches=[])
        state.read(0, leader_epoch=1)


def records_of_states_are_stored(talk: Conversation) -> None:
    topic = talk.create_topic("state-stored", 1)
    await_share_coordinator(talk, topic.topic_id)
    state = StoredState(talk, "state-stored", topic.topic_id)
    state.initialize(0)
    state.read(0, leader_epoch=3)
    state.write(0, start=5, done=0, batches=[(10, 14, 2, 1), (3, 11, 0, 1), (15, 15, 2, 1)])
    state.write(0, start=-1, done=3, batches=[(8, 12, 2, 2)])
    state.write(0, leader_epoch=1)
    state.initialize(0, state_epoch=2, start=7)
    state.write(0, state_epoch=4, leader_epoch=5, start=8, batches=[(9, 9, 4, 1)])
    state.read(0, leader_epoch=5)
    state.delete(0)
    state.delete(0)
    state.initialize(0, start=0)
    state.records(0)


def a_snapshot_follows_many_updates(talk: Conversation) -> None:
    topic = talk.create_topic("state-often", 1)
    await_share_coordinator(talk, topic.topic_id)
    state = StoredState(talk, "state-often", topic.topic_id)
    state.initialize(0, start=0)
    for number in range(UPDATES_PER_SNAPSHOT + 2):
        state.write(0, done=number, batches=[(2 * number, 2 * number, 2, 1)])
    state.read(0)
    state.records(0)
