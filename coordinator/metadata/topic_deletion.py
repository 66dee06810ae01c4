"""Computes the records that delete topics.

One RemoveTopicRecord deletes a topic, its partitions and its configs. The broker deletes the logs
afterwards, or at its next start after a crash. A request names topics by name or by id; as in
Kafka, a topic that is named twice is refused.

Kafka: ControllerApis.deleteTopics, ReplicationControlManager.deleteTopics.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, free, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import ZERO_UUID, uuid_text
from odradek.protocol.records.cluster_metadata import RemoveTopicRecord

from .cluster_metadata import ClusterMetadata
from .topic_creation import Permits, unlimited
from .topics import Topic


class TopicRef(NamedTuple):
    """A topic by name, or by id if the name is None."""

    name: str | None
    topic_id: bytes = ZERO_UUID

    @property
    def is_one(self) -> bool:
        """Whether it has a name or an id, and not both."""
        return (self.name is None) != (self.topic_id == ZERO_UUID)


class TopicDeletionResult(Struct, frozen=True, kw_only=True):
    """The result of one deletion: the topic that was deleted, or the error."""

    name: str | None
    topic_id: bytes
    topic: Topic | None = None
    error: ApiError | None = None


def delete_topics(
    metadata: ClusterMetadata,
    requests: Sequence[TopicRef],
    permits: Permits = unlimited,
    step: Step = no_step,
) -> Outcome[list[TopicDeletionResult]]:
    """Delete topics. A topic that is named more than once is refused, and gets one result.

    References that are none get a result each.
    """
    refused: list[TopicDeletionResult] = []
    to_delete: dict[bytes, Topic] = {}
    occurrences = Counter(stepping(requests, step))
    # As in Kafka, ids are looked up before names. So if a topic is named by id and by name, the
    # error is about the name.
    ids_first = [request for request in stepping(occurrences, step) if request.name is None]
    ids_first += [request for request in stepping(occurrences, step) if request.name is not None]
    for request in stepping(ids_first, step):
        times = occurrences[request]
        results = 1 if request.is_one else times
        try:
            topic = resolve(metadata, request, times)
            if request.name is not None and TopicRef(None, topic.id) in occurrences:
                to_delete.pop(topic.id, None)  # not there if the id was repeated
                request = TopicRef(topic.name, topic.id)
                raise _invalid("The provided topic name maps to an ID that was already supplied.")
            to_delete[topic.id] = topic
        except ApiError as error:
            result = TopicDeletionResult(
                name=request.name, topic_id=request.topic_id, error=error.with_traceback(None)
            )
            refused += [result] * results
    free(step, occurrences, ids_first)
    deleted = [_deletion(topic, permits) for topic in stepping(to_delete.values(), step)]
    records = tuple(
        JournalRecord(RemoveTopicRecord(topic_id=deletion.topic_id))
        for deletion in stepping(deleted, step)
        if deletion.error is None
    )
    return Outcome(reply=refused + deleted, records=records)


def _deletion(topic: Topic, permits: Permits) -> TopicDeletionResult:
    try:
        permits(len(topic.partitions))
    except ApiError as error:
        return TopicDeletionResult(name=topic.name, topic_id=topic.id, error=error)
    return TopicDeletionResult(name=topic.name, topic_id=topic.id, topic=topic)


def resolve(metadata: ClusterMetadata, request: TopicRef, times: int) -> Topic:
    """Return the topic of a reference that occurs this many times in a request. Raises ApiError."""
    if not request.is_one:
        if request.name is None:
            raise _invalid("Neither topic name nor id were specified.")
        raise _invalid("You may not specify both topic name and topic id.")
    if times > 1:
        raise _invalid(f"Duplicate topic {'id' if request.name is None else 'name'}.")
    if request.name is None:
        topic = metadata.topics.by_id.get(request.topic_id)
        if topic is None:
            text = f"There is no topic with id {uuid_text(request.topic_id)}."
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, text)
        return topic
    topic = metadata.topics.get(request.name)
    if topic is None:
        text = f"There is no topic {request.name}."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return topic


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
