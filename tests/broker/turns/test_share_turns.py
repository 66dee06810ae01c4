"""No acknowledgement keeps the event loop for long, however many records it tells apart."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.share_partitions.changes import AcknowledgeType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from odradek.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from odradek.protocol.primitives import random_uuid, uuid_text
from tests.support.hostile_batches import NONE, records
from tests.support.requests import build
from tests.support.topics import create_topic
from tests.support.turns import TURN_MS, MeasuredBroker, measured_broker
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

GROUP, TOPIC = "g", "t"
GROUP_CONFIG = 32
LOCKS = 2_000  # the default of group.share.partition.max.record.locks
ATTEMPTS = 15  # a turn that was long is measured again
ACCEPT, RELEASE, RENEW = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.RENEW
REJECT = AcknowledgeType.REJECT
QUEUE = "dlq.t"
SETTINGS = {
    "share.auto.offset.reset": "earliest",
    "share.renew.acknowledge.enable": "true",
    "errors.deadletterqueue.topic.name": QUEUE,
    "errors.deadletterqueue.copy.record.enable": "true",
}

Acknowledged = Sequence[tuple[int, int, Sequence[int]]]


class Member:
    """A member with a share session of the topic."""

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._member_id = uuid_text(random_uuid())
        self._epoch = 0
        answer = client.ask(
            build(MetadataRequest, 12, topics=[{"name": TOPIC}]), MetadataResponse, 12
        )
        self._topic_id = answer.topics[0].topic_id
        while client.ask(
            build(
                ShareGroupHeartbeatRequest,
                1,
                group_id=GROUP,
                member_id=self._member_id,
                member_epoch=0,
                subscribed_topic_names=[TOPIC],
            ),
            ShareGroupHeartbeatResponse,
            1,
        ).error_code:
            time.sleep(0.02)

    def fetch(self) -> list[tuple[int, int]]:
        """Acquire as many records as may be in flight."""
        request = build(
            ShareFetchRequest,
            2,
            max_wait_ms=1_000,
            min_bytes=1,
            max_bytes=1 << 24,
            max_records=LOCKS,
            batch_size=LOCKS,
            **self._session([]),
        )
        answer = self._client.ask(request, ShareFetchResponse, 2)
        assert answer.error_code == ErrorCode.NONE
        return [
            (one.first_offset, one.last_offset)
            for topic in answer.responses
            for partition in topic.partitions
            for one in partition.acquired_records
        ]

    def acknowledge(self, acknowledged: Acknowledged, *, renews: bool = False) -> int:
        """Acknowledge records. Returns the error of the partition."""
        fields = self._session(acknowledged)
        request = build(ShareAcknowledgeRequest, 2, is_renew_ack=renews, **fields)
        answer = self._client.ask(request, ShareAcknowledgeResponse, 2)
        assert answer.error_code == ErrorCode.NONE
        return answer.responses[0].partitions[0].error_code

    def _session(self, acknowledged: Acknowledged) -> dict[str, Any]:
        batches = [
            {"first_offset": first, "last_offset": last, "acknowledge_types": list(kinds)}
            for first, last, kinds in acknowledged
        ]
        partition = {"partition_index": 0, "acknowledgement_batches": batches}
        self._epoch += 1
        return {
            "group_id": GROUP,
            "member_id": self._member_id,
            "share_session_epoch": self._epoch - 1,
            "topics": [{"topic_id": self._topic_id, "partitions": [partition]}],
        }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredBroker]:
    with measured_broker(Path(tmp_path_factory.mktemp("shares"))) as started:
        create_topic(started.bootstrap, TOPIC)
        create_topic(started.bootstrap, QUEUE, 1, {"errors.deadletterqueue.group.enable": "true"})
        yield started


@pytest.fixture
def member(broker: MeasuredBroker) -> Iterator[Member]:
    """A member that reads the topic from its first record on. Its locks end with it."""
    with WireClient(broker.port) as client:
        client.ask(FindCoordinatorRequest(key=GROUP, key_type=0), FindCoordinatorResponse, 3)
        configs = [
            {"name": name, "config_operation": 0, "value": value}
            for name, value in SETTINGS.items()
        ]
        resource = {"resource_type": GROUP_CONFIG, "resource_name": GROUP, "configs": configs}
        altered = build(IncrementalAlterConfigsRequest, 1, resources=[resource])
        client.ask(altered, IncrementalAlterConfigsResponse, 1)
        partition = {"index": 0, "records": records(5 * LOCKS * 7, NONE)}
        topic = {"name": TOPIC, "partition_data": [partition]}
        produced = build(ProduceRequest, 9, acks=-1, timeout_ms=30_000, topic_data=[topic])
        client.ask(produced, ProduceResponse, 9)
        yield Member(client)


def longest_turn_ms(broker: MeasuredBroker, work: Callable[[], object]) -> float:
    """The longest turn during the work, which can be repeated."""
    longest = float("inf")
    for _ in range(ATTEMPTS):
        broker.turns()
        work()
        longest = min(longest, broker.turns().longest_ms)
        if longest <= TURN_MS:
            break
    return longest


def test_acknowledgements_keep_nobody_waiting(broker: MeasuredBroker, member: Member) -> None:
    acquired = member.fetch()
    while not acquired:
        acquired = member.fetch()
    [(first, last)] = acquired
    assert last - first + 1 == LOCKS

    def renew_one_often() -> None:
        assert member.acknowledge([(first, first, [RENEW])] * 49_000, renews=True) == 0

    def renew_each() -> None:
        each = [(offset, offset, [RENEW]) for offset in range(first, last + 1)]
        assert member.acknowledge(each, renews=True) == 0

    def settle_each() -> None:
        """The first is released, so that none of the others leaves the share-partition."""
        kinds = [RELEASE, *[ACCEPT, RELEASE] * (LOCKS // 2)][:LOCKS]
        member.acknowledge([(first, last, kinds)])

    assert longest_turn_ms(broker, renew_one_often) <= TURN_MS
    assert longest_turn_ms(broker, renew_each) <= TURN_MS
    broker.turns()
    settle_each()
    assert broker.turns().longest_ms <= 2 * TURN_MS  # once, so the turn may compile a codec
    broker.turns()
    assert member.fetch()
    assert broker.turns().longest_ms <= 2 * TURN_MS


def test_records_for_a_dead_letter_queue_keep_nobody_waiting(
    broker: MeasuredBroker, member: Member
) -> None:
    """Each acquisition is rejected as a whole, or every other record of it."""

    def reject(kinds: Sequence[int]) -> None:
        acquired = member.fetch()
        while not acquired:
            acquired = member.fetch()
        before, rejected = queued(broker), 0
        acknowledged = []
        for first, last in acquired:
            count = last - first + 1
            types = (list(kinds) * count)[:count]
            rejected += types.count(REJECT)
            acknowledged.append((first, last, [REJECT] if set(types) == {REJECT} else types))
        assert member.acknowledge(acknowledged) == 0
        wait_until(lambda: queued(broker) == before + rejected)

    assert longest_turn_ms(broker, lambda: reject([REJECT])) <= TURN_MS
    assert longest_turn_ms(broker, lambda: reject([REJECT, ACCEPT])) <= TURN_MS


def queued(broker: MeasuredBroker) -> int:
    """The number of records in the queue."""
    wanted = {"name": QUEUE, "partitions": [{"partition_index": 0, "timestamp": -1}]}
    request = build(ListOffsetsRequest, 5, replica_id=-1, isolation_level=0, topics=[wanted])
    with WireClient(broker.port) as client:
        answer = client.ask(request, ListOffsetsResponse, 5)
    offset: int = answer.topics[0].partitions[0].offset
    return offset
