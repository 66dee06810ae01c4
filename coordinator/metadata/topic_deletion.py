"""The decision that ends topics.

One RemoveTopicRecord ends a topic, its partitions and its configs. The logs are deleted by the
broker afterwards, or at the next start: what spans two journals is reconciled then. Topics are
named by name or by id, and Kafka is strict about naming one twice.

Kafka: ControllerApis.deleteTopics, ReplicationControlManager.deleteTopics.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from odradek.coordinator.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import ZERO_UUID, uuid_text
from odradek.protocol.records.cluster_metadata import RemoveTopicRecord

from .cluster_metadata import ClusterMetadata
from .topics import Topic


class TopicRef(NamedTuple):
    """A topic by name, or (name None) by id."""

    name: str | None
    topic_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopic:
    """What became of one wish; `topic` is the topic as it was, None when `error` says why not."""

    name: str | None
    topic_id: bytes
    topic: Topic | None = None
    error: ApiError | None = None


def delete_topics(
    metadata: ClusterMetadata, wishes: Sequence[TopicRef]
) -> Outcome[list[DeletedTopic]]:
    """Delete each topic, or say why not. A wish that is repeated is refused, and answered once."""
    refused: list[DeletedTopic] = []
    doomed: dict[bytes, Topic] = {}
    occurrences = Counter(wishes)
    for wish in sorted(occurrences, key=lambda wish: wish.name is not None):  # ids come first
        try:
            topic = _resolve(metadata, wish, occurrences[wish])
            if doomed.pop(topic.id, None) is not None:  # by id and by name: neither counts
                wish = TopicRef(topic.name, topic.id)
                raise _invalid("The provided topic name maps to an ID that was already supplied.")
            doomed[topic.id] = topic
        except ApiError as error:
            refused.append(DeletedTopic(name=wish.name, topic_id=wish.topic_id, error=error))
    deleted = [
        DeletedTopic(name=topic.name, topic_id=topic.id, topic=topic) for topic in doomed.values()
    ]
    records = tuple(JournalRecord(RemoveTopicRecord(topic_id=topic_id)) for topic_id in doomed)
    return Outcome(reply=refused + deleted, records=records)


def _resolve(metadata: ClusterMetadata, wish: TopicRef, times: int) -> Topic:
    if wish.name is None and wish.topic_id == ZERO_UUID:
        raise _invalid("Neither topic name nor id were specified.")
    if wish.name is not None and wish.topic_id != ZERO_UUID:
        raise _invalid("You may not specify both topic name and topic id.")
    if times > 1:
        raise _invalid(f"Duplicate topic {'id' if wish.name is None else 'name'}.")
    if wish.name is None:
        topic = metadata.topics.by_id.get(wish.topic_id)
        if topic is None:
            text = f"There is no topic with id {uuid_text(wish.topic_id)}."
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, text)
        return topic
    topic = metadata.topics.get(wish.name)
    if topic is None:
        text = f"There is no topic {wish.name}."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return topic


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
