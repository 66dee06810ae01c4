"""What a request in slices has looked up may be gone or changed when its next slice begins."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import describe_groups, describe_topic_partitions, metadata
from odradek.broker.requests.context import RequestContext
from odradek.broker.turns import slices as slices_module
from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest
from tests.broker.test_group_handlers import Broker as GroupBroker
from tests.support.contexts import broker_with_topic, request_context
from tests.support.groups import GROUP
from tests.support.log_box import NOW_MS

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

    answer = broker.slices.run(in_slices)
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
    await broker.topic_admin.create([NewTopic(name="u")])
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
