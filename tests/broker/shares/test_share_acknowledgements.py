"""The acknowledgements of one request, partition by partition."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.shares.sessions import SessionKey
from odradek.coordinator.runtime.steps import stepping
from odradek.coordinator.share_partitions.changes import Acknowledgement, AcknowledgeType
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.share_state.state import ShareState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from odradek.protocol.messages.share_fetch import ShareFetchRequest
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC
from tests.support.contexts import broker_with_topic, handled, request_context
from tests.support.log_box import NOW_MS, put
from tests.support.requests import build
from tests.support.share_rig import ShareRig


async def test_a_partition_that_is_named_twice_without_records_is_no_error(tmp_path: Path) -> None:
    async with broker_with_topic(tmp_path, 1) as broker:
        context = request_context(broker, 1, NOW_MS)
        broker.coordinators.shares.sessions.open(SessionKey("g", "m"), [], context.session)
        topic_id = broker.metadata.topics["t"].id
        partitions = [ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=[])] * 2
        request = ShareAcknowledgeRequest(
            group_id="g",
            member_id="m",
            share_session_epoch=1,
            topics=[ShareAcknowledgeTopic(topic_id=topic_id, partitions=partitions)],
        )
        answer = handled(context, request)
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        assert answer.responses == []


def test_an_acknowledgement_that_another_decision_overtakes_is_decided_again(
    tmp_path: Path,
) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    put(rig.logs[0], b"tea", b"coffee", b"milk", b"water")
    assert rig.acquire("m", max_records=2, has_record_limit=True) == [(0, 1, 1)]
    others: list[Callable[[], object]] = [
        lambda: rig.acquire("n", max_records=1, has_record_limit=True),
        lambda: rig.acquire("o", max_records=1, has_record_limit=True),
    ]

    def step() -> None:
        if others:
            others.pop()()

    wanted = [Acknowledgement(0, 1, [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE])]
    rig.shares.acknowledge(rig.key(), "m", wanted, step)
    assert not others
    assert rig.acquire("p") == [(1, 1, 2)]  # what was released, and nothing of the others


def test_a_lock_that_ends_at_any_step_is_not_acknowledged(tmp_path: Path) -> None:
    """Also while the decision is encoded. After the last step it is stored, and counts."""
    refused: list[ErrorCode] = []
    while len(refused) < 100:
        at = len(refused) + 1
        rig = ShareRig(tmp_path / str(at), partitions=1)
        put(rig.logs[0], b"tea", b"coffee")
        assert rig.acquire("m") == [(0, 1, 1)]
        steps = 0

        def step(rig: ShareRig = rig, at: int = at) -> None:
            nonlocal steps
            steps += 1
            if steps == at:
                rig.states.loop.advance(30_000)

        wanted = [Acknowledgement(0, 1, [AcknowledgeType.ACCEPT, AcknowledgeType.REJECT])]
        try:
            rig.shares.acknowledge(rig.key(), "m", wanted, step)
        except ApiError as error:
            refused.append(error.code)
            assert rig.acquire("n") == [(0, 1, 2)]
        else:
            assert steps < at
            assert rig.acquire("n") == []
            break
    assert set(refused) == {ErrorCode.INVALID_RECORD_STATE}
    assert 6 < len(refused) < 100


GROUP_ID = {"group_id": "g"}
TOPIC_NAME = {"topic_name": "t"}
START = {"start_offset": 0}
ALTER: Any = build(
    AlterShareGroupOffsetsRequest,
    0,
    topics=[TOPIC_NAME | {"partitions": [START | {"partition_index": n} for n in range(2)]}],
    **GROUP_ID,
)


@pytest.mark.parametrize(
    "request_of_admin",
    [
        ALTER,
        build(DeleteShareGroupOffsetsRequest, 0, topics=[TOPIC_NAME], **GROUP_ID),
        build(DeleteGroupsRequest, 2, groups_names=["g"]),
    ],
)
async def test_a_start_offset_counts_from_the_slice_on_in_which_it_is_set_or_deleted(
    tmp_path: Path, request_of_admin: Any
) -> None:
    """An acknowledgement in a later slice of the request would write the old one over it."""
    async with broker_with_topic(tmp_path, 2) as broker:
        for name in (CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC):
            await broker.admin.topics.ensure_internal_topic(name)
        context = request_context(broker, 2, NOW_MS)
        handled(context, ALTER)
        put(broker.log_manager.get("t", 0), b"tea")
        key = SharePartitionKey("g", broker.metadata.topics["t"].id, 0)
        shares, states = broker.coordinators.shares, broker.coordinators.share_states
        shares.sessions.open(SessionKey("g", "m"), [key[1:]], context.session)
        session = {"member_id": "m", "share_session_epoch": 1}
        limits = {"max_bytes": 1 << 20, "max_records": 1}
        handled(context, build(ShareFetchRequest, 2, **GROUP_ID, **session, **limits))
        assert shares.in_flight_count(key) == 1
        before, after = states.read_summary(key), list[ShareState]()

        def step() -> None:
            if not after and states.read_summary(key) is not before:
                after.append(states.read_summary(key))
                wanted = [Acknowledgement(0, 0, [AcknowledgeType.ACCEPT])]
                with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                    shares.acknowledge(key, "m", wanted)

        slices: Any = SimpleNamespace(step=step, of=lambda items: stepping(items, step))
        context.slices = slices
        handled(context, request_of_admin)
        assert after == [states.read_summary(key)]
