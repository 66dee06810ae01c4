"""The acknowledgements of one request, partition by partition."""

from pathlib import Path

from odradek.broker.shares.sessions import SessionKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from tests.support.contexts import broker_with_topic, handled, request_context
from tests.support.log_box import NOW_MS


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
