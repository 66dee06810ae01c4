"""What administrators and readers say about transactions: see producer_steps.py."""

from dataclasses import dataclass
from typing import Any

from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersTopic,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import Message
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.conformance.random_groups.steps import HEARD, OWN, Epoch, Step
from tests.conformance.random_transactions.participants import Place
from tests.conformance.random_transactions.producer_steps import by_topic, said_producer

FETCH_IDS_SINCE, KEYS_SINCE = 13, 4
ISOLATED_SINCE = 2
OFFSETS = "offsets"  # among places: the topic of committed offsets
TRANSACTION_KEYS = 1
WAIT_MS = 5_000
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WriteMarkers(Step):
    """A WriteTxnMarkers of one marker, about a producer."""

    whose: str = "p1"
    id: str = OWN
    epoch: Epoch = HEARD
    commit: bool = False
    places: tuple[Place, ...] = (("a", 0),)
    coordinator_epoch: int = 0
    transaction_version: int = 0
    version: int = 1

    def request(self, participants: Any) -> tuple[Message, int]:
        producer_id, epoch = said_producer(participants, self.whose, self.id, self.epoch)
        marker = WriteTxnMarkersMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=self.commit,
            topics=[
                WriteTxnMarkersTopic(
                    name=CONSUMER_OFFSETS_TOPIC if topic == OFFSETS else participants.full(topic),
                    partition_indexes=indexes,
                )
                for topic, indexes in by_topic(self.places)
            ],
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=self.transaction_version,
        )
        return WriteTxnMarkersRequest(markers=[marker]), self.version


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DescribeTransactions(Step):
    """A DescribeTransactions."""

    ids: tuple[str, ...] = ("x",)

    def request(self, participants: Any) -> tuple[Message, int]:
        names = [participants.full(name) for name in self.ids]
        return DescribeTransactionsRequest(transactional_ids=names), 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListTransactions(Step):
    """A ListTransactions; `of` are producers, by whose ids is filtered."""

    states: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    duration_ms: int = -1
    pattern: str | None = None
    version: int = 2

    def request(self, participants: Any) -> tuple[Message, int]:
        pattern = self.pattern and self.pattern.replace("TAG", participants.tag)
        request = ListTransactionsRequest(
            state_filters=list(self.states),
            producer_id_filters=[
                said_producer(participants, name, OWN, HEARD)[0] for name in self.of
            ],
            duration_filter=self.duration_ms if self.version >= 1 else -1,
            transactional_id_pattern=pattern if self.version >= 2 else None,
        )
        return request, self.version


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DescribeProducers(Step):
    """A DescribeProducers."""

    places: tuple[Place, ...] = (("a", 0),)

    def request(self, participants: Any) -> tuple[Message, int]:
        topics = [
            DescribeProducersTopic(name=participants.full(topic), partition_indexes=indexes)
            for topic, indexes in by_topic(self.places)
        ]
        return DescribeProducersRequest(topics=topics), 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Read(Step):
    """A Fetch without a session."""

    places: tuple[Place, ...] = (("a", 0),)
    offset: int = 0
    committed: bool = True
    version: int = 11

    def request(self, participants: Any) -> tuple[Message, int]:
        by_id = self.version >= FETCH_IDS_SINCE
        topics = [
            FetchTopic(
                topic="" if by_id else participants.full(topic),
                topic_id=participants.topic_id(topic) if by_id else ZERO_UUID,
                partitions=[
                    FetchPartition(
                        partition=index, fetch_offset=self.offset, partition_max_bytes=READ_BYTES
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(self.places)
        ]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=READ_BYTES,
            isolation_level=int(self.committed),
            topics=topics,
        )
        return request, self.version


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Ends(Step):
    """A ListOffsets, of the latest offset (-1) or another one."""

    places: tuple[Place, ...] = (("a", 0),)
    at: int = -1
    committed: bool = True
    version: int = 5

    def request(self, participants: Any) -> tuple[Message, int]:
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self.committed and self.version >= ISOLATED_SINCE),
            topics=[
                ListOffsetsTopic(
                    name=participants.full(topic),
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=self.at)
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(self.places)
            ],
        )
        return request, self.version


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FindCoordinator(Step):
    """A FindCoordinator of transactional ids; before version 4, of the first."""

    ids: tuple[str, ...] = ("x",)
    version: int = 4

    def request(self, participants: Any) -> tuple[Message, int]:
        names = [participants.full(name) for name in self.ids]
        request = FindCoordinatorRequest(
            key=names[0] if self.version < KEYS_SINCE else "",
            coordinator_keys=names if self.version >= KEYS_SINCE else [],
            key_type=TRANSACTION_KEYS,
        )
        return request, self.version


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteRecords(Step):
    """A DeleteRecords; -1: all up to the high watermark."""

    place: Place = ("a", 0)
    before: int = -1

    def request(self, participants: Any) -> tuple[Message, int]:
        topic, index = self.place
        partition = DeleteRecordsPartition(partition_index=index, offset=self.before)
        wanted = DeleteRecordsTopic(name=participants.full(topic), partitions=[partition])
        return DeleteRecordsRequest(topics=[wanted], timeout_ms=WAIT_MS), 2
