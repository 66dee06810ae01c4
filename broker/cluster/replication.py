"""Lets the answer to acks=all wait until the followers have the records (Kafka: DelayedProduce).

They have them at once, unless a test lets them lag (PartitionLog.hold_back).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
)
from odradek.protocol.schema import replace
from odradek.storage.log import PartitionLog


async def when_replicated(
    context: RequestContext,
    request: ProduceRequest,
    pending: ProduceResponse | Awaitable[Any],
    find_log: Callable[[str, int], PartitionLog | None],
) -> ProduceResponse:
    """The response when consumers may see its records.

    Where too few replicas are in sync, it has the start of the log, as Kafka's has. After the
    request's timeout, partitions whose records are not visible get REQUEST_TIMED_OUT.
    """
    response: ProduceResponse = pending if isinstance(pending, ProduceResponse) else await pending
    deadline_s = context.broker.loop.time() + request.timeout_ms / 1000
    for topic in response.responses:
        name = topic.name or context.broker.topic_name(topic.topic_id)
        answers = topic.partition_responses
        for position, answer in enumerate(answers):
            log = find_log(name, answer.index)
            if log is None:
                continue
            if answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS:
                answers[position] = replace(answer, log_start_offset=log.log_start_offset)
            elif answer.error_code == ErrorCode.NONE and not await _is_visible(
                context, log, answer, deadline_s
            ):
                answers[position] = replace(answer, error_code=ErrorCode.REQUEST_TIMED_OUT)
    return response


async def _is_visible(
    context: RequestContext, log: PartitionLog, answer: ProducePartitionResponse, deadline_s: float
) -> bool:
    """Wait until the batch that was just appended is below the high watermark."""
    end_offset = log.log_end_offset
    while log.high_watermark < end_offset:
        left_s = deadline_s - context.broker.loop.time()
        if left_s <= 0:
            return log.high_watermark > answer.base_offset
        moved = context.broker.loop.create_future()

        def note(_: PartitionLog, moved: asyncio.Future[None] = moved) -> None:
            if not moved.done():
                moved.set_result(None)

        log.on_append.add(note)
        try:
            await asyncio.wait([moved], timeout=left_s)
        finally:
            log.on_append.discard(note)
    return True
