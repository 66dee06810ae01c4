"""Lets the answer to acks=all wait until the followers have the records (Kafka: DelayedProduce).

They have them at once, unless a test lets them lag (PartitionLog.hold_back).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.protocol.batch_header import HEADER_BYTES, MAGIC_POSITION, MAGIC_V2, read_header
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.protocol.schema import replace
from odradek.storage.log import PartitionLog

Deltas = Mapping[tuple[str, bytes, int], int]


def last_offset_deltas(context: RequestContext, request: ProduceRequest) -> Deltas:
    """Those of the batches, by topic name, topic id and partition. Message sets have none.

    They are read before the first await: the batches are in the receive buffer.
    """
    return {
        (topic.name, topic.topic_id, partition.index): read_header(records).last_offset_delta
        for topic in context.sliced(request.topic_data)
        for partition in context.sliced(topic.partition_data)
        if isinstance(records := partition.records, (bytes, memoryview))
        and len(records) >= HEADER_BYTES
        and records[MAGIC_POSITION] == MAGIC_V2
    }


async def when_replicated(
    context: RequestContext,
    timeout_ms: int,
    deltas: Deltas,
    pending: ProduceResponse | Awaitable[Any],
    find_log: Callable[[str, int], PartitionLog | None],
) -> ProduceResponse:
    """The response when consumers may see its records, with `last_offset_deltas` of the request.

    Where too few replicas are in sync, it has the start of the log, as Kafka's has. After the
    request's timeout, partitions whose records are not visible get REQUEST_TIMED_OUT.
    """
    response: ProduceResponse = pending if isinstance(pending, ProduceResponse) else await pending
    deadline_s = context.broker.loop.time() + timeout_ms / 1000
    waiting = []
    for topic in response.responses:
        name = topic.name or context.broker.topic_name(topic.topic_id)
        answers = topic.partition_responses
        for position, answer in enumerate(answers):
            log = find_log(name, answer.index)
            if log is None:
                continue
            if answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS:
                answers[position] = replace(answer, log_start_offset=log.log_start_offset)
            elif answer.error_code == ErrorCode.NONE:
                delta = deltas.get((topic.name, topic.topic_id, answer.index))
                # What others append while this waits is not waited for.
                end_offset = log.log_end_offset if delta is None else answer.base_offset + delta + 1
                waiting.append((answers, position, log, end_offset))
    for answers, position, log, end_offset in waiting:
        if not await _is_visible(context, log, end_offset, deadline_s):
            timed_out = ErrorCode.REQUEST_TIMED_OUT
            answers[position] = replace(answers[position], error_code=timed_out)
    return response


async def _is_visible(
    context: RequestContext, log: PartitionLog, end_offset: int, deadline_s: float
) -> bool:
    """Wait until the high watermark is at an offset, or after it."""
    while log.high_watermark < end_offset:
        left_s = deadline_s - context.broker.loop.time()
        if left_s <= 0:
            return False
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
