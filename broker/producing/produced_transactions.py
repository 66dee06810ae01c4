"""Verifies the transactional batches of a Produce request.

A producer of transaction version 2 writes again as soon as EndTxn is answered, although its last
transaction may still be being completed. The broker then waits a moment, because that is cheaper
than to let the producer send its records again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.transactions.verification import Batch, Support, Verified
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.storage.batch_validator import read_one_batch
from odradek.storage.topic_partition import TopicPartition

from .produced_batches import batch_of, is_closed, is_transactional, topic_name

FIRST_VERSION_WITH_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS_PARTITIONS = 12


def verify_all(context: RequestContext, request: ProduceRequest) -> Verified | ApiError:
    """Like `verify`, for a whole request. Returns the error that refuses all of it."""
    sent = (
        (topic, data)
        for topic in context.sliced(request.topic_data)
        for data in context.sliced(topic.partition_data)
    )
    try:
        return verify(context, request.transactional_id or "", sent)
    except ApiError as error:
        return error


def verify(
    context: RequestContext,
    transactional_id: str,
    partitions: Iterable[tuple[ProduceTopicData, ProducePartitionData]],
) -> Verified:
    """Verify the transactional batches among those that a producer has sent.

    Raises ApiError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_PRODUCER_ID_MAPPING. A client
    may send a transactional id that it does not use; then it needs no access to it.
    """
    transactional = [(topic, data) for topic, data in partitions if is_transactional(data)]
    if not transactional:
        return {}
    context.check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    refused: dict[TopicPartition, ApiError] = {}
    batches = [
        batch_to_verify(context, topic, data, refused)
        for topic, data in context.sliced(transactional)
    ]
    support = Support.of(
        context.api_version,
        abortable_since=FIRST_VERSION_WITH_ABORTABLE,
        adds_since=FIRST_VERSION_THAT_ADDS_PARTITIONS,
    )
    verified = context.broker.transaction_verifier.verify(
        transactional_id,
        (batch for batch in context.sliced(batches) if batch is not None),
        support,
    )
    return {**verified, **refused}


def batch_to_verify(
    context: RequestContext,
    topic: ProduceTopicData,
    partition: ProducePartitionData,
    refused: dict[TopicPartition, ApiError],
) -> Batch | None:
    """A transactional batch and its log; None if it is refused for another reason.

    The reason is added to `refused` if it is the log, which may be open when the batch is appended.
    """
    try:
        name = topic_name(context, topic)
        context.check_topic(AclOperation.WRITE, name)
        header = read_one_batch(batch_of(partition))
    except ApiError:
        return None
    if is_closed(context, name) or not header.is_transactional or header.producer_id < 0:
        return None
    try:
        return Batch(context.broker.log_manager.get(name, partition.index), header)
    except ApiError as error:
        refused[TopicPartition(name, partition.index)] = error.with_traceback(None)
        return None


def is_ending(context: RequestContext, verified: Verified | ApiError) -> bool:
    """Whether the producer's last transaction is still being completed.

    Producers of version 2 write again as soon as EndTxn is answered.
    """
    if context.api_version < FIRST_VERSION_THAT_ADDS_PARTITIONS or isinstance(verified, ApiError):
        return False
    for obstacle in verified.values():  # no generator: every transactional Produce comes here
        if isinstance(obstacle, ApiError) and obstacle.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            return True
    return False


async def verify_when_ended(
    context: RequestContext, request: ProduceRequest
) -> Verified | ApiError:
    """Verify the batches when the producer's last transaction has ended.

    After add.partitions.to.txn.retry.backoff.max.ms they are refused. Kafka:
    ReplicaManager.handleProduceAppend.
    """
    broker = context.broker
    give_up_s = broker.loop.time()
    give_up_s += broker.config.add_partitions_to_txn_retry_backoff_max_ms / 1000
    while True:
        await asyncio.sleep(broker.config.add_partitions_to_txn_retry_backoff_ms / 1000)
        context.now_ms = broker.clock.now_ms()
        verified = verify_all(context, request)
        if not is_ending(context, verified) or broker.loop.time() >= give_up_s:
            return verified
