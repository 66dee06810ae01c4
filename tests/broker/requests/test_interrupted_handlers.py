"""What a request in slices has looked up may be gone or changed when its next slice begins."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import (
    describe_groups,
    describe_topic_partitions,
    fetch,
    metadata,
    produce,
)
from odradek.broker.requests.context import RequestContext
from odradek.broker.turns import slices as slices_module
from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.storage.log import PartitionLog
from tests.broker.handlers.test_group_handlers import Broker as GroupBroker
from tests.support.contexts import broker_with_topic, request_context
from tests.support.groups import GROUP
from tests.support.log_box import NOW_MS, batch_of

PARTITIONS = 300


@pytest.fixture
async def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Broker]:
    """A broker in which each step of a request ends its slice, with a topic of many partitions."""
    monkeypatch.setattr(slices_module, "SLICE_S", 0.0)
    async with broker_with_topic(tmp_path, PARTITIONS) as made:
        yield made


async def answer_while_a_topic_is_deleted(
    broker: Broker, serve: Callable[[RequestContext], Any], version: int, topic: str = "t"
) -> Any:
    async def in_slices(slices: Slices) -> Any:
        context = request_context(broker, version, NOW_MS)
        context.slices = slices
        return serve(context)

    answer = broker.turns.slices.run(in_slices)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not answer.done(), "the topic is deleted too late"
    broker.controller.delete_topics([TopicRef(topic)], NOW_MS)
    assert topic not in broker.metadata.topics
    return await answer


async def test_a_topic_is_deleted_while_its_partitions_are_described(broker: Broker) -> None:
    topics = [DescribeTopicPartitionsRequestTopic(name="t")]
    request = DescribeTopicPartitionsRequest(topics=topics)
    response = await answer_while_a_topic_is_deleted(
        broker, lambda context: describe_topic_partitions.handle(context, request), 0
    )
    (topic,) = response.topics
    assert (topic.name, topic.error_code) == ("t", ErrorCode.NONE)
    assert [each.partition_index for each in topic.partitions] == list(range(PARTITIONS))


async def test_a_topic_is_deleted_while_all_are_listed(broker: Broker) -> None:
    response = await answer_while_a_topic_is_deleted(
        broker, lambda context: metadata.handle(context, MetadataRequest(topics=None)), 9
    )
    (topic,) = response.topics
    assert (topic.name, topic.error_code) == ("t", ErrorCode.NONE)
    assert len(topic.partitions) == PARTITIONS


async def test_a_topic_is_deleted_before_its_turn_in_a_list_of_all(broker: Broker) -> None:
    await broker.admin.topics.create([NewTopic(name="u")])
    response = await answer_while_a_topic_is_deleted(
        broker, lambda context: metadata.handle(context, MetadataRequest(topics=None)), 9, "u"
    )
    assert [topic.name for topic in response.topics] == ["t"]


class Interruptions:
    """Slices of a request between whose steps others change what it describes."""

    def __init__(self, interrupt: Callable[[], object]) -> None:
        self._interrupt = interrupt

    def of(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in list(items):
            yield item
            self._interrupt()


async def test_a_batch_by_topic_id_is_not_appended_to_a_later_topic_of_that_name(
    broker: Broker,
) -> None:
    def replace_topic() -> None:
        if broker.metadata.topics["t"].id == topic_id and logs[1].log_end_offset:
            broker.controller.delete_topics([TopicRef("t")], NOW_MS)
            broker.controller.create_topics([NewTopic(name="t", partition_count=3)], NOW_MS)

    topic_id = broker.metadata.topics["t"].id
    logs = broker.log_manager.of_topic("t")
    data = [
        ProducePartitionData(index=index, records=memoryview(bytearray(batch_of(b"v"))))
        for index in range(3)
    ]
    request = ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        topic_data=[ProduceTopicData(topic_id=topic_id, partition_data=data)],
    )
    context = request_context(broker, 13, NOW_MS, ApiKey.PRODUCE)
    context.slices = Interruptions(replace_topic)
    (answered,) = produce.handle(context, request).responses
    codes = [each.error_code for each in answered.partition_responses]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
    assert broker.log_manager.get("t", 2).log_end_offset == 0


def test_a_group_is_described_in_one_turn() -> None:
    broker = GroupBroker()
    members = broker.clients.stable_group(2)
    context = broker.context(5)

    def leave() -> None:
        while members:
            broker.clients.leave(members.pop())

    context.slices = Interruptions(leave)
    (group,) = describe_groups.handle(context, DescribeGroupsRequest(groups=[GROUP])).groups
    assert group.group_state == "Stable"
    assert len(group.members) == 2


def fetch_of_all(broker: Broker, **fields: Any) -> FetchRequest:
    """A Fetch of all partitions of the topic, which waits."""
    wanted = [
        FetchPartition(
            partition=index,
            fetch_offset=0,
            current_leader_epoch=-1,
            last_fetched_epoch=-1,
            partition_max_bytes=1000,
        )
        for index in range(PARTITIONS)
    ]
    asked = {"max_wait_ms": 60_000, "min_bytes": 1, "isolation_level": 0, **fields}
    topic = FetchTopic(topic_id=broker.metadata.topics["t"].id, partitions=wanted)
    return FetchRequest(**{"topics": [topic], **asked})


def begin_fetch(broker: Broker, request: FetchRequest) -> asyncio.Task[FetchResponse]:
    async def in_slices(slices: Slices) -> FetchResponse:
        context = request_context(broker, 17, NOW_MS, ApiKey.FETCH)
        context.slices = slices
        answer = fetch.handle(context, request)
        return answer if isinstance(answer, FetchResponse) else await answer

    return broker.turns.slices.run(in_slices)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_record_that_comes_after_its_partition_was_read_ends_the_wait(
    broker: Broker,
) -> None:
    answer = begin_fetch(broker, fetch_of_all(broker))
    log = broker.log_manager.get("t", 0)
    while not log.on_append:  # it is watched from the turn on in which it is read
        await turns(1)
    assert not broker.log_manager.get("t", PARTITIONS - 1).on_append
    log.append(batch_of(b"v"), now_ms=NOW_MS)
    response = await asyncio.wait_for(answer, 20)
    assert [one.high_watermark for one in response.responses[0].partitions][:2] == [1, 0]
    logs = broker.log_manager.of_topic("t").values()
    assert not any(one.on_append for one in logs), "nothing is watched any more"


async def test_a_fetch_that_waits_reads_only_the_partitions_that_have_changed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await begin_fetch(broker, fetch_of_all(broker, session_epoch=0, max_wait_ms=0))
    request = fetch_of_all(broker, topics=[], session_id=opened.session_id, session_epoch=1)
    answer = begin_fetch(broker, request)
    while not broker.fetching.waiters.count:
        await turns(1)
    read: list[int] = []
    find_log = fetch.find_log

    def noting(context: RequestContext, key: tuple[str | bytes, int]) -> PartitionLog:
        read.append(key[1])
        return find_log(context, key)

    monkeypatch.setattr(fetch, "find_log", noting)
    for index in (200, 3):
        broker.log_manager.get("t", index).append(batch_of(b"v"), now_ms=NOW_MS)
    response = await asyncio.wait_for(answer, 20)
    assert [one.partition_index for one in response.responses[0].partitions] == [3, 200]
    assert read == [3, 200], "in the order of the session"


async def test_the_client_of_a_fetch_in_slices_goes(broker: Broker) -> None:
    answer = begin_fetch(broker, fetch_of_all(broker))
    while not broker.fetching.waiters.count:
        await turns(1)
    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer
    assert broker.fetching.waiters.count == 0
    assert not any(log.on_append for log in broker.log_manager.of_topic("t").values())


async def test_a_topic_is_deleted_while_its_partitions_are_fetched(broker: Broker) -> None:
    answer = begin_fetch(broker, fetch_of_all(broker, session_epoch=0))
    first = broker.log_manager.get("t", 0)
    while not first.on_append:
        await turns(1)
    broker.controller.delete_topics([TopicRef("t")], NOW_MS)
    first.take_offline("its topic is deleted")  # as the rest of a deletion (TopicLogs)
    first.notify_waiters()
    response = await asyncio.wait_for(answer, 20)
    codes = {one.error_code for one in response.responses[0].partitions}
    # The deletion comes before the reads of the latter.
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}


async def test_one_of_two_requests_of_a_session_at_the_same_time_is_refused(
    broker: Broker,
) -> None:
    opened = await begin_fetch(broker, fetch_of_all(broker, session_epoch=0, max_wait_ms=0))
    session: dict[str, Any] = {"session_id": opened.session_id, "session_epoch": 1}
    topic_id = broker.metadata.topics["t"].id
    left = [ForgottenTopic(topic_id=topic_id, partitions=list(range(1, PARTITIONS)))]
    changes = begin_fetch(broker, fetch_of_all(broker, max_wait_ms=0, **session))
    await turns(20)
    forgets = begin_fetch(
        broker,
        fetch_of_all(broker, topics=[], forgotten_topics_data=left, max_wait_ms=0, **session),
    )
    codes = [(await changes).error_code, (await forgets).error_code]
    assert sorted(codes) == [ErrorCode.NONE, ErrorCode.INVALID_FETCH_SESSION_EPOCH]
    size = PARTITIONS if codes[0] is ErrorCode.NONE else 1
    assert broker.fetching.sessions.size_of(opened.session_id) == size
