"""The quick path of Produce, for requests in which nothing is out of the ordinary.

    quick      append_quickly           one pass of checks over all batches, then the writes
               append_single            the same for a request with one batch
    careful    handlers/produce.py      every other request, from its start

Nothing is written before all batches have passed, so the careful path finds everything unchanged.
What the quick path answers are the bytes that the careful path would have sent, and it leaves the
same logs: both write by the same method of the log. Tests compare the two.

The careful path serves what is refused, and also: transactions; clients that do not know zstd;
batches that are duplicates, or whose records must be read or changed; appends that roll a segment,
read a file or wait for a sync; requests under quotas, and to nearly full disks.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
    ProduceTopicResponse,
)
from odradek.storage.batch_validator import OrdinaryBatch
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC, INTERNAL_TOPICS

from .accepted_produce import encode_accepted
from .produce_answers import UNKNOWN_OFFSET, close_on_error, count_refusal, partition_with_error
from .produced_batches import FIRST_VERSION_BY_ID, FIRST_VERSION_WITH_ZSTD
from .single_batch import SingleBatch, Target

# To these the careful path refuses writes: internal topics by their name, and the metadata log
# because it does not count as a partition. `LogManager.find` would return it.
NOT_OF_CLIENTS = INTERNAL_TOPICS | {CLUSTER_METADATA_TOPIC}


# A log, and a batch that it will accept, unless the disk fails.
CheckedBatch = tuple[PartitionLog, OrdinaryBatch]


def append_quickly(
    context: RequestContext, request: ProduceRequest | SingleBatch
) -> bytearray | ProduceResponse | None:
    """Append the batches of an ordinary request; None if the careful path must serve it.

    Returns the encoded response, also for acks=0. If a disk has failed, it returns a response with
    the errors, or raises RefusedRequestError for acks=0.
    """
    if isinstance(request, SingleBatch):
        return append_single(context, request)
    batches = check_all(context, request)
    if batches is None:
        return None
    stored: list[tuple[int, int]] = []  # base offset and log start offset of each batch
    errors: dict[int, ApiError] = {}  # by the number of the batch
    for log, batch in batches:
        try:
            stored.append((log.append_ordinary(batch), log.log_start_offset))
        except ApiError as error:
            errors[len(stored)] = error.with_traceback(None)
            stored.append((UNKNOWN_OFFSET, UNKNOWN_OFFSET))
            count_refusal(context, log.topic)
    if errors:
        return answer_with_errors(context, request, stored, errors)
    return encode_accepted(request, context.api_version, stored)


def append_partition(
    context: RequestContext, request: ProduceRequest, topic: str, partition: ProducePartitionData
) -> ProducePartitionResponse | None:
    """Append one batch of a request that is served in slices; None if it is out of the ordinary."""
    if topic in NOT_OF_CLIENTS or not is_ordinary(context, request):
        return None
    log, records = context.broker.log_manager.find(topic, partition.index), partition.records
    if log is None or not isinstance(records, memoryview):
        return None
    batch = log.check_ordinary(records, context.now_ms)
    if batch is None:
        return None
    try:
        base_offset = log.append_ordinary(batch)
    except ApiError as error:
        count_refusal(context, topic)
        return partition_with_error(context, partition.index, error)
    return ProducePartitionResponse(
        index=partition.index, base_offset=base_offset, log_start_offset=log.log_start_offset
    )


def append_single(
    context: RequestContext, request: SingleBatch
) -> bytearray | ProduceResponse | None:
    """Like `append_quickly`."""
    broker, target = context.broker, request.target
    if context.meter is not None or broker.disk_space.low:
        return None
    name = writable_name(context, target)
    if name is None:
        return None
    log = broker.log_manager.find(name, target.index)
    if log is None:
        return None
    batch = log.check_ordinary(request.records, context.now_ms)
    if batch is None:
        return None
    try:
        base_offset = log.append_ordinary(batch)
    except ApiError as error:
        count_refusal(context, name)
        refused = [(UNKNOWN_OFFSET, UNKNOWN_OFFSET)]
        return answer_with_errors(context, request.whole(), refused, {0: error})
    return target.answer.encode(base_offset, log.log_start_offset)


def writable_name(context: RequestContext, topic: ProduceTopicData | Target) -> str | None:
    """The name of a topic that the client may write to; None if the careful path must decide."""
    name = topic.name
    if context.api_version >= FIRST_VERSION_BY_ID:
        known = context.broker.metadata.topics.by_id.get(topic.topic_id)
        if known is None:
            return None
        name = known.name
    if name in NOT_OF_CLIENTS or (
        context.broker.security.authorizer.has_rules  # asked here, too: without a call
        and not context.authorize(AclOperation.WRITE, ResourceType.TOPIC, name, is_logged=False)
    ):
        return None
    return name


def check_all(context: RequestContext, request: ProduceRequest) -> list[CheckedBatch] | None:
    """Check the whole request; None if anything about it is out of the ordinary."""
    if not is_ordinary(context, request):
        return None
    broker, now_ms = context.broker, context.now_ms
    batches: list[CheckedBatch] = []
    for topic in request.topic_data:
        name = writable_name(context, topic)
        if name is None or not topic.partition_data:
            return None
        logs = broker.log_manager.of_topic(name)
        for partition in topic.partition_data:
            log, data = logs.get(partition.index), partition.records
            if log is None or not isinstance(data, memoryview):
                return None
            batch = log.check_ordinary(data, now_ms)
            if batch is None:
                return None
            batches.append((log, batch))
    if len(batches) != 1 and len({log for log, _ in batches}) != len(batches):
        return None  # a second batch to a log cannot be checked before the first one is stored
    return batches or None


def is_ordinary(context: RequestContext, request: ProduceRequest) -> bool:
    """Whether nothing but the batches can be out of the ordinary."""
    return (
        context.api_version >= FIRST_VERSION_WITH_ZSTD
        and request.transactional_id is None
        and -1 <= request.acks <= 1
        and context.meter is None
        and not context.broker.disk_space.low
    )


def answer_with_errors(
    context: RequestContext,
    request: ProduceRequest,
    stored: Sequence[tuple[int, int]],
    errors: Mapping[int, ApiError],
) -> ProduceResponse:
    """The response when some of the disks have failed. Raises RefusedRequestError for acks=0."""
    topics: list[ProduceTopicResponse] = []
    numbers = itertools.count()
    for topic in request.topic_data:
        answers: list[ProducePartitionResponse] = []
        for partition, number in zip(topic.partition_data, numbers, strict=False):
            if number in errors:
                answers.append(partition_with_error(context, partition.index, errors[number]))
                continue
            base_offset, log_start_offset = stored[number]
            answers.append(
                ProducePartitionResponse(
                    index=partition.index,
                    base_offset=base_offset,
                    log_start_offset=log_start_offset,
                )
            )
        topics.append(
            ProduceTopicResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=answers
            )
        )
    if request.acks == 0:
        close_on_error(topics)
    return ProduceResponse(responses=topics)
