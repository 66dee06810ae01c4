"""Requests of clients that exceed a quota: their throttle times, and what else the answers say."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.producing.single_batch import SingleBatches
from odradek.broker.requests import dispatch
from odradek.broker.requests.answer import Answer, Framed
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.security.principal import ANONYMOUS
from odradek.broker.security.session import Session
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.schema import Message
from odradek.storage.files import Files
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop, produce_to, until
from tests.support.log_box import batch_of
from tests.support.quotas import ALTER_VERSION, quota_request
from tests.support.stored_batches import FETCH_VERSION, fetch_request, fetched
from tests.support.wire import WireClient

ANY_CLIENT: dict[str, str | None] = {"client-id": None}
WIRE: dict[str, str | None] = {"client-id": "wire"}
KIB = 1024
BATCH = batch_of(bytes(10 * KIB))
PRODUCE_VERSION, TOPICS_VERSION, PARTITIONS_VERSION, DELETE_VERSION = 9, 7, 3, 5
COMMIT_VERSION = 8
ENCODING_S = 1000.0
WINDOW_S = 10


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[BrokerInLoop]:
    """A broker with a topic. The clock of its quotas stands still."""
    async with broker_in_loop([tmp_path], Files()) as broker:
        await broker.broker.admin.topics.create([NewTopic(name="t")])
        now_ms = broker.broker.clock.timer_ms()
        broker.broker.quotas.timer_ms = lambda: now_ms
        yield broker


async def alter(
    served: BrokerInLoop, entity: dict[str, str | None], **quotas: float | None
) -> None:
    request = quota_request(entity, **quotas)
    answer = await served.ask(request, AlterClientQuotasResponse, ALTER_VERSION)
    assert answer.entries[0].error_code == ErrorCode.NONE, answer


async def produced(served: BrokerInLoop) -> int:
    """Append a batch from a new connection; the throttle time."""
    answer = await served.ask(produce_to("t", BATCH), ProduceResponse, PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return answer.throttle_time_ms


async def test_produce_above_the_quota_is_stored_and_tells_the_throttle_time(
    served: BrokerInLoop,
) -> None:
    await alter(served, WIRE, producer_byte_rate=KIB)
    # 10 windows of a second hold 10 KiB; a request is a little more than that.
    assert 0 < await produced(served) < 1000
    assert 10_000 < await produced(served) < 11_000
    assert served.broker.log_manager.get("t", 0).log_end_offset == 2


async def test_a_request_of_the_process_itself_is_charged_and_waits_for_the_throttle_time(
    served: BrokerInLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = served.broker
    session = Session(broker.config.open_listeners[0], ("127.0.0.1", 0))
    session.principal = ANONYMOUS
    dispatcher = Dispatcher(broker, HANDLERS, SingleBatches())
    data = ProducePartitionData(index=0, records=BATCH)
    topic = ProduceTopicData(topic_id=broker.metadata.topics["t"].id, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])

    def produce() -> asyncio.Task[Message]:
        return dispatcher.ask(session, "wire", request, len(BATCH))

    await alter(served, WIRE, producer_byte_rate=1)
    monkeypatch.setattr(dispatch, "_LONGEST_WAIT_MS", 1)
    answer = await produce()
    assert isinstance(answer, ProduceResponse)
    assert answer.throttle_time_ms > 1_000_000
    assert await produced(served) > answer.throttle_time_ms, "both have the same quota"
    monkeypatch.setattr(dispatch, "_LONGEST_WAIT_MS", 3_600_000)
    waiting = produce()
    await until(lambda: broker.log_manager.get("t", 0).log_end_offset == 3)
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    waiting.cancel()


async def test_time_passes_and_the_client_is_within_its_quota_again(served: BrokerInLoop) -> None:
    await alter(served, WIRE, producer_byte_rate=2 * KIB)
    assert await produced(served) == 0
    assert await produced(served) > 0
    later_ms = served.broker.quotas.timer_ms() + 20_000
    served.broker.quotas.timer_ms = lambda: later_ms
    assert await produced(served) == 0


async def test_only_clients_with_that_quota_are_throttled(served: BrokerInLoop) -> None:
    await alter(served, {"client-id": "another"}, producer_byte_rate=1)
    assert await produced(served) == 0
    await alter(served, {"user": "ANONYMOUS", "client-id": None}, producer_byte_rate=1)
    assert await produced(served) > 0


async def test_a_removed_quota_is_no_longer_in_force(served: BrokerInLoop) -> None:
    await alter(served, WIRE, producer_byte_rate=1)
    assert served.broker.quotas.is_active
    await alter(served, WIRE, producer_byte_rate=None)
    assert not served.broker.quotas.is_active
    assert await produced(served) == 0


async def test_the_connection_waits_even_if_produce_has_no_answer(served: BrokerInLoop) -> None:
    await alter(served, WIRE, producer_byte_rate=100 * KIB)
    # 1 MiB is what the quota allows; a quarter of a second more than that must be waited for.
    batch = batch_of(bytes(1000 * KIB))
    await served.produce("t", batch)
    loop = asyncio.get_running_loop()
    began = loop.time()
    client = await served.send(produce_to("t", batch_of(bytes(25 * KIB)), acks=0), PRODUCE_VERSION)
    client.send(client.frame_of(ApiVersionsRequest(), 2))
    answer = await served.answer(client, ApiVersionsResponse, 2)
    assert answer.throttle_time_ms == 0
    assert 0.2 < loop.time() - began < 2


async def test_a_throttled_fetch_is_empty_and_its_bytes_are_not_counted(
    served: BrokerInLoop,
) -> None:
    await produced(served)
    await alter(served, WIRE, consumer_byte_rate=1.5 * KIB)
    request = fetch_request("t", 0, 0, 1 << 20)
    first = await served.ask(request, FetchResponse, FETCH_VERSION)
    assert first.throttle_time_ms == 0
    assert len(fetched(first)) == len(BATCH)
    throttled = await served.ask(request, FetchResponse, FETCH_VERSION)
    again = await served.ask(request, FetchResponse, FETCH_VERSION)
    assert throttled.responses == again.responses == []
    assert throttled.throttle_time_ms == again.throttle_time_ms > 0


async def test_a_throttled_fetch_leaves_its_session_as_it_was(served: BrokerInLoop) -> None:
    await produced(served)
    await alter(served, WIRE, consumer_byte_rate=20 * KIB)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[wanted])]

    def request(session_id: int, epoch: int, *named: FetchTopic) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=[*named]
        )

    async def ask(*of: Any) -> FetchResponse:
        return await served.ask(request(*of), FetchResponse, FETCH_VERSION)

    first = await ask(0, 0, *topics)
    assert first.session_id
    await alter(served, WIRE, consumer_byte_rate=1)
    throttled = await ask(first.session_id, 1)
    assert (throttled.error_code, throttled.session_id) == (0, first.session_id)
    assert throttled.throttle_time_ms > 0
    await alter(served, WIRE, consumer_byte_rate=None)
    last = await ask(first.session_id, 2)
    assert len(fetched(last)) == len(BATCH)


async def test_partitions_that_a_session_leaves_out_are_not_counted(served: BrokerInLoop) -> None:
    partitions = range(40)
    await served.broker.admin.topics.create([NewTopic(name="many", partition_count=40)])
    await served.produce("many", batch_of(b"v"), partitions)
    wanted = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=KIB)
        for index in partitions
    ]

    async def ask(session_id: int, epoch: int, *topics: FetchTopic) -> FetchResponse:
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,  # one batch, and nothing of the other partitions
            session_id=session_id,
            session_epoch=epoch,
            topics=[*topics],
        )
        return await served.ask(request, FetchResponse, FETCH_VERSION)

    first = await ask(0, 0, FetchTopic(topic="many", partitions=wanted))
    assert len(first.responses[0].partitions) == len(partitions)
    await alter(served, WIRE, consumer_byte_rate=50)  # ten seconds allow 500 bytes
    second = await ask(first.session_id, 1)
    assert second.throttle_time_ms == 0
    assert [each.partition_index for each in second.responses[0].partitions] == [0]


async def test_a_fetch_asks_for_no_more_than_the_quota_can_ever_allow(
    served: BrokerInLoop,
) -> None:
    for _ in range(10):
        await produced(served)
    await alter(served, WIRE, consumer_byte_rate=3 * KIB)
    request = fetch_request("t", 0, 0, 1 << 20)
    answer = await served.ask(request, FetchResponse, FETCH_VERSION)
    assert answer.throttle_time_ms == 0
    assert len(fetched(answer)) == 2 * len(BATCH)


async def test_followers_have_no_quota_and_read_nothing(served: BrokerInLoop) -> None:
    await produced(served)
    await alter(served, WIRE, consumer_byte_rate=1)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=7,
        max_wait_ms=60_000,
        min_bytes=1,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )
    answer = await served.ask(request, FetchResponse, FETCH_VERSION)
    assert answer.throttle_time_ms == 0
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not partition.records


async def test_a_fetch_that_had_to_wait_is_throttled_when_it_is_answered(
    served: BrokerInLoop,
) -> None:
    await alter(served, {"client-id": None}, consumer_byte_rate=1)
    waiting = await served.send(
        fetch_request("t", 0, 0, 1 << 20, max_wait_ms=20_000), FETCH_VERSION
    )
    await produced(served)
    answer = await served.answer(waiting, FetchResponse, FETCH_VERSION)
    assert answer.throttle_time_ms > 0
    assert answer.responses == []


async def test_a_metered_request_that_waits_ends_with_its_client(served: BrokerInLoop) -> None:
    await alter(served, WIRE, request_percentage=100)
    request = fetch_request("t", 0, 0, 1 << 20, max_wait_ms=20_000)
    waiting = await served.send(request, FETCH_VERSION)
    waiters = served.broker.fetching.waiters
    await until(lambda: waiters.count == 1)
    waiting.close()
    await until(lambda: waiters.count == 0)


@pytest.mark.parametrize(
    ("request_", "response", "version"),
    [
        (ApiVersionsRequest(), ApiVersionsResponse, 2),
        (MetadataRequest(topics=None), MetadataResponse, 12),
        (DeleteTopicsRequest(topic_names=["none"], timeout_ms=1000), DeleteTopicsResponse, 5),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_every_request_takes_time_and_may_exceed_the_request_quota(
    served: BrokerInLoop, request_: Message, response: Any, version: int
) -> None:
    await alter(served, WIRE, request_percentage=1e-6)
    answer = await served.ask(request_, response, version)
    assert answer.throttle_time_ms == 1000  # a window: Kafka throttles no longer than that


@pytest.mark.parametrize("waits_for", ["disk", "records"])
async def test_what_others_do_before_an_answer_is_encoded_is_not_charged(
    waits_for: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0  # of a clock that goes on while others work, and while an answer is encoded

    async def others() -> None:
        nonlocal now_s
        while True:
            now_s += 1
            await asyncio.sleep(0)

    def encoded(answer: Answer) -> Framed:
        nonlocal now_s
        now_s += ENCODING_S
        return encode(answer)

    encode = Answer.encoded
    monkeypatch.setattr(Answer, "encoded", encoded)
    settings = {"log_flush_interval_messages": "1", "offsets_topic_num_partitions": "1"}
    async with broker_in_loop([tmp_path], Files(), **settings) as served:
        topics, quotas = served.broker.admin.topics, served.broker.quotas
        await topics.create([NewTopic(name="t")])
        await topics.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
        await alter(served, WIRE, request_percentage=1e9)
        now_ms = quotas.timer_ms() + 60_000  # what was charged before is forgotten
        quotas.timer_ms, quotas.seconds = lambda: now_ms, lambda: now_s
        working = asyncio.ensure_future(others())
        if waits_for == "disk":
            assert await committed(served) == ErrorCode.NONE
        else:
            fetch = fetch_request("t", 0, 0, 1 << 20, max_wait_ms=20_000)
            client = await served.send(fetch, FETCH_VERSION)
            await until(lambda: served.broker.fetching.waiters.count)
            await served.broker.own_appends.append("t", 0, bytearray(BATCH))
            assert fetched(await served.answer(client, FetchResponse, FETCH_VERSION))
        working.cancel()
        per_cent = sum(used for _, used in quotas.request.measured(lambda: now_ms))
        assert per_cent / 100 * WINDOW_S == ENCODING_S


async def committed(served: BrokerInLoop) -> int:
    """Commit an offset; the error."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata=None
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = OffsetCommitRequest(group_id="g", topics=[topic])
    answer = await served.ask(request, OffsetCommitResponse, COMMIT_VERSION)
    return answer.topics[0].partitions[0].error_code


def new_topic(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[topic])


async def create(
    served: BrokerInLoop, name: str, partitions: int, version: int = TOPICS_VERSION
) -> tuple[int, int]:
    """Create a topic; the error and the throttle time."""
    request = new_topic(name, partitions)
    answer = await served.ask(request, CreateTopicsResponse, version)
    return answer.topics[0].error_code, answer.throttle_time_ms


async def test_topics_are_refused_while_the_quota_on_changes_is_exceeded(
    served: BrokerInLoop,
) -> None:
    await alter(served, WIRE, controller_mutation_rate=1)
    # 11 permits: the operation that exceeds them is allowed.
    assert await create(served, "a", 12) == (ErrorCode.NONE, 0)
    assert await create(served, "b", 1) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1000)
    assert "b" not in served.broker.metadata.topics
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="a", count=13, assignments=None)],
        timeout_ms=1000,
        validate_only=False,
    )
    answer = await served.ask(more, CreatePartitionsResponse, PARTITIONS_VERSION)
    assert answer.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert answer.results[0].error_message
    delete = DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000)
    deleted = await served.ask(delete, DeleteTopicsResponse, DELETE_VERSION)
    assert deleted.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert deleted.throttle_time_ms == 1000
    assert "a" in served.broker.metadata.topics


async def test_an_older_client_may_go_on_and_is_throttled(served: BrokerInLoop) -> None:
    await alter(served, WIRE, controller_mutation_rate=1)
    assert await create(served, "a", 12, version=5) == (ErrorCode.NONE, 1000)
    assert await create(served, "b", 1, version=5) == (ErrorCode.NONE, 2000)


async def test_topics_are_not_created_automatically_beyond_the_quota(served: BrokerInLoop) -> None:
    await alter(served, WIRE, controller_mutation_rate=1)
    await create(served, "a", 12)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="b")])
    answer = await served.ask(request, MetadataResponse, 12)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "b" not in served.broker.metadata.topics


async def test_quotas_are_in_force_after_a_restart(tmp_path: Path) -> None:
    async with broker_in_loop([tmp_path], Files()) as broker:
        await broker.broker.admin.topics.create([NewTopic(name="t")])
        await alter(broker, WIRE, producer_byte_rate=1)
    async with broker_in_loop([tmp_path], Files()) as broker:
        assert await produced(broker) > 0


async def test_a_broker_stops_without_waiting_for_throttled_clients(tmp_path: Path) -> None:
    async with broker_in_loop([tmp_path], Files()) as broker:
        await broker.broker.admin.topics.create([NewTopic(name="t")])
        await alter(broker, WIRE, producer_byte_rate=1)
        assert await produced(broker) > 600_000
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 5


async def test_a_throttled_client_that_disconnects_is_noticed(served: BrokerInLoop) -> None:
    await alter(served, WIRE, producer_byte_rate=1)
    client = await asyncio.to_thread(WireClient, served.port)
    request = produce_to("t", BATCH)
    answer = await asyncio.to_thread(client.ask, request, ProduceResponse, PRODUCE_VERSION)
    assert answer.throttle_time_ms > 60_000
    connections = served._running._server.connections
    [connection] = [each for each in connections if each.session.peer_port == client.local_port]
    client.close()
    await until(lambda: connection not in connections)
