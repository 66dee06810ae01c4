"""Deleting topics by name and by id."""

import pytest

from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicDeletionResult, TopicRef, delete_topics
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import ZERO_UUID
from tests.support.metadata import Metadata

UNKNOWN_ID = bytes(15) + b"\x63"


@pytest.fixture
def metadata() -> Metadata:
    made = Metadata()
    made.create(NewTopic(name="a", configs={"retention.ms": "1"}), NewTopic(name="b"))
    return made


def deleted(metadata: Metadata, *wishes: TopicRef) -> list[TopicDeletionResult]:
    return metadata.commit(delete_topics(metadata.state, wishes))


def errors(replies: list[TopicDeletionResult]) -> list[ErrorCode | None]:
    return [reply.error.code if reply.error else None for reply in replies]


def test_a_topic_is_deleted_by_name_and_leaves_nothing_behind(metadata: Metadata) -> None:
    topic = metadata.state.topics["a"]
    (reply,) = deleted(metadata, TopicRef("a"))
    assert reply.error is None
    assert (reply.name, reply.topic_id, reply.topic) == ("a", topic.id, topic)
    assert list(metadata.state.topics) == ["b"]
    assert topic.id not in metadata.state.topics.by_id
    assert metadata.state.configs.of_topic("a") == {}


def test_a_topic_is_deleted_by_id(metadata: Metadata) -> None:
    topic_id = metadata.state.topics["a"].id
    (reply,) = deleted(metadata, TopicRef(None, topic_id))
    assert (reply.name, reply.topic_id, reply.error) == ("a", topic_id, None)
    assert list(metadata.state.topics) == ["b"]


def test_each_reference_that_is_none_has_a_result(metadata: Metadata) -> None:
    replies = deleted(metadata, *[TopicRef(None)] * 2, *[TopicRef("a", UNKNOWN_ID)] * 3)
    assert errors(replies) == [ErrorCode.INVALID_REQUEST] * 5
    assert [reply.name for reply in replies].count("a") == 3
    assert list(metadata.state.topics) == ["a", "b"]


def test_one_refusal_does_not_touch_the_others(metadata: Metadata) -> None:
    replies = deleted(metadata, TopicRef("a"), TopicRef("nope"), TopicRef(None, UNKNOWN_ID))
    assert {(reply.name, reply.error.code if reply.error else None) for reply in replies} == {
        ("a", None),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert list(metadata.state.topics) == ["b"]


@pytest.mark.parametrize(
    "wishes",
    [
        [TopicRef(None)],
        [TopicRef("a", UNKNOWN_ID)],
        [TopicRef("a"), TopicRef("a")],
        [TopicRef(None, UNKNOWN_ID), TopicRef(None, UNKNOWN_ID)],
    ],
)
def test_a_wish_that_is_unclear_or_repeated_is_refused_once(
    metadata: Metadata, wishes: list[TopicRef]
) -> None:
    assert errors(deleted(metadata, *wishes)) == [ErrorCode.INVALID_REQUEST]
    assert list(metadata.state.topics) == ["a", "b"]


def test_a_topic_is_not_deleted_by_name_if_its_id_is_repeated(metadata: Metadata) -> None:
    by_id = TopicRef(None, metadata.state.topics["a"].id)
    replies = deleted(metadata, by_id, TopicRef("a"), by_id)
    assert [(reply.name, reply.error and reply.error.message) for reply in replies] == [
        (None, "Duplicate topic id."),
        ("a", "The provided topic name maps to an ID that was already supplied."),
    ]
    assert "a" in metadata.state.topics


def test_a_topic_named_both_ways_is_not_deleted_and_answered_once(metadata: Metadata) -> None:
    topic_id = metadata.state.topics["a"].id
    (reply,) = deleted(metadata, TopicRef("a"), TopicRef(None, topic_id))
    assert reply.error is not None
    assert (reply.name, reply.topic_id, reply.error.code) == (
        "a",
        topic_id,
        ErrorCode.INVALID_REQUEST,
    )
    assert "a" in metadata.state.topics


def test_a_topic_that_comes_back_has_a_new_id(metadata: Metadata) -> None:
    before = metadata.state.topics["a"].id
    deleted(metadata, TopicRef("a"))
    metadata.create(NewTopic(name="a"))
    assert metadata.state.topics["a"].id not in (before, ZERO_UUID)
