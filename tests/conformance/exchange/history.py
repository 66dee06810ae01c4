"""What is written: at every turn, and at the first what is to stay as it is."""

import time
from pathlib import Path

from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.storage.checkpoints import read_offsets
from odradek.storage.filenames import LOG_START_OFFSET_CHECKPOINT
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition
from tests.conformance.exchange.classic_groups import write_classic_groups
from tests.conformance.exchange.first_turn import (
    CONSUMERS,
    GROUP,
    SHARERS,
    STREAMS,
    WAIT_SECONDS,
    Transactions,
    ask_until_ready,
    batch_of_now,
    consumer_group,
    find_coordinator,
    protect,
    share_group,
    streams_group,
)
from tests.conformance.exchange.seen import NOT_YET, configs
from tests.conformance.requests import BY_NAME, request_with
from tests.support.broker_process import BrokerProcess
from tests.support.config_requests import alter_configs_request
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

TOPICS = {
    "plain": {},
    "configured": {
        "retention.ms": "-1",
        "segment.bytes": "1048576",
        "max.message.bytes": "2000000",
        "min.insync.replicas": "1",
    },
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "packed": {"compression.type": "zstd"},
    "transactional": {},
    "cut": {},
}
OFFSETS_VERSION = 8


class History:
    """What has been written to a data directory, as far as the next turn must know it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.turns = 0
        self.groups: list[str] = []
        self.classic: list[str] = []
        self.producer: tuple[int, int] | None = None  # id and epoch of the idempotent one
        self.next_sequence = 0
        self.last_batch: tuple[bytes, int] | None = None  # and the offset that it was given
        self.decided: list[str] = []  # what is committed of `transactional`

    def write(self, broker: BrokerProcess) -> None:
        """This turn's writes: records, offsets, configs; topics that come, grow, and go."""
        self.turns += 1
        with WireClient(broker.port) as client:
            if self.turns == 1:
                self._create_topics(client)
                self._write_what_stays(client)
            self._write(client)
        self.classic += write_classic_groups(broker.port, "plain", self.turns)

    # -- at the first turn ------------------------------------------------------------------------

    def _write_what_stays(self, client: WireClient) -> None:
        protect(client)
        consumer_group(client, CONSUMERS, "plain", 1)
        share_group(client, SHARERS, "plain")
        streams_group(client, STREAMS, "plain")
        self._alter(client, 4, "0", {"log.cleaner.threads": "1"})
        done = Transactions(client, "done")
        for committed in (True, False, True, False):
            values = [f"{committed} 1", f"{committed} 2"]
            done.write("transactional", 0, *values)
            done.commit_offsets("by-transaction", "transactional", 5 if committed else 500)
            done.end(committed=committed)
            self._produce(client, "transactional", batch_of_now("in between"))
            self.decided += [*(values if committed else []), "in between"]
        self.groups += [CONSUMERS, "by-transaction", "pending"]
        # Stays open: whoever serves the directory next must not show what lies behind, and call the
        # offsets that it may change unstable.
        left_open = Transactions(client, "open")
        left_open.write("transactional", 0, "never decided")
        left_open.commit_offsets("by-transaction", "transactional", 77)
        left_open.commit_offsets("pending", "plain", 78)
        self._produce(client, "transactional", batch_of_now("behind it"))

    def _create_topics(self, client: WireClient) -> None:
        wanted = [
            CreateTopicsTopic(
                name=name,
                num_partitions=2,
                replication_factor=1,
                assignments=[],
                configs=[
                    CreateTopicsConfig(name=key, value=value) for key, value in configs.items()
                ],
            )
            for name, configs in TOPICS.items()
        ]
        told = client.ask(CreateTopicsRequest(topics=wanted), CreateTopicsResponse, 7)
        assert {one.error_code for one in told.topics} == {ErrorCode.NONE}, told

    # -- at every turn ----------------------------------------------------------------------------

    def _write(self, client: WireClient) -> None:
        """In five codecs, and the rest."""
        self._come_and_go(client)
        for codec in CompressionType:
            values = [f"turn {self.turns} {codec.name} {number}" for number in range(5)]
            for topic in ("plain", "configured", "stamped", "packed"):
                self._produce(client, topic, batch_of_now(*values, compression=codec))
        for key in (b"a", b"b", b"only %d" % self.turns):
            self._produce(client, "compacted", batch_of_now(f"turn {self.turns}", key=key))
        self._go_on_idempotent(client)
        self._commit(client)
        self._cut(client)
        self._alter(client, 2, "configured", {"retention.bytes": str(10**9 + self.turns)})
        retention_ms = str(10**10 + self.turns)
        self._alter(client, 4, "", {"log.retention.ms": retention_ms})
        wait_until(lambda: configs(client, 2, "plain").get("retention.ms") == retention_ms)

    def _come_and_go(self, client: WireClient) -> None:
        new = [
            CreateTopicsTopic(
                name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
            )
            for name in (f"grown-{self.turns}", f"gone-{self.turns}")
        ]
        made = client.ask(CreateTopicsRequest(topics=new), CreateTopicsResponse, 7)
        assert {one.error_code for one in made.topics} == {ErrorCode.NONE}, made
        more = CreatePartitionsTopic(name=f"grown-{self.turns}", count=3, assignments=None)
        grow = CreatePartitionsRequest(topics=[more], timeout_ms=9_000, validate_only=False)
        [grown] = client.ask(grow, CreatePartitionsResponse, 3).results
        assert grown.error_code == ErrorCode.NONE, grown
        self._produce(client, f"grown-{self.turns}", batch_of_now("into the new one"), partition=2)
        self._produce(client, f"gone-{self.turns}", batch_of_now("for nothing"))
        delete = DeleteTopicsRequest(topic_names=[f"gone-{self.turns}"], timeout_ms=9_000)
        [gone] = client.ask(delete, DeleteTopicsResponse, 5).responses
        assert gone.error_code == ErrorCode.NONE, gone

    def _go_on_idempotent(self, client: WireClient) -> None:
        """The same idempotent producer all along; what it sends twice is there once."""
        if self.producer is None:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
            told = ask_until_ready(client, request, InitProducerIdResponse, 4)
            self.producer = (told.producer_id, told.producer_epoch)
        if self.last_batch is not None:
            batch, offset = self.last_batch
            assert self._produce(client, "plain", batch, partition=1) == offset
        for _ in range(3):
            producer = (*self.producer, self.next_sequence)
            batch = batch_of_now(f"turn {self.turns}", "again", producer=producer)
            offset = self._produce(client, "plain", batch, partition=1)
            self.next_sequence += 2
            self.last_batch = (batch, offset)
        too_far = batch_of_now("lost", producer=(*self.producer, self.next_sequence + 7))
        self._produce(
            client, "plain", too_far, partition=1, error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        )

    def _commit(self, client: WireClient) -> None:
        for group in ("all-along", f"of-turn-{self.turns}"):
            find_coordinator(client, group, GROUP)
            places = [
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=self.turns + index,
                    committed_leader_epoch=0,
                    committed_metadata=f"turn {self.turns}",
                )
                for index in range(2)
            ]
            request = OffsetCommitRequest(
                group_id=group, topics=[OffsetCommitRequestTopic(name="plain", partitions=places)]
            )
            told = client.ask(request, OffsetCommitResponse, OFFSETS_VERSION)
            codes = {one.error_code for topic in told.topics for one in topic.partitions}
            assert codes == {ErrorCode.NONE}, told
            if group not in self.groups:
                self.groups.append(group)

    def _cut(self, client: WireClient) -> None:
        """Records that are there, and are deleted up to the middle of a batch."""
        offset = self._produce(client, "cut", batch_of_now("1", "2", "3"))
        place = DeleteRecordsPartition(partition_index=0, offset=offset + 1)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="cut", partitions=[place])], timeout_ms=9_000
        )
        [told] = client.ask(request, DeleteRecordsResponse, 2).topics[0].partitions
        assert (told.error_code, told.low_watermark) == (ErrorCode.NONE, offset + 1), told
        # A broker that is killed then only remembers what its checkpoint tells, Kafka too.
        checkpoint = self.data / LOG_START_OFFSET_CHECKPOINT
        cut = TopicPartition("cut", 0)
        wait_until(lambda: read_offsets(Files(), checkpoint).get(cut) == offset + 1)

    def _alter(
        self, client: WireClient, kind: int, name: str, settings: dict[str, str | None]
    ) -> None:
        request = alter_configs_request(kind, name, settings)
        [told] = client.ask(request, IncrementalAlterConfigsResponse, 1).responses
        assert told.error_code == ErrorCode.NONE, told

    def _produce(
        self,
        client: WireClient,
        topic: str,
        batch: bytes,
        *,
        partition: int = 0,
        error: ErrorCode = ErrorCode.NONE,
    ) -> int:
        """The offset that it was given. (Kafka hears of a new partition a little later.)"""
        request = request_with(topic, batch, partition=partition)
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            told = client.ask(request, ProduceResponse, BY_NAME)
            [answer] = told.responses[0].partition_responses
            if answer.error_code not in NOT_YET or time.monotonic() > deadline:
                assert answer.error_code == error, answer
                return answer.base_offset
            time.sleep(0.02)
