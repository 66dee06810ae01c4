"""Requests about all partitions of a large topic do not keep the event loop for long.

test_long_requests.py sends long requests to an empty broker. Here the partitions exist: fetch
sessions have them, consumers wait for them, and members of share groups acquire their records.
"""

import base64
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStatePartition,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateTopic,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgeAcknowledgementBatch,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopic,
)
from odradek.protocol.messages.share_fetch import (
    ShareFetchAcquiredRecords,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
)
from odradek.protocol.primitives import ZERO_UUID
from tests.support.lengths import by_length
from tests.support.log_box import batch_of
from tests.support.topics import create_topic
from tests.support.turns import TURN_MS, MeasuredBroker, measured_broker
from tests.support.wire import WireClient

# A test with a long turn is run again: a host that lacks memory stops its guests at random.
pytestmark = [pytest.mark.slow, pytest.mark.flaky(reruns=9, only_rerun="longest_ms")]

PARTITIONS = by_length(2_500, 5_000)
ALL = range(PARTITIONS)
# The first request of a kind compiles its codec, so it is not measured.
FEW = range(3)
LONG_MS = 30_000
# Garbage is collected at each measurement: cycles would hold all partitions of a request.
GARBAGE = 500
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
TOPIC = "many"


class Rig:
    """A broker with a topic of many partitions, and a client."""

    def __init__(self, broker: MeasuredBroker) -> None:
        self.broker = broker
        self._clients: list[WireClient] = []
        self.client = self.connect()
        topics = [MetadataRequestTopic(topic_id=ZERO_UUID, name=TOPIC)]
        listed = self.client.ask(MetadataRequest(topics=topics), MetadataResponse, 12)
        self.topic_id = listed.topics[0].topic_id

    def connect(self) -> WireClient:
        client = WireClient(self.broker.port, timeout_s=60)
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def begin(self) -> None:
        """Measure from now on."""
        self.broker.turns()

    def check(self, what: str) -> None:
        """Fail if a turn was long."""
        turns = self.broker.turns()
        assert turns.longest_ms <= TURN_MS, what
        assert turns.garbage < GARBAGE, what

    def produce(self, partitions: Iterable[int], batch: bytes) -> None:
        data = [ProducePartitionData(index=index, records=batch) for index in partitions]
        topic = ProduceTopicData(name=TOPIC, partition_data=data)
        request = ProduceRequest(acks=-1, timeout_ms=LONG_MS, topic_data=[topic])
        answer = self.client.ask(request, ProduceResponse, 9)
        assert {one.error_code for one in answer.responses[0].partition_responses} == {0}

    def fetch_request(
        self,
        partitions: Iterable[int] = (),
        *,
        offset: int = 0,
        session: tuple[int, int] = (0, -1),
        wait_ms: int = 0,
        forgotten: Iterable[int] = (),
    ) -> FetchRequest:
        wanted = [
            FetchPartition(
                partition=index,
                fetch_offset=offset,
                current_leader_epoch=-1,
                last_fetched_epoch=-1,
                partition_max_bytes=1 << 26,
            )
            for index in partitions
        ]
        left = list(forgotten)
        session_id, epoch = session
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 26,
            isolation_level=0,
            session_id=session_id,
            session_epoch=epoch,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=wanted)] if wanted else [],
            forgotten_topics_data=(
                [ForgottenTopic(topic_id=self.topic_id, partitions=left)] if left else []
            ),
        )

    def fetch(self, client: WireClient, request: FetchRequest) -> FetchResponse:
        answer = client.ask(request, FetchResponse, 17)
        assert answer.error_code == 0
        return answer


def count(answer: FetchResponse) -> int:
    return sum(len(topic.partitions) for topic in answer.responses)


@pytest.fixture
def rig(scratch: Path) -> Iterator[Rig]:
    with measured_broker(scratch) as broker:
        create_topic(broker.bootstrap, TOPIC, PARTITIONS)
        rig = Rig(broker)
        rig.fetch(rig.client, rig.fetch_request(FEW))
        yield rig
        rig.close()


def test_a_consumer_fetches_all_partitions(rig: Rig) -> None:
    client = rig.connect()
    rig.begin()
    assert count(rig.fetch(client, rig.fetch_request(ALL, wait_ms=1))) == PARTITIONS
    rig.check("nothing in them, without a session")
    answer = rig.fetch(client, rig.fetch_request(ALL, session=(0, 0)))
    assert count(answer) == PARTITIONS
    rig.check("a new session")
    session_id, epoch = answer.session_id, 1

    for _ in range(2):
        waits = rig.fetch_request(session=(session_id, epoch), wait_ms=LONG_MS)
        client.send(client.frame_of(waits, 17))
        time.sleep(0.3)
        rig.check("a wait begins")
        rig.produce([7], batch_of(b"v"))
        assert count(client.read_answer(FetchResponse, 17)) == 1
        rig.check("a wait ends")
        epoch += 1

    for start in range(0, PARTITIONS, 500):
        rig.produce(range(start, start + 500), batch_of(b"v"))
    rig.begin()
    answer = rig.fetch(client, rig.fetch_request(session=(session_id, epoch)))
    assert count(answer) == PARTITIONS
    rig.check("a record in each")
    request = rig.fetch_request(ALL, offset=1, session=(session_id, epoch + 1))
    assert count(rig.fetch(client, request)) == 1
    rig.check("all are changed")
    half = range(PARTITIONS // 2)
    request = rig.fetch_request(session=(session_id, epoch + 2), forgotten=half)
    rig.fetch(client, request)
    rig.check("half of them are forgotten")
    request = rig.fetch_request(half, offset=1, session=(session_id, epoch + 3))
    assert count(rig.fetch(client, request)) == len(half)
    rig.check("half of them are added")

    waits = rig.fetch_request([7], offset=3, session=(session_id, epoch + 4), wait_ms=LONG_MS)
    client.send(client.frame_of(waits, 17))
    time.sleep(0.3)
    client.close()
    time.sleep(0.2)
    rig.check("the client of a wait closes its connection")


def test_offsets_of_all_partitions_are_listed(rig: Rig) -> None:
    listed = [
        ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=-1)
        for index in ALL
    ]
    ends = [
        OffsetForLeaderPartition(partition=index, current_leader_epoch=-1, leader_epoch=0)
        for index in ALL
    ]
    rig.begin()
    for _ in range(2):
        rig.client.ask(
            ListOffsetsRequest(
                replica_id=-1,
                isolation_level=0,
                topics=[ListOffsetsTopic(name=TOPIC, partitions=listed)],
            ),
            ListOffsetsResponse,
            8,
        )
        rig.client.ask(
            OffsetForLeaderEpochRequest(
                replica_id=-1, topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=ends)]
            ),
            OffsetForLeaderEpochResponse,
            4,
        )
    rig.check("ListOffsets or OffsetForLeaderEpoch")


class Member:
    """A member of a share group."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.client = rig.connect()
        self._epoch = 0

    def fetch(
        self, partitions: Iterable[int] = (), *, epoch: int | None = None
    ) -> dict[int, Sequence[ShareFetchAcquiredRecords]]:
        """What is acquired, by partition."""
        self.send(partitions, epoch=epoch)
        return self.answer()

    def send(
        self, partitions: Iterable[int] = (), *, wait_ms: int = 0, epoch: int | None = None
    ) -> None:
        wanted = [
            ShareFetchPartition(partition_index=index, acknowledgement_batches=[])
            for index in partitions
        ]
        request = ShareFetchRequest(
            group_id="g",
            member_id=MEMBER,
            share_session_epoch=self._epoch if epoch is None else epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 26,
            max_records=100_000,
            batch_size=500,
            share_acquire_mode=0,
            is_renew_ack=False,
            topics=(
                [ShareFetchTopic(topic_id=self._rig.topic_id, partitions=wanted)] if wanted else []
            ),
            forgotten_topics_data=[],
        )
        self._epoch += 1
        self.client.send(self.client.frame_of(request, 2))

    def answer(self) -> dict[int, Sequence[ShareFetchAcquiredRecords]]:
        answer = self.client.read_answer(ShareFetchResponse, 2)
        assert answer.error_code == 0
        found = [one for topic in answer.responses for one in topic.partitions]
        assert {one.error_code for one in found} <= {0}
        return {one.partition_index: one.acquired_records for one in found if one.acquired_records}

    def acknowledge(self, acquired: Mapping[int, Sequence[ShareFetchAcquiredRecords]]) -> None:
        """Acknowledge each record by itself."""
        partitions = [
            ShareAcknowledgePartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareAcknowledgeAcknowledgementBatch(
                        first_offset=offset, last_offset=offset, acknowledge_types=[1 + offset % 2]
                    )
                    for one in ranges
                    for offset in range(one.first_offset, one.last_offset + 1)
                ],
            )
            for index, ranges in acquired.items()
        ]
        topic = ShareAcknowledgeTopic(topic_id=self._rig.topic_id, partitions=partitions)
        request = ShareAcknowledgeRequest(
            group_id="g",
            member_id=MEMBER,
            share_session_epoch=self._epoch,
            is_renew_ack=False,
            topics=[topic],
        )
        self._epoch += 1
        answer = self.client.ask(request, ShareAcknowledgeResponse, 2)
        assert answer.error_code == 0
        results = [one.error_code for one in answer.responses[0].partitions]
        assert results == [0] * len(acquired)


def initialize(rig: Rig) -> None:
    """Begin a share group at the first record of each partition."""
    key = f"g:{base64.urlsafe_b64encode(rig.topic_id).decode().rstrip('=')}:0"
    found = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    states = InitializeShareGroupStateRequest(
        group_id="g",
        topics=[
            InitializeShareGroupStateTopic(
                topic_id=rig.topic_id,
                partitions=[
                    InitializeShareGroupStatePartition(
                        partition=index, state_epoch=0, start_offset=0
                    )
                    for index in ALL
                ],
            )
        ],
    )

    def is_initialized() -> bool:
        rig.client.ask(found, FindCoordinatorResponse, 6)
        answer = rig.client.ask(states, InitializeShareGroupStateResponse, 0)
        return {one.error_code for one in answer.results[0].partitions} == {0}

    deadline = time.monotonic() + 20
    while not is_initialized():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_share_consumer_reads_all_partitions(rig: Rig) -> None:
    for start in range(0, PARTITIONS, 500):
        rig.produce(range(start, start + 500), batch_of(b"v"))
    initialize(rig)
    member = Member(rig)
    rig.begin()
    acquired = member.fetch(ALL)
    rig.check("the share-partitions are opened")
    acquired |= member.fetch()  # the first in slices
    rig.begin()
    while len(acquired) < PARTITIONS:
        acquired.update(member.fetch())
        rig.check("records are acquired")
    member.acknowledge(dict([acquired.popitem()]))
    rig.begin()
    member.acknowledge(acquired)
    rig.check("records of many partitions are acknowledged")

    member.send(wait_ms=LONG_MS)
    time.sleep(0.5)
    rig.check("a wait begins")
    rig.produce([9], batch_of(*[b"v"] * 200))
    acquired = member.answer()
    rig.check("a wait ends")
    member.acknowledge(acquired)
    rig.check("many records of a partition are acknowledged")

    for start in range(0, PARTITIONS, 500):
        rig.produce(range(start, start + 500), batch_of(b"v"))
    rig.begin()
    while member.fetch():
        pass
    member.client.close()
    time.sleep(1.0)
    rig.check("a connection with a large session is closed")

    member = Member(rig)
    assert member.fetch(ALL)
    member.fetch(epoch=-1)
    time.sleep(1.0)
    rig.check("a large session ends")


def test_a_large_answer_is_sent_in_several_turns(rig: Rig) -> None:
    index = PARTITIONS - 1
    for _ in range(50):
        rig.produce([index], batch_of(b"v" * 900_000))
    room = memoryview(bytearray(1 << 26))
    rig.begin()
    for _ in range(3):
        rig.client.send(rig.client.frame_of(rig.fetch_request([index]), 17))
        assert len(rig.client.read_frame(room)) > 40_000_000
    rig.check("a large answer")
