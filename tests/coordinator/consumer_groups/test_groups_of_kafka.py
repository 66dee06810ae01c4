"""Consumer groups that Apache Kafka wrote are the same groups here."""

from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.consumer_groups.description import described
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.runtime.journal import Journal
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.protocol.batch_header import HEADER_BYTES, read_header
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from tests.support.consumer_members import all_subscribe_alike
from tests.support.kafka_groups import DESCRIBE_VERSION, DESCRIBED_FILE, LOG_FILE, in_order
from tests.support.memory_log import MemoryLog

NOT_ASKED = -(1 << 31)


def golden_answer() -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse.decode(DESCRIBED_FILE.read_bytes(), DESCRIBE_VERSION)


def golden_log() -> MemoryLog:
    """The batches that Kafka wrote, as they are."""
    log = MemoryLog("__consumer_offsets")
    data = LOG_FILE.read_bytes()
    position = 0
    while position + HEADER_BYTES <= len(data):
        size = read_header(data[position:]).size_bytes
        log.stored.append(data[position : position + size])
        position += size
    assert position == len(data)
    return log


def loaded() -> GroupState:
    state = GroupState()
    Journal(golden_log(), state, CoordinatorRecordCodec(RECORD_TYPES))  # type: ignore[arg-type] # a MemoryLog serves a journal
    return state


def test_kafkas_log_is_read_into_the_groups_that_kafka_described() -> None:
    expected = golden_answer()
    names = {
        topic.topic_id: topic.topic_name
        for group in expected.groups
        for member in group.members
        for topic in member.assignment.topic_partitions
    }
    state = loaded()
    found = ConsumerGroupDescribeResponse(
        groups=[
            described(group, "uniform", names.get, NOT_ASKED)
            for group in state.of_type(ConsumerGroup)
        ]
    )
    assert in_order(found) == in_order(expected)
    assert not list(state.of_type(ClassicGroup))


def test_kafkas_log_contains_more_than_the_description() -> None:
    state = loaded()
    mixed, left = state.consumer_group("mixed"), state.consumer_group("left")
    assert mixed.metadata_hash != 0
    assert mixed.assignment_timestamp_ms > 0
    assert mixed.is_subscribed_to("payments")
    assert not mixed.is_subscribed_to("refunds")
    (resolved,) = mixed.subscriptions.resolved_regexes.values()
    assert resolved.topics == {"orders", "payments"}
    assert resolved.version > 0
    assert not all_subscribe_alike(mixed)
    assert mixed.static_member_ids["shop"] in mixed.members
    away = left.static_member("till")
    assert away is not None
    assert away.member_epoch == -2
    (topic_id,) = away.assigned
    assert left.ownership.epoch(topic_id, 0) == -2
    assert state.offsets.of_group("left")["payments"][0].offset == 7
    assert state.offsets.of_group("lost")["orders"][2].offset == 3
