"""Partitions whose state is being created: when the creation is asked for again."""

from odradek.coordinator.share_groups.state_partitions import StatePartitions, TopicOfState

TOPIC_ID = bytes(range(16))
SINCE_MS, RETRY_MS = 1_000_000, 30_000
PARTITIONS = frozenset({0, 1})
BEGUN = StatePartitions().with_initializing({TOPIC_ID: TopicOfState("t", PARTITIONS, SINCE_MS)})


def test_a_creation_is_tried_again_after_the_interval() -> None:
    assert BEGUN.recent(TOPIC_ID, SINCE_MS + RETRY_MS - 1, RETRY_MS) == PARTITIONS
    assert BEGUN.recent(TOPIC_ID, SINCE_MS + RETRY_MS, RETRY_MS) == frozenset()


def test_a_creation_is_tried_again_after_the_clock_was_set_back() -> None:
    assert BEGUN.recent(TOPIC_ID, SINCE_MS - 1, RETRY_MS) == frozenset()
