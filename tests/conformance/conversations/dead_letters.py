"""Dead-letter queues of share groups (KIP-1191): what is in them, and what happens without them.

How Kafka divides the records that were rejected one by one into batches depends on its threads, so
only whole ranges are compared batch by batch.
"""

from collections.abc import Mapping
from typing import Any

from odradek.protocol.batch_header import BatchHeader, read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.read_share_group_state import (
    ReadShareGroupStatePartition,
    ReadShareGroupStateRequest,
    ReadShareGroupStateTopic,
)
from odradek.protocol.messages.write_share_group_state import (
    WriteShareGroupStateBatch,
    WriteShareGroupStatePartition,
    WriteShareGroupStateRequest,
    WriteShareGroupStateTopic,
)
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.conformance.conversation import Conversation, patiently
from tests.conformance.conversations.share_state import await_share_coordinator
from tests.conformance.share_reader import ACCEPT, REJECT, RELEASE, ShareReader
from tests.conformance.transcript import each_batch
from tests.support.broker_in_loop import produce_to
from tests.support.config_requests import alter_configs_request
from tests.support.stored_batches import fetch_request

TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE = 2, 4, 32
NOW_MS = 1_700_000_000_000
NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
FETCH_VERSION = 12
CLUSTER_SOURCE = 3  # a default of all brokers that was set while they run
ARCHIVING, ARCHIVED = 3, 4
MAY_BE_QUEUE = {"errors_deadletterqueue_group_enable": "true"}


def rejected_records_are_described_in_a_queue(talk: Conversation) -> None:
    talk.create_topic("dlq.described", 2, **MAY_BE_QUEUE)
    one = _reader(talk, "dead-described", 3, **{NAME: "dlq.described"})
    _write(talk, "dead-described", _records(6), partition=0)
    _write(talk, "dead-described", _records(4), partition=2)
    one.fetch(0)
    one.acknowledge((0, 5, [ACCEPT, REJECT, ACCEPT, RELEASE, REJECT, REJECT]))
    _await_queue(talk, "dlq.described", 3, partition=0)
    one.fetch(max_wait_ms=1)
    one.acknowledge((3, 3, [REJECT]))
    _await_queue(talk, "dlq.described", 4, partition=0)
    two = ShareReader(talk.ask, "dead-described", "two", one.topic, one.topic_id)
    two.fetch(2)
    two.acknowledge((0, 3, [REJECT]), partition=2)
    _await_queue(talk, "dlq.described", 8, partition=0)
    _note_records(talk, "dlq.described", 0)
    _note_records(talk, "dlq.described", 1)
    one.fetch(max_wait_ms=1)
    _await_lag(talk, "dead-described", 0)


def records_delivered_too_often_are_in_the_queue(talk: Conversation) -> None:
    talk.create_topic("dlq.often", **MAY_BE_QUEUE)
    settings = {NAME: "dlq.often", "share.delivery.count.limit": "2"}
    one = _reader(talk, "dead-often", **settings)
    _write(talk, "dead-often", _records(3))
    one.fetch(0)
    one.acknowledge((0, 2, [RELEASE]))
    one.fetch()
    one.acknowledge((0, 2, [RELEASE]))
    _await_queue(talk, "dlq.often", 3)
    _note_records(talk, "dlq.often")
    _await_lag(talk, "dead-often", 0)
    _write(talk, "dead-often", _records(2))
    one.fetch()
    one.leave()
    two = ShareReader(talk.ask, "dead-often", "one", one.topic, one.topic_id)
    two.fetch(0)
    two.leave()
    _await_queue(talk, "dlq.often", 5)
    _note_records(talk, "dlq.often")


def keys_and_values_are_copied_into_a_queue(talk: Conversation) -> None:
    talk.create_topic("dlq.copies", **MAY_BE_QUEUE, max_message_bytes="4000")
    one = _reader(talk, "dead-copies", **{NAME: "dlq.copies", COPY: "true"})
    for records, codec in (
        (_records(3), CompressionType.NONE),
        ([Record(None, None, NOW_MS), Record(b"", b"", NOW_MS)], CompressionType.NONE),
        (_records(40, 200), CompressionType.NONE),
        (_records(30, 100), CompressionType.ZSTD),
        (_records(100, 100), CompressionType.GZIP),
        (_records(1, 4000), CompressionType.NONE),
        (_records(2), CompressionType.LZ4),
    ):
        _write(talk, "dead-copies", records, codec=codec)
    count = 0
    for last in (2, 4, 44, 74, 174, 175, 177):
        first = count
        one.fetch(0, max_records=1)
        one.acknowledge((first, last, [REJECT]))
        count = last + 1
        _await_queue(talk, "dlq.copies", count)
    _note_batches(talk, "dlq.copies")
    _await_lag(talk, "dead-copies", 0, has_start=True)


def many_records_are_divided_into_batches(talk: Conversation) -> None:
    talk.create_topic("dlq.many", **MAY_BE_QUEUE, max_message_bytes="1500")
    one = _reader(talk, "dead-many", **{NAME: "dlq.many"})
    _write(talk, "dead-many", _records(50))
    one.fetch(0)
    one.acknowledge((0, 49, [REJECT]))
    _await_queue(talk, "dlq.many", 50)
    _note_batches(talk, "dlq.many")
    _await_lag(talk, "dead-many", 0, has_start=True)


def a_value_that_fits_without_the_headers_only_is_not_in_the_queue(talk: Conversation) -> None:
    """The original is not too large, so it is copied; what is written then is."""
    talk.create_topic("dlq.narrow", **MAY_BE_QUEUE, max_message_bytes="300")
    one = _reader(talk, "dead-narrow", **{NAME: "dlq.narrow", COPY: "true"})
    for size in (5, 200, 400, 5):
        _write(talk, "dead-narrow", [Record(None, b"v" * size, NOW_MS)])
    one.fetch(0)
    one.acknowledge((1, 1, [REJECT]))
    for offset, count in ((0, 1), (2, 2), (3, 3)):
        one.acknowledge((offset, offset, [REJECT]))
        _await_queue(talk, "dlq.narrow", count)
    _await_lag(talk, "dead-narrow", 0)
    _note_records(talk, "dlq.narrow")


def a_queue_has_settings_of_its_own(talk: Conversation) -> None:
    talk.create_topic("dlq.settings", **MAY_BE_QUEUE, compression_type="gzip")
    one = _reader(talk, "dead-settings", **{NAME: "dlq.settings"})
    _write(talk, "dead-settings", _records(5))
    one.fetch(0)
    one.acknowledge((0, 4, [REJECT]))
    _await_queue(talk, "dlq.settings", 5)
    _note_batches(talk, "dlq.settings", content=False)
    _note_records(talk, "dlq.settings")


def a_missing_queue_is_created(talk: Conversation) -> None:
    one = _reader(talk, "dead-created", **{NAME: "dlq.created"})
    _set_for_cluster(talk, AUTO_CREATE, "true")
    try:
        _write(talk, "dead-created", _records(2))
        one.fetch(0)
        one.acknowledge((0, 1, [REJECT]))
        _await_topic(talk, "dlq.created")
        _await_queue(talk, "dlq.created", 2)
    finally:
        _set_for_cluster(talk, AUTO_CREATE, None)
    _note_batches(talk, "dlq.created")
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name="dlq.created", configuration_keys=None
    )
    talk.ask(DescribeConfigsRequest(resources=[resource]), 4)
    _await_lag(talk, "dead-created", 0)


def without_its_queue_a_group_goes_on(talk: Conversation) -> None:
    """The topic is missing, does not allow it, has another prefix, refuses records, or a name."""
    talk.create_topic("dlq.refusing")
    talk.create_topic("other-prefix", **MAY_BE_QUEUE)
    talk.create_topic("dlq.compacted", **MAY_BE_QUEUE, cleanup_policy="compact")
    talk.create_topic("dlq.tiny", **MAY_BE_QUEUE, max_message_bytes="100")
    for number, queue in enumerate(
        ("dlq.missing", "dlq.refusing", "other-prefix", "dlq.compacted", "dlq.tiny", "dlq.b d")
    ):
        name = f"dead-without-{number}"
        one = _reader(talk, name, **{NAME: queue})
        _write(talk, name, _records(3))
        one.fetch(0)
        one.acknowledge((0, 2, [ACCEPT, REJECT, REJECT]))
        _await_lag(talk, name, 0)
        if queue not in ("dlq.missing", "dlq.b d"):
            _note_records(talk, queue)
    _set_for_cluster(talk, PREFIX, "other-")
    try:
        one = _reader(talk, "dead-prefix", **{NAME: "other-prefix"})
        _write(talk, "dead-prefix", _records(1))
        one.fetch(0)
        one.acknowledge((0, 0, [REJECT]))
        _await_queue(talk, "other-prefix", 1)
    finally:
        _set_for_cluster(talk, PREFIX, None)
    _note_records(talk, "other-prefix")


def what_a_crash_has_interrupted_is_done_at_the_next_fetch(talk: Conversation) -> None:
    """The stored state is that between the two writes of a rejection."""
    talk.create_topic("dlq.interrupted", **MAY_BE_QUEUE)
    one = _reader(talk, "dead-interrupted", **{NAME: "dlq.interrupted", COPY: "true"})
    _write(talk, "dead-interrupted", _records(6))
    reading = ReadShareGroupStatePartition(partition=0, leader_epoch=0)
    asked = ReadShareGroupStateTopic(topic_id=one.topic_id, partitions=[reading])
    read = ReadShareGroupStateRequest(group_id="dead-interrupted", topics=[asked])

    def state_epoch() -> int | None:
        found = talk.silently(read, 0).results[0].partitions[0]
        epoch: int = found.state_epoch
        return None if found.error_code else epoch

    batches = [(0, 1, ARCHIVING, 1), (2, 2, ARCHIVED, 1), (4, 4, ARCHIVING, 5)]
    partition = WriteShareGroupStatePartition(
        partition=0,
        state_epoch=patiently(state_epoch),
        leader_epoch=0,
        start_offset=0,
        state_batches=[
            WriteShareGroupStateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ],
    )
    topic = WriteShareGroupStateTopic(topic_id=one.topic_id, partitions=[partition])
    talk.ask(WriteShareGroupStateRequest(group_id="dead-interrupted", topics=[topic]), 1)
    one.fetch(0)
    _await_queue(talk, "dlq.interrupted", 3)
    _note_records(talk, "dlq.interrupted")
    one.acknowledge((3, 3, [ACCEPT]), (5, 5, [ACCEPT]))
    _await_lag(talk, "dead-interrupted", 0)


def names_of_queues_are_checked(talk: Conversation) -> None:
    for name in ("__queue", "_queue", "q", "no prefix / no name", ""):
        talk.ask(alter_configs_request(GROUP_RESOURCE, "dead-named", {NAME: name}), 1)
    talk.ask(alter_configs_request(GROUP_RESOURCE, "dead-named", {COPY: "maybe"}), 1)


# -- what they need --------------------------------------------------------------------------------


def _records(count: int, size: int = 5) -> list[Record]:
    return [
        Record(b"k%d" % n, b"%d" % (n % 10) * size, NOW_MS + n, (("h", b"x"),))
        for n in range(count)
    ]


def _write(
    talk: Conversation,
    topic: str,
    records: list[Record],
    *,
    partition: int = 0,
    codec: CompressionType = CompressionType.NONE,
) -> None:
    batch = bytes(build_batch(records, compression=codec))
    answer = talk.silently(produce_to(topic, batch, [partition]), 9)
    assert not answer.responses[0].partition_responses[0].error_code, answer


def _reader(talk: Conversation, name: str, partitions: int = 1, **configs: str) -> ShareReader:
    """A member of the group `name`, which reads the topic of the same name."""
    topic = talk.create_topic(name, partitions)
    talk.transcript.write("topic", [{"topic_id": topic.topic_id}])
    await_share_coordinator(talk, topic.topic_id)
    talk.wait_for_coordinator(name)
    settings: Mapping[str, str | None] = {
        "share.assignment.interval.ms": "0",
        "share.auto.offset.reset": "earliest",
        **configs,
    }
    talk.silently(alter_configs_request(GROUP_RESOURCE, name, settings), 1)
    reader = ShareReader(talk.ask, name, "one", name, topic.topic_id)
    reader.join(talk.silently, partitions)
    return reader


def _set_for_cluster(talk: Conversation, name: str, value: str | None) -> None:
    """Set a key of all brokers, or delete it, and wait until the broker has it."""
    talk.silently(alter_configs_request(BROKER_RESOURCE, "", {name: value}), 1)
    resource = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name="0", configuration_keys=[name]
    )

    def is_set() -> bool | None:
        answer = talk.silently(DescribeConfigsRequest(resources=[resource]), 4)
        [config] = answer.results[0].configs
        return (config.config_source == CLUSTER_SOURCE) is (value is not None) or None

    patiently(is_set)


def _batches(talk: Conversation, topic: str, partition: int = 0) -> list[bytes]:
    request = fetch_request(topic, partition, 0, 1 << 24)
    answer = talk.silently(request, FETCH_VERSION)
    found = answer.responses[0].partitions[0]
    return list(each_batch(bytes(found.records or b"")))


def _queued(batches: list[bytes]) -> list[Record]:
    return [record for batch in batches for record in read_records(batch)]


def _await_queue(talk: Conversation, topic: str, count: int, partition: int = 0) -> None:
    patiently(lambda: len(_queued(_batches(talk, topic, partition))) >= count or None)


def _note_records(talk: Conversation, topic: str, partition: int = 0) -> None:
    """Write down what is in the queue, in the order of the records that were given up."""
    records = [_plain(record) for record in _queued(_batches(talk, topic, partition))]
    talk.transcript.write(f"{topic}-{partition}", sorted(records, key=repr))


def _plain(record: Record) -> Any:
    assert record.timestamp_ms > NOW_MS + 1_000_000, "a record has the time of its write"
    return [record.key, record.value, [list(each) for each in record.headers]]


def _note_batches(talk: Conversation, topic: str, *, content: bool = True) -> None:
    batches = _batches(talk, topic)
    talk.transcript.write(
        topic,
        [
            [
                list(_header(read_header(batch))),
                [_plain(record) for record in read_records(batch)] if content else [],
            ]
            for batch in batches
        ],
    )


def _header(header: BatchHeader) -> BatchHeader:
    """Without times, and without what depends on them."""
    assert header.max_timestamp >= header.base_timestamp
    length = header.batch_length if header.compression is CompressionType.NONE else 0
    return header._replace(crc=0, base_timestamp=0, max_timestamp=0, batch_length=length)


def _await_topic(talk: Conversation, name: str) -> None:
    wanted = [MetadataRequestTopic(name=name)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

    def is_led() -> bool | None:
        [topic] = talk.silently(request, 12).topics
        leaders = [one.leader_id for one in topic.partitions]
        return (not topic.error_code and bool(leaders) and min(leaders) >= 0) or None

    patiently(is_led)
    talk.ask(request, 12)


def _await_lag(talk: Conversation, name: str, lag: int, *, has_start: bool = False) -> None:
    """Wait until the group is done with its records.

    `has_start`: write down where it begins. When records were rejected one by one, this depends on
    Kafka's threads.
    """
    wanted = DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0])
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=[wanted])
    request = DescribeShareGroupOffsetsRequest(groups=[asked])

    def is_done() -> bool | None:
        [group] = talk.silently(request, 1).groups
        return group.topics[0].partitions[0].lag == lag or None

    patiently(is_done)
    if has_start:
        talk.ask(request, 1)
