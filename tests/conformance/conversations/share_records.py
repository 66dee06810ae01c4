"""Records of share groups: delivered, acknowledged, released and delivered again (KIP-932)."""

from typing import Any

from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from odradek.protocol.messages.metadata import MetadataResponseTopic
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.conformance.conversation import Conversation, patiently
from tests.conformance.conversations.share_state import await_share_coordinator
from tests.conformance.share_reader import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    ShareReader,
)
from tests.support.bystander import produce_request
from tests.support.config_requests import alter_configs_request

GROUP_RESOURCE = 32
NOW_MS = 1_700_000_000_000


def records_are_delivered_and_acknowledged(talk: Conversation) -> None:
    topic = _topic(talk, "share-read")
    _write(talk, "share-read", 5, 5, 10)
    for version in (1, 2):
        one = _reader(talk, f"share-read-{version}", "one", topic)
        one.fetch(0, version=version)
        one.fetch(0, acknowledge=[(0, 4, [ACCEPT])], version=version)
        one.fetch(0, acknowledge=[(5, 9, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT])], version=version)
        one.acknowledge((10, 14, [RELEASE]), (15, 19, [ACCEPT]), version=version)
        one.fetch(version=version)
        one.acknowledge((6, 6, [ACCEPT]), (10, 14, [ACCEPT]), version=version)
        one.fetch(version=version)
        _lag(talk, one.group, topic)


def two_members_get_different_records(talk: Conversation) -> None:
    topic = _topic(talk, "share-two")
    _write(talk, "share-two", 4, 4, 4, 4)
    one = _reader(talk, "share-two", "one", topic)
    two = _reader(talk, "share-two", "two", topic)
    one.fetch(0, max_records=4)
    two.fetch(0, max_records=6)
    one.fetch(max_records=1)
    two.acknowledge((0, 3, [ACCEPT]))
    one.acknowledge((0, 3, [ACCEPT]), (4, 7, [ACCEPT]))
    one.acknowledge((0, 3, [ACCEPT]))
    one.acknowledge((0, 3, [ACCEPT]))
    two.leave()
    one.fetch()
    _lag(talk, "share-two", topic)


def acknowledgements_are_checked(talk: Conversation) -> None:
    topic = _topic(talk, "share-wrong")
    _write(talk, "share-wrong", 10)
    one = _reader(talk, "share-wrong", "one", topic)
    one.acknowledge((0, 0, [ACCEPT]))
    one.acknowledge((0, 0, [ACCEPT]), epoch=-1)
    one.fetch(0, acknowledge=[(0, 0, [ACCEPT])])
    one.fetch(0)
    for wrong in (
        [(5, 4, [ACCEPT])],
        [(0, 4, [])],
        [(0, 4, [ACCEPT, ACCEPT])],
        [(0, 4, [9])],
        [(0, 4, [-1])],
        [(0, 4, [RENEW])],
        [(4, 5, [ACCEPT]), (0, 1, [ACCEPT])],
        [(0, 4, [ACCEPT]), (4, 5, [ACCEPT])],
        [(8, 20, [ACCEPT])],
        [(20, 30, [ACCEPT])],
    ):
        one.acknowledge(*wrong)
    one.acknowledge((0, 0, [RENEW]), version=1)
    one.acknowledge((0, 3, [ACCEPT]))
    one.acknowledge((2, 5, [ACCEPT]))
    one.acknowledge((3, 5, [ACCEPT]))
    one.acknowledge((0, 0, [ACCEPT]), partition=7)
    one.acknowledge((4, 9, [ACCEPT]), epoch=99)
    one.fetch(epoch=99)
    one.acknowledge()
    one.acknowledge((4, 9, [ACCEPT]))
    one.fetch(max_wait_ms=1)


def locks_are_renewed(talk: Conversation) -> None:
    topic = _topic(talk, "share-renewed")
    _write(talk, "share-renewed", 6)
    one = _reader(talk, "share-renewed", "one", topic)
    one.fetch(0)
    one.acknowledge((0, 2, [RENEW]), is_renew_ack=True)
    one.acknowledge((0, 2, [ACCEPT, RENEW, RELEASE]), is_renew_ack=True)
    one.fetch(0, acknowledge=[(3, 5, [RENEW])], is_renew_ack=True)
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    one.fetch(0, acknowledge=[(3, 5, [RENEW])], is_renew_ack=True, **nothing)
    change = {"share.renew.acknowledge.enable": "false"}
    talk.silently(alter_configs_request(GROUP_RESOURCE, "share-renewed", change), 1)
    patiently(lambda: _config(talk, "share-renewed", one))


def a_record_is_delivered_a_few_times_only(talk: Conversation) -> None:
    topic = _topic(talk, "share-often")
    _write(talk, "share-often", 8)
    one = _reader(talk, "share-often", "one", topic, **{"share.delivery.count.limit": "4"})
    one.fetch(0)
    acquired = _acquired(one.fetch(0, acknowledge=[(2, 2, [RELEASE])]))
    for _ in range(12):
        if acquired:
            one.acknowledge(*[(first, last, [RELEASE]) for first, last, _count in acquired])
        acquired = _acquired(one.fetch(max_wait_ms=1))
    _lag(talk, "share-often", topic)


def batches_delivered_often_are_divided(talk: Conversation) -> None:
    topic = _topic(talk, "share-divided")
    _write(talk, "share-divided", 16, 3)
    one = _reader(talk, "share-divided", "one", topic)
    one.fetch(0)
    one.acknowledge((0, 15, [RELEASE]), (16, 18, [ACCEPT]))
    for _ in range(16):
        acquired = _acquired(one.fetch(max_wait_ms=1))
        if not acquired:
            break
        one.acknowledge(*[(first, last, [RELEASE]) for first, last, _count in acquired])
    _lag(talk, "share-divided", topic)


def the_number_of_records_is_limited(talk: Conversation) -> None:
    topic = _topic(talk, "share-limits")
    _write(talk, "share-limits", 10, 10, 10, 200)
    for mode in (0, 1):
        one = _reader(talk, f"share-limits-{mode}", "one", topic)
        two = _reader(talk, f"share-limits-{mode}", "two", topic)
        one.fetch(0, max_records=3, batch_size=3, share_acquire_mode=mode)
        two.fetch(0, max_records=15, batch_size=5, share_acquire_mode=mode)
        one.acknowledge((0, 2, [RELEASE, ACCEPT, RELEASE]))
        one.fetch(max_records=2, batch_size=2, share_acquire_mode=mode)
        one.fetch(max_records=40, batch_size=10, share_acquire_mode=mode)
        two.fetch(max_records=0, max_wait_ms=1)
        two.fetch(max_bytes=0, max_wait_ms=1)
    few = {"share.partition.max.record.locks": "100"}
    three = _reader(talk, "share-limits-locks", "three", topic, **few)
    three.fetch(0, max_records=90)
    three.fetch(max_records=90)
    three.fetch(max_records=90, max_wait_ms=1)
    three.acknowledge((0, 9, [ACCEPT]))
    three.fetch(max_records=90, max_wait_ms=1)


def sessions_add_and_forget_partitions(talk: Conversation) -> None:
    topic = _topic(talk, "share-session", 3)
    _write(talk, "share-session", 2, partitions=3)
    one = _reader(talk, "share-session", "one", topic, partitions=3)
    one.fetch(epoch=1)
    one.fetch(epoch=-1)
    one.fetch(0)
    one.fetch(1, 9)
    one.fetch(2, forget=[0, 9])
    _write(talk, "share-session", 1, partitions=3)
    one.fetch()
    one.fetch(max_wait_ms=1)
    one.fetch(0, epoch=1)
    one.epoch = 0
    one.fetch(0, max_wait_ms=1)
    one.leave()
    one.fetch(epoch=5)
    one.fetch(0)


def groups_begin_where_they_are_told(talk: Conversation) -> None:
    topic = _topic(talk, "share-begin")
    _write(talk, "share-begin", 3)
    resets = ("latest", "earliest", "by_duration:P1000D", "by_duration:PT1S")
    for number, reset in enumerate(resets):
        words = {"share.auto.offset.reset": reset}
        one = _reader(talk, f"share-begin-{number}", "one", topic, **words)
        one.fetch(0, max_wait_ms=100)
        _lag(talk, one.group, topic)


def the_log_loses_its_first_records(talk: Conversation) -> None:
    topic = _topic(talk, "share-lost")
    _write(talk, "share-lost", 4, 4, 4)
    one = _reader(talk, "share-lost", "one", topic)
    one.fetch(0, max_records=4)
    one.acknowledge((0, 3, [RELEASE]))
    wanted = DeleteRecordsPartition(partition_index=0, offset=6)
    topics = [DeleteRecordsTopic(name="share-lost", partitions=[wanted])]
    talk.silently(DeleteRecordsRequest(topics=topics, timeout_ms=9_000), 2)
    one.fetch(max_wait_ms=1)
    one.fetch()
    one.fetch(max_wait_ms=1)
    one.acknowledge((4, 7, [ACCEPT]))
    one.acknowledge((6, 11, [ACCEPT]))
    _lag(talk, "share-lost", topic)


def a_share_group_loses_its_topic(talk: Conversation) -> None:
    topic = _topic(talk, "share-gone")
    _write(talk, "share-gone", 4)
    one = _reader(talk, "share-gone", "one", topic)
    one.fetch(0, max_records=4)
    talk.silently(DeleteTopicsRequest(topic_names=["share-gone"], timeout_ms=9_000), 5)
    talk.wait_until_gone("share-gone")
    one.acknowledge((0, 3, [ACCEPT]))


# -- what they need --------------------------------------------------------------------------------


def _topic(talk: Conversation, name: str, partitions: int = 1) -> MetadataResponseTopic:
    topic = talk.create_topic(name, partitions)
    talk.transcript.write("topic", [{"topic_id": topic.topic_id}])
    await_share_coordinator(talk, topic.topic_id)
    return topic


def _write(talk: Conversation, topic: str, *counts: int, partitions: int = 1) -> None:
    """Append batches of so many records."""
    for count in counts:
        batch = bytes(build_batch([Record(None, b"%d" % n, NOW_MS) for n in range(count)]))
        talk.silently(produce_request(topic, batch, partitions=partitions), 9)


def _reader(
    talk: Conversation,
    group: str,
    member: str,
    topic: MetadataResponseTopic,
    *,
    partitions: int = 1,
    **configs: str,
) -> ShareReader:
    talk.wait_for_coordinator(group)
    settings: dict[str, str | None] = {
        "share.assignment.interval.ms": "0",
        "share.auto.offset.reset": "earliest",
        **configs,
    }
    talk.silently(alter_configs_request(GROUP_RESOURCE, group, settings), 1)
    name = topic.name
    assert name is not None
    reader = ShareReader(talk.ask, group, member, name, topic.topic_id)
    reader.join(talk.silently, partitions)
    return reader


def _acquired(answer: Any) -> list[tuple[int, int, int]]:
    return [
        (one.first_offset, one.last_offset, one.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for one in partition.acquired_records
    ]


def _lag(talk: Conversation, group: str, topic: MetadataResponseTopic) -> None:
    assert topic.name is not None
    wanted = DescribeShareGroupOffsetsRequestTopic(topic_name=topic.name, partitions=[0])
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=[wanted])
    talk.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), 1)


def _config(talk: Conversation, group: str, reader: ShareReader) -> bool | None:
    """Renew a lock until the group's setting has reached the broker, and write that down."""
    silent = ShareReader(talk.silently, group, reader.member, reader.topic, reader.topic_id)
    silent.epoch = reader.epoch
    answer = silent.acknowledge((3, 5, [RENEW]), is_renew_ack=True)
    reader.epoch = silent.epoch
    if not answer.responses[0].partitions[0].error_code:
        return None
    talk.transcript.write("locks cannot be renewed", answer)
    return True
