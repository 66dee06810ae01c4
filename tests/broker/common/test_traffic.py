"""The counts of topics while these are created and deleted."""

from types import SimpleNamespace
from typing import Any

from odradek.broker.common.traffic import Traffic
from odradek.coordinator.metadata.topics import Topics
from odradek.protocol.records.cluster_metadata import RemoveTopicRecord, TopicRecord

FIRST_ID, SECOND_ID = bytes(range(16)), bytes(range(1, 17))


def log_of(topic_id: bytes, records: int) -> Any:
    """A log of the topic `t` to which records of 10 bytes were appended."""
    appended = records, records * 10
    return SimpleNamespace(
        topic="t", topic_id=topic_id, appended_bytes=appended[1], take_appended=lambda: appended
    )


def topics_with(topic_id: bytes) -> Topics:
    topics = Topics()
    topics.replay_topic(TopicRecord(name="t", topic_id=topic_id))
    return topics


def recreate(topics: Topics) -> None:
    """Delete the topic `t`, and create it with another id."""
    topics.replay_removal(RemoveTopicRecord(topic_id=FIRST_ID))
    topics.replay_topic(TopicRecord(name="t", topic_id=SECOND_ID))


def test_a_topic_does_not_inherit_the_counts_of_a_deleted_one() -> None:
    topics = topics_with(FIRST_ID)
    traffic = Traffic(topics)
    traffic.count_appends([log_of(FIRST_ID, 3)])
    for key in ("t", FIRST_ID):
        traffic.by_key[key].bytes_out += 7
    recreate(topics)
    assert (dict(traffic.topics), dict(traffic.by_key)) == ({}, {})
    traffic.by_key["t"].bytes_out += 1
    assert traffic.topics["t"].bytes_out == 1
    totals = traffic.totals(lambda: None)
    assert (totals.messages_in, totals.bytes_in, totals.bytes_out) == (3, 30, 15)


def test_appends_to_a_log_of_a_deleted_topic_are_counted_for_no_topic() -> None:
    topics = topics_with(FIRST_ID)
    traffic = Traffic(topics)
    recreate(topics)
    traffic.count_appends([log_of(FIRST_ID, 2)])
    assert not traffic.topics
    assert traffic.without_topic.messages_in == 2
    traffic.count_appends([log_of(SECOND_ID, 1)])
    assert traffic.topics["t"].messages_in == 1
