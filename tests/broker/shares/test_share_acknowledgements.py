"""The acknowledgements of one request, partition by partition."""

from collections.abc import Callable
from pathlib import Path

from odradek.broker.shares.sessions import SessionKey
from odradek.coordinator.share_partitions.changes import Acknowledgement, AcknowledgeType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from tests.support.contexts import broker_with_topic, handled, request_context
from tests.support.log_box import NOW_MS, put
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
