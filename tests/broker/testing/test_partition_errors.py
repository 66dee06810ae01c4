"""Errors in some partitions of a request, by requests of all kinds."""

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.broker.requests.error_responses import partition_errors, response_class
from odradek.broker.testing import ApiKey, Broker, ErrorCode, Fault, Injected
from odradek.broker.testing.partition_errors import SERVED_WHOLE
from odradek.broker.testing.selected_partitions import Selector, has_topic_error, merged
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.schema import Message
from tests.conformance.conversation import patiently
from tests.conformance.share_reader import ACCEPT, ShareReader, joined, prepare_group
from tests.support.messages import sample, versions_of
from tests.support.wire import WireClient

ERROR = ErrorCode.NOT_LEADER_OR_FOLLOWER
FETCH_BY_NAME, FETCH_BY_ID = 12, 17
LONG_MS = 60_000
GROUP, TRANSACTION = 0, 1


def selector(topic: str | None = None, partition: int | None = None) -> Selector:
    return Selector(topic, partition, lambda topic_id: topic_id.hex())


def with_topic_errors() -> list[tuple[ApiKey, int]]:
    return [
        (key, version)
        for key, handle in sorted(HANDLERS.items())
        for version in versions_of(request_class(handle))
        if has_topic_error(response_class(request_class(handle)), version)
    ]


def test_most_requests_with_topics_have_errors_of_topics() -> None:
    keys = {key for key, _ in with_topic_errors()}
    assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA} < keys
    assert {ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.TXN_OFFSET_COMMIT} < keys
    assert {ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.DELETE_TOPICS} < keys
    assert not keys & {ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.JOIN_GROUP}


@pytest.mark.parametrize(("key", "version"), with_topic_errors())
def test_each_partition_that_a_message_names_gets_the_error(key: ApiKey, version: int) -> None:
    request = request_class(HANDLERS[key])
    named = response_class(request) if key in SERVED_WHOLE else request
    message = sample(named, version)
    chosen, left = selector().split(message)
    assert left is None
    errors = partition_errors(chosen, version, ERROR, "text")
    assert type(errors).decode(errors.encode(version), version) == errors
    assert not getattr(errors, "error_code", 0)
    done = partition_errors(chosen, version, ErrorCode.NONE, "text")
    assert done != errors
    assert merged(done, errors, version) == errors


# -- a broker -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    for topic in ("orders", "payments"):
        shared.create_topic(topic, 2)
    return shared


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient(int(broker.bootstrap_servers.rpartition(":")[2])) as made:
        yield made


def ask(client: WireClient, request: Message, version: int) -> Any:
    return client.ask(request, response_class(type(request)), version)


def fail(broker: Broker, api: ApiKey, *, partition: int | None = 1, **words: Any) -> Injected:
    """Let partition 1 of orders fail once."""
    return broker.inject(Fault(api=api, topic="orders", partition=partition, error=ERROR, **words))


def topic_id(client: WireClient, topic: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    found: bytes = ask(client, request, 12).topics[0].topic_id
    return found


def test_a_produce_by_id(broker: Broker, client: WireClient) -> None:
    fail(broker, ApiKey.PRODUCE)
    topics = [
        ProduceTopicData(
            topic_id=topic_id(client, topic),
            partition_data=[
                ProducePartitionData(index=index, records=build_batch([Record(None, b"v", 1, ())]))
                for index in range(2)
            ],
        )
        for topic in ("payments", "orders")
    ]
    answer = ask(client, ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 13)
    errors = {
        (topic.topic_id, each.index): (each.error_code, each.base_offset)
        for topic in answer.responses
        for each in topic.partition_responses
    }
    payments, orders = (topic.topic_id for topic in topics)
    assert errors == {
        (payments, 0): (0, 0),
        (payments, 1): (0, 0),
        (orders, 0): (0, 0),
        (orders, 1): (ERROR, -1),
    }
    assert [(each.topic, each.partition) for each in broker.records("orders")] == [("orders", 0)]


class Fetcher:
    """Fetches in a session, by name or by id."""

    def __init__(self, client: WireClient, version: int) -> None:
        self._client = client
        self._version = version
        self._id = self._epoch = 0
        self._names = {topic: topic_id(client, topic) for topic in ("orders", "payments")}

    def fetch(
        self, *partitions: tuple[int, int], forget: int | None = None, wait_ms: int = 0
    ) -> dict[int, tuple[int, bool]]:
        """Fetch partitions of orders from offsets on. Returns error, and if there are records."""
        by_id = self._version >= 13
        name = {"topic_id": self._names["orders"]} if by_id else {"topic": "orders"}
        named: Any = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in partitions
        ]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1 if wait_ms else 0,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=[FetchTopic(partitions=named, **name)] if named else [],
            forgotten_topics_data=[]
            if forget is None
            else [ForgottenTopic(partitions=[forget], **name)],
        )
        answer = ask(self._client, request, self._version)
        assert answer.error_code == 0
        self._id, self._epoch = answer.session_id, self._epoch + 1
        return {
            each.partition_index: (each.error_code, bool(each.records))
            for topic in answer.responses
            for each in topic.partitions
        }


@pytest.mark.parametrize("version", [FETCH_BY_NAME, FETCH_BY_ID])
def test_a_fetch_in_a_session(broker: Broker, client: WireClient, version: int) -> None:
    fetcher = Fetcher(client, version)
    assert fetcher.fetch((0, 0), (1, 0)) == {0: (0, False), 1: (0, False)}
    assert fetcher.fetch() == {}
    fault = fail(broker, ApiKey.FETCH)
    assert fetcher.fetch(wait_ms=LONG_MS) == {1: (ERROR, False)}  # it does not wait for records
    assert fetcher.fetch() == {1: (0, False)}  # as after each error
    assert fetcher.fetch() == {}
    for partition in range(2):
        broker.produce("orders", b"v", partition=partition)
    fail(broker, ApiKey.FETCH)
    assert fetcher.fetch(wait_ms=LONG_MS) == {0: (0, True), 1: (ERROR, False)}
    assert fetcher.fetch((0, 1), wait_ms=LONG_MS) == {1: (0, True)}  # nothing is lost
    assert fault.fired() == 1
    late = fail(broker, ApiKey.FETCH)
    assert fetcher.fetch(forget=1) == {}
    assert late.fired() == 0


@pytest.mark.parametrize("version", [FETCH_BY_NAME, FETCH_BY_ID])
def test_the_fetch_that_begins_a_session(broker: Broker, client: WireClient, version: int) -> None:
    fail(broker, ApiKey.FETCH, partition=None)
    fetcher = Fetcher(client, version)
    assert fetcher.fetch((0, 0), wait_ms=LONG_MS) == {0: (ERROR, False)}
    assert fetcher.fetch((1, 0)) == {0: (0, False), 1: (0, False)}


def test_offsets_are_listed_of_the_other_partitions(broker: Broker, client: WireClient) -> None:
    fail(broker, ApiKey.LIST_OFFSETS)
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(2)]
    topics = [ListOffsetsTopic(name=topic, partitions=wanted) for topic in ("orders", "payments")]
    answer = ask(client, ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    assert [
        [(each.partition_index, each.error_code, each.offset) for each in topic.partitions]
        for topic in answer.topics
    ] == [[(0, 0, 0), (1, ERROR, -1)], [(0, 0, 0), (1, 0, 0)]]


def find_coordinator(client: WireClient, key: str, key_type: int) -> None:
    """Wait until there is a coordinator."""
    request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)

    def is_there() -> bool | None:
        return ask(client, request, 4).coordinators[0].error_code == 0 or None

    patiently(is_there)


def commit(client: WireClient) -> dict[tuple[str, int], int]:
    request = OffsetCommitRequest(
        group_id="readers",
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=5, committed_metadata="m"
                    )
                    for index in range(2)
                ],
            )
            for topic in ("orders", "payments")
        ],
    )
    answer = ask(client, request, 8)
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.topics
        for each in topic.partitions
    }


def test_offsets_are_committed_and_read_of_the_other_partitions(
    broker: Broker, client: WireClient
) -> None:
    find_coordinator(client, "readers", GROUP)
    fail(broker, ApiKey.OFFSET_COMMIT)
    errors = commit(client)
    assert {place for place, error in errors.items() if error == ERROR} == {("orders", 1)}
    assert len(errors) == 4
    assert (broker.committed("readers", "orders"), broker.committed("readers", "payments")) == (
        {0: 5},
        {0: 5, 1: 5},
    )
    commit(client)
    fail(broker, ApiKey.OFFSET_FETCH)
    everything = OffsetFetchRequestGroup(group_id="readers", topics=None)
    [group] = ask(client, OffsetFetchRequest(groups=[everything]), 8).groups
    assert group.error_code == 0
    assert {
        (topic.name, each.partition_index): (each.error_code, each.committed_offset)
        for topic in group.topics
        for each in topic.partitions
    } == {
        ("orders", 0): (0, 5),
        ("orders", 1): (ERROR, -1),
        ("payments", 0): (0, 5),
        ("payments", 1): (0, 5),
    }


def test_partitions_are_added_to_a_transaction_without_one(
    broker: Broker, client: WireClient
) -> None:
    fail(broker, ApiKey.ADD_PARTITIONS_TO_TXN)
    find_coordinator(client, "sender", TRANSACTION)
    begin = InitProducerIdRequest(transactional_id="sender", transaction_timeout_ms=LONG_MS)
    producer = ask(client, begin, 4)
    assert producer.error_code == 0
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="sender",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0, 1])],
    )
    [topic] = ask(client, request, 3).results_by_topic_v3_and_below
    assert {
        each.partition_index: each.partition_error_code for each in topic.results_by_partition
    } == {
        0: 0,
        1: ERROR,
    }


def test_records_are_deleted_of_the_other_partitions(broker: Broker, client: WireClient) -> None:
    for partition in range(2):
        broker.produce("orders", b"v", partition=partition)
    fail(broker, ApiKey.DELETE_RECORDS)
    partitions = [DeleteRecordsPartition(partition_index=index, offset=1) for index in range(2)]
    topics = [DeleteRecordsTopic(name="orders", partitions=partitions)]
    [topic] = ask(client, DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2).topics
    assert {each.partition_index: each.error_code for each in topic.partitions} == {0: 0, 1: ERROR}
    assert [each.partition for each in broker.records("orders")] == [1]


def test_epochs_are_looked_up_of_the_other_partitions(broker: Broker, client: WireClient) -> None:
    fail(broker, ApiKey.OFFSET_FOR_LEADER_EPOCH)
    partitions = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in range(2)]
    topics = [OffsetForLeaderTopic(topic="orders", partitions=partitions)]
    [topic] = ask(client, OffsetForLeaderEpochRequest(topics=topics), 4).topics
    assert {each.partition: each.error_code for each in topic.partitions} == {0: 0, 1: ERROR}


@pytest.mark.parametrize("version", [0, 12])
def test_metadata_of_a_topic_or_a_partition(
    broker: Broker, client: WireClient, version: int
) -> None:
    everything = MetadataRequest(topics=None if version else [])
    fail(broker, ApiKey.METADATA)
    topics = {topic.name: topic for topic in ask(client, everything, version).topics}
    assert {name: topic.error_code for name, topic in topics.items()} == {
        "orders": 0,
        "payments": 0,
    }
    errors = {each.partition_index: each.error_code for each in topics["orders"].partitions}
    assert errors == {0: 0, 1: ERROR}
    fail(broker, ApiKey.METADATA, partition=None)
    named = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    [topic] = ask(client, named, version).topics
    assert (topic.error_code, topic.partitions) == (ERROR, [])
    missing = broker.inject(Fault(api=ApiKey.METADATA, topic="missing", error=ERROR))
    ask(client, everything, version)
    assert missing.fired() == 0


def test_a_topic_is_deleted_beside_one_that_fails(broker: Broker, client: WireClient) -> None:
    fail(broker, ApiKey.DELETE_TOPICS, partition=None)
    request = DeleteTopicsRequest(topic_names=["orders", "payments"], timeout_ms=1000)
    answer = ask(client, request, 5)
    assert {each.name: each.error_code for each in answer.responses} == {
        "orders": ERROR,
        "payments": 0,
    }
    assert broker.topics() == {"orders": 2}


def test_two_faults_are_in_two_partitions_of_one_request(
    broker: Broker, client: WireClient
) -> None:
    find_coordinator(client, "readers", GROUP)
    first = fail(broker, ApiKey.OFFSET_COMMIT)
    again = fail(broker, ApiKey.OFFSET_COMMIT)
    other = broker.inject(
        Fault(api=ApiKey.OFFSET_COMMIT, error="INVALID_TOPIC_EXCEPTION", topic="payments")
    )
    whole = broker.inject(Fault(api=ApiKey.OFFSET_COMMIT, error="NOT_COORDINATOR"))
    assert commit(client) == {
        ("orders", 0): 0,
        ("orders", 1): ERROR,
        ("payments", 0): 17,
        ("payments", 1): 17,
    }
    assert [each.fired() for each in (first, again, other, whole)] == [1, 0, 1, 0]


# -- share groups ---------------------------------------------------------------------------------


@pytest.fixture
def reader(broker: Broker, client: WireClient) -> ShareReader:
    """A member that reads both partitions, each of which has a record."""
    found = prepare_group(client, "cooks", "orders")
    for partition in range(2):
        broker.produce("orders", b"v", partition=partition)
    return joined(client, "cooks", "one", "orders", found, 2)


def places(answer: Any) -> dict[int, tuple[int, list[tuple[int, int]]]]:
    """The error of each partition, and first offset and delivery count of what was acquired."""
    assert answer.error_code == 0
    return {
        each.partition_index: (
            each.error_code,
            [(one.first_offset, one.delivery_count) for one in each.acquired_records],
        )
        for topic in answer.responses
        for each in topic.partitions
    }


def test_a_share_fetch_acquires_nothing_of_a_partition_that_fails(
    broker: Broker, reader: ShareReader
) -> None:
    fail(broker, ApiKey.SHARE_FETCH)
    assert places(reader.fetch(0, 1, max_wait_ms=LONG_MS)) == {0: (0, [(0, 1)]), 1: (ERROR, [])}
    assert places(reader.fetch()) == {1: (0, [(0, 1)])}  # the session has it, and reads it now
    fail(broker, ApiKey.SHARE_FETCH)
    assert places(reader.fetch(max_wait_ms=LONG_MS)) == {1: (ERROR, [])}
    assert places(reader.fetch()) == {1: (0, [])}  # as after each error
    fail(broker, ApiKey.SHARE_FETCH)
    for error in (ERROR, 0):
        answer = reader.fetch(1, acknowledge=[(0, 0, [ACCEPT])])
        [[partition]] = [topic.partitions for topic in answer.responses]
        assert (partition.partition_index, partition.acknowledge_error_code) == (1, error)


def test_an_acknowledgement_fails_in_one_partition(broker: Broker, reader: ShareReader) -> None:
    acquired: dict[int, list[tuple[int, int]]] = {}
    first = True
    while len(acquired) < 2:
        answer = places(reader.fetch(0, 1) if first else reader.fetch())
        acquired |= {index: got for index, (_, got) in answer.items() if got}
        first = False
    fail(broker, ApiKey.SHARE_ACKNOWLEDGE)
    for partition, error in ((1, ERROR), (0, 0), (1, 0)):
        answer = reader.acknowledge((0, 0, [ACCEPT]), partition=partition)
        assert answer.error_code == 0
        [topic] = answer.responses
        assert [(e.partition_index, e.error_code) for e in topic.partitions] == [(partition, error)]
