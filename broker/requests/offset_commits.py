"""What OffsetCommit and TxnOffsetCommit share: topics and partitions that do not exist are refused.

A request names topics by name, or by id. Partitions that do not exist come first in the answer,
and then each topic is in it once.

Kafka: KafkaApis.handleOffsetCommitRequest, OffsetCommitResponse.Builder, and those of
TxnOffsetCommit.
"""

from collections.abc import Callable, Iterable
from functools import partial

from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

from .context import RequestContext
from .readable_topics import readable_topic

Commit = Callable[[list[OffsetCommitRequestTopic]], list[OffsetCommitResponseTopic]]


def commit_existing(
    context: RequestContext,
    topics: Iterable[OffsetCommitRequestTopic],
    commit: Commit,
    *,
    has_ids: bool,
) -> list[OffsetCommitResponseTopic]:
    """Call `commit` with the partitions that exist, unless there are none.

    Returns its results and those of the other partitions. `has_ids`: topics are named by id.
    """
    refused: list[OffsetCommitResponseTopic] = []
    valid: list[OffsetCommitRequestTopic] = []
    for wanted in context.sliced(topics):
        try:
            topic = readable_topic(context, wanted.name, wanted.topic_id if has_ids else None)
        except ApiError as error:
            refused.append(topic_with_error(context, wanted, error.code))
            continue
        part = partial(OffsetCommitRequestTopic, name=topic.name, topic_id=topic.id)
        indexes, partitions = topic.partitions, wanted.partitions
        missing = [
            item for item in context.sliced(partitions) if item.partition_index not in indexes
        ]
        if missing:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(topic_with_error(context, part(partitions=missing), unknown))
        existing = [item for item in context.sliced(partitions) if item.partition_index in indexes]
        if existing:
            valid.append(part(partitions=existing))
    committed = commit(valid) if valid else []
    return _merged(context, [*refused, *committed]) if refused else committed


def topic_with_error(
    context: RequestContext, topic: OffsetCommitRequestTopic, error: ErrorCode
) -> OffsetCommitResponseTopic:
    """An answer that refuses all partitions of a topic."""
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=error
            )
            for partition in context.sliced(topic.partitions)
        ],
    )


def _merged(
    context: RequestContext, results: list[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    """One entry per topic: the refused partitions, then the committed ones."""
    by_topic: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}
    for topic in context.sliced(results):
        known = by_topic.setdefault((topic.name, topic.topic_id), topic)
        if known is not topic:
            known.partitions.extend(topic.partitions)
    merged = list(by_topic.values())
    free(context.step, by_topic)
    return merged
