"""A member of a share group that sends its requests by hand."""

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Producer

from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgeAcknowledgementBatch,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from odradek.protocol.messages.share_fetch import (
    ShareFetchAcknowledgementBatch,
    ShareFetchForgottenTopic,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.protocol.schema import Message
from tests.conformance.conversation import patiently, response_of
from tests.support.broker_process import BrokerProcess
from tests.support.config_requests import alter_configs_request
from tests.support.topics import create_topic
from tests.support.wire import WireClient

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
# Offsets, both ends included, and a type for all, or one for each.
Acknowledged = tuple[int, int, Sequence[int]]
Ask = Callable[[Message, int], Any]
GROUP_RESOURCE = 32
LIMIT_SECONDS = 60.0
MAX_IN_BATCH = 25  # records; a member is given whole batches, also beyond its max.poll.records
AT_ONCE = {"share.assignment.interval.ms": "0", "share.auto.offset.reset": "earliest"}


def prepare_group(client: WireClient, group: str, topic: str, **settings: str) -> bytes:
    """Have a group begin with the first record, and assign at once. Returns the topic's id."""
    find = FindCoordinatorRequest(coordinator_keys=[group])
    client.ask(find, FindCoordinatorResponse, 4)
    request = alter_configs_request(GROUP_RESOURCE, group, AT_ONCE | settings)
    answer = client.ask(request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    [found] = client.ask(wanted, MetadataResponse, 12).topics
    topic_id: bytes = found.topic_id
    return topic_id


def fill_queue(
    broker: BrokerProcess,
    topic: str,
    group: str,
    *,
    partitions: int,
    records: int,
    **settings: str,
) -> None:
    """Create a topic with records, spread over its partitions, that a group reads from the first.

    `settings` of the group.
    """
    create_topic(broker.bootstrap, topic, partitions)
    with WireClient(broker.port) as client:
        prepare_group(client, group, topic, **settings)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 1,
            "batch.num.messages": MAX_IN_BATCH,
        }
    )
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(LIMIT_SECONDS) == 0


def joined(
    client: WireClient,
    group: str,
    member: str,
    topic: str,
    topic_id: bytes,
    partitions: int = 1,
) -> "ShareReader":
    """A member that has joined and got all partitions of the topic."""

    def ask(request: Message, version: int) -> Any:
        return client.ask(request, response_of(type(request)), version)

    reader = ShareReader(ask, group, member, topic, topic_id)
    reader.join(ask, partitions)
    return reader


class ShareReader:
    """One member, which reads partitions of one topic in a session of its own.

    `ask` sends a request in a version, and returns the answer.
    """

    def __init__(self, ask: Ask, group: str, member: str, topic: str, topic_id: bytes) -> None:
        self.group = group
        self.member = member
        self.epoch = 0
        self._ask = ask
        self.topic = topic
        self.topic_id = topic_id

    def join(self, ask: Ask, partitions: int = 1) -> None:
        """Join the group, and beat until all partitions of the topic are assigned."""
        epoch = 0

        def assigned() -> bool | None:
            nonlocal epoch
            request = ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member,
                member_epoch=epoch,
                subscribed_topic_names=[self.topic],
            )
            answer = ask(request, 1)
            if answer.error_code or answer.assignment is None:
                return None  # the coordinator is not there yet
            epoch = answer.member_epoch
            count = sum(len(one.partitions) for one in answer.assignment.topic_partitions)
            return count == partitions or None

        patiently(assigned)

    def fetch(
        self,
        *partitions: int,
        acknowledge: Sequence[Acknowledged] = (),
        forget: Sequence[int] = (),
        version: int = 2,
        epoch: int | None = None,
        **words: Any,
    ) -> Any:
        """Send a ShareFetch; its session goes on. Acknowledgements are of the first partition."""
        asked = {
            "max_wait_ms": 200,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **words,
        }
        batches = [
            ShareFetchAcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=list(types)
            )
            for first, last, types in acknowledge
        ]
        named = [
            ShareFetchPartition(
                partition_index=one, acknowledgement_batches=[] if number else batches
            )
            for number, one in enumerate(partitions)
        ]
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[ShareFetchTopic(topic_id=self.topic_id, partitions=named)] if named else [],
            forgotten_topics_data=[
                ShareFetchForgottenTopic(topic_id=self.topic_id, partitions=list(forget))
            ]
            if forget
            else [],
            **asked,
        )
        return self._advance(self._ask(request, version), epoch)

    def acknowledge(
        self, *batches: Acknowledged, partition: int = 0, epoch: int | None = None, **words: Any
    ) -> Any:
        """Send a ShareAcknowledge; the session goes on."""
        version = words.pop("version", 2)
        wanted = ShareAcknowledgePartition(
            partition_index=partition,
            acknowledgement_batches=[
                ShareAcknowledgeAcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=list(types)
                )
                for first, last, types in batches
            ],
        )
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[ShareAcknowledgeTopic(topic_id=self.topic_id, partitions=[wanted])],
            **words,
        )
        return self._advance(self._ask(request, version), epoch)

    def leave(self) -> None:
        """End the session."""
        self.fetch(epoch=-1)
        self.epoch = 0

    def _advance(self, answer: Any, epoch: int | None) -> Any:
        if epoch is None and not answer.error_code:
            self.epoch += 1
        return answer
