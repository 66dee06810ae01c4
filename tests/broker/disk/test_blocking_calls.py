"""No call that may wait for a disk runs on the event loop, but for those listed here, and why.

docs/blocking-calls.md shows the same list.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.periodic_tasks import periodic_tasks_of
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsTopic
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsTopic
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
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
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import Message
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.config_requests import alter_configs_request
from tests.support.contexts import handled, request_context
from tests.support.log_box import NOW_MS, batch_of
from tests.support.slow_files import SlowFiles, calls_in, in_words

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "blocking-calls.md"
DELAY_SECONDS = 0.2
LONGEST_STALL_SECONDS = 0.1
TICK_SECONDS = 0.005
LIMIT_SECONDS = 100.0
BATCHES = 18
BATCH = batch_of(bytes(3000))
SEGMENT_BYTES = 16384  # five batches


class Rig:
    """A broker in two directories, started again since `t` and `c` were filled; nothing listens."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = SlowFiles(DELAY_SECONDS)
        self.now_ms = NOW_MS
        self.broker = self._opened()

    def _opened(self) -> Broker:
        config = BrokerConfig.from_texts(
            {
                "log.dirs": f"{self.root}/one,{self.root}/two",
                "listeners": "PLAINTEXT://localhost:9092",
                "offsets.topic.num.partitions": "1",
                "log.cleaner.backoff.ms": "50",
            }
        )
        loop = asyncio.get_running_loop()
        return Broker(
            config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: self.now_ms, files=self.files
        )

    async def fill(self) -> None:
        small = {"internal.segment.bytes": str(SEGMENT_BYTES)}
        admin = self.broker.admin.topics
        await admin.create([NewTopic(name="t", partition_count=1, configs=small)])
        await admin.create(
            [NewTopic(name="c", partition_count=1, configs=small | {"cleanup.policy": "compact"})]
        )
        await admin.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
        for _ in range(BATCHES):
            self.log.append(BATCH, now_ms=NOW_MS)
            self.broker.log_manager.get("c", 0).append(BATCH, now_ms=NOW_MS)
        await self.broker.close()
        self.broker = self._opened()

    @property
    def log(self) -> PartitionLog:
        return self.broker.log_manager.get("t", 0)

    async def ask(self, request: Message, version: int) -> Any:
        spec = type(request).SPEC
        assert spec.key is not None
        context = request_context(self.broker, version, self.now_ms)
        answer = handled(context, request)
        return await answer if inspect.isawaitable(answer) else answer

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            while not condition():  # noqa: ASYNC110 # what holds then is no event of the loop's
                await asyncio.sleep(0.005)


# --- the operations


async def produce(rig: Rig) -> None:
    data = [ProducePartitionData(index=0, records=BATCH)]
    topics = [ProduceTopicData(name="t", partition_data=data)]
    answer = await rig.ask(ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def rolling_produce(rig: Rig) -> None:
    segments = len(rig.log.segments)
    while len(rig.log.segments) == segments:
        await produce(rig)


async def fetch_at(rig: Rig, offset: int, *, committed: bool = False) -> None:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=7000)
    topics = [FetchTopic(topic="t", partitions=[partition])]
    request = FetchRequest(
        max_wait_ms=1, min_bytes=1, topics=topics, isolation_level=1 if committed else 0
    )
    answer = await rig.ask(request, 12)
    assert answer.responses[0].partitions[0].error_code == 0


async def fetch(rig: Rig) -> None:
    await fetch_at(rig, 7)
    await fetch_at(rig, 8)
    await fetch_at(rig, rig.log.log_end_offset)


async def fetch_committed(rig: Rig) -> None:
    await fetch_at(rig, 3, committed=True)


async def list_offsets_at(rig: Rig, timestamp: int, version: int = 7) -> None:
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    topics = [ListOffsetsTopic(name="t", partitions=partitions)]
    answer = await rig.ask(ListOffsetsRequest(replica_id=-1, topics=topics), version)
    assert answer.topics[0].partitions[0].error_code == 0


async def list_offsets(rig: Rig) -> None:
    await list_offsets_at(rig, NOW_MS)
    await list_offsets_at(rig, -3)


async def list_segments(rig: Rig) -> None:
    await list_offsets_at(rig, -1, version=0)


async def end_of_epoch(rig: Rig) -> None:
    partitions = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    topics = [OffsetForLeaderTopic(topic="t", partitions=partitions)]
    await rig.ask(OffsetForLeaderEpochRequest(topics=topics), 4)


async def delete_records(rig: Rig) -> None:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=12)]
    topics = [DeleteRecordsTopic(name="t", partitions=partitions)]
    answer = await rig.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1), 2)
    assert answer.topics[0].partitions[0].low_watermark == 12


async def delete_records_and_produce(rig: Rig) -> None:
    await delete_records(rig)
    await produce(rig)


async def run_periodic_task(rig: Rig, name: str) -> None:
    [task] = [task for task in periodic_tasks_of(rig.broker) if task.name == name]
    result = task.run()
    if inspect.isawaitable(result):
        await result


async def retention(rig: Rig) -> None:
    rig.log.increment_log_start_offset(12)
    await run_periodic_task(rig, "retention")
    assert rig.log.segments[0].base_offset == 10


async def retention_of_all(rig: Rig) -> None:
    rig.now_ms += 30 * 24 * 3_600_000
    await run_periodic_task(rig, "retention")
    assert len(rig.log.segments) == 1


async def create_topics(rig: Rig) -> None:
    topic = CreateTopicsTopic(
        name="new", num_partitions=3, replication_factor=1, assignments=[], configs=[]
    )
    answer = await rig.ask(CreateTopicsRequest(topics=[topic]), 7)
    assert answer.topics[0].error_code == 0
    assert rig.broker.is_served("new", 2)


async def create_partitions(rig: Rig) -> None:
    topic = CreatePartitionsTopic(name="t", count=3, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=1, validate_only=False)
    assert (await rig.ask(request, 3)).results[0].error_code == 0


async def delete_topics(rig: Rig) -> None:
    topics = [DeleteTopicsTopic(name="t", topic_id=ZERO_UUID)]
    answer = await rig.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1), 6)
    assert answer.responses[0].error_code == 0
    assert not (rig.root / "one" / "t-0").exists()


async def alter_configs(rig: Rig) -> None:
    request = alter_configs_request(2, "t", {"retention.ms": "5"})
    assert (await rig.ask(request, 1)).responses[0].error_code == 0


async def move(rig: Rig) -> None:
    manager = rig.broker.log_manager
    here = manager.directory_of(rig.log)
    [there] = [one for one in manager.directories if one is not here]
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
    dirs = [AlterReplicaLogDir(path=str(there.path), topics=topics)]
    answer = await rig.ask(AlterReplicaLogDirsRequest(dirs=dirs), 2)
    assert answer.results[0].partitions[0].error_code == 0
    await rig.until(lambda: manager.directory_of(rig.log) is there and not manager.futures)


async def clean(rig: Rig) -> None:
    rig.broker.maintenance.cleaner.start()
    segment = rig.broker.log_manager.get("c", 0).segments[0]
    await rig.until(lambda: rig.broker.log_manager.get("c", 0).segments[0] is not segment)


async def commit_offsets(rig: Rig) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=None
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    answer = await rig.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    assert answer.topics[0].partitions[0].error_code == 0


async def init_producer_ids(rig: Rig) -> None:
    for _ in range(1001):  # a block of ids is 1000
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        assert (await rig.ask(request, 4)).error_code == 0


async def describe_log_dirs(rig: Rig) -> None:
    await rig.ask(DescribeLogDirsRequest(topics=None), 4)


async def write_snapshot(rig: Rig) -> None:
    await rig.broker.metadata_log.snapshots.write("the test asks for it")


async def look_for_snapshot(rig: Rig) -> None:
    await run_periodic_task(rig, "writing metadata snapshots")
    await run_periodic_task(rig, "cleaning the metadata log")


async def checkpoints(rig: Rig) -> None:
    for name in ("recovery points", "log start offsets", "high watermarks"):
        await run_periodic_task(rig, f"writing {name}")


async def small_periodic_tasks(rig: Rig) -> None:
    for name in ("removing deleted files", "checking free space", "releasing files"):
        await run_periodic_task(rig, name)
    await run_periodic_task(rig, "expiring producer ids")


# --- what they may do on the loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`run` makes the `allowed` calls on the loop, and no others; `reason` says why it may."""

    name: str
    run: Callable[[Rig], Awaitable[None]]
    before: Callable[[Rig], Awaitable[None]] | None = None
    allowed: str = ""
    reason: str = ""


NEW_SEGMENT = (
    "create .index, .log, .timeindex; ftruncate .index, .timeindex; "
    "unlink .index, .log, .timeindex, .txnindex"
)
OPERATIONS = [
    Operation(name="Produce", before=produce, run=produce),
    Operation(
        name="The first Produce to a log since the start",
        run=produce,
        allowed="ftruncate .index, .timeindex",
        reason="The indexes get their full length, as holes. Once per log and start; the files "
        "are open and their inodes in memory by then.",
    ),
    Operation(
        name="A Produce that rolls",
        before=produce,
        run=rolling_produce,
        allowed="create .index, .log, .snapshot, .timeindex; ftruncate .index, .snapshot, "
        ".timeindex; open .index, .timeindex; stat .log; "
        "unlink .index, .log, .timeindex, .txnindex",
        reason="A roll is a part of the append: the batch belongs into the new segment, and "
        "waiting would reorder appends. Once per segment.bytes; nothing is synced, and the "
        "directory is in memory.",
    ),
    Operation(name="Fetch", run=fetch),
    Operation(name="Fetch of committed records", run=fetch_committed),
    Operation(name="ListOffsets by time", run=list_offsets),
    Operation(name="ListOffsets of segments", run=list_segments),
    Operation(name="OffsetForLeaderEpoch", run=end_of_epoch),
    Operation(name="DeleteRecords", before=produce, run=delete_records_and_produce),
    Operation(name="Retention", run=retention),
    Operation(
        name="Retention of all segments",
        run=retention_of_all,
        allowed="create .index, .log, .timeindex, leader-epoch-checkpoint; ftruncate .index, "
        ".timeindex, leader-epoch-checkpoint; rename leader-epoch-checkpoint; unlink .index, .log, "
        ".timeindex, .txnindex",
        reason="The log rolls first, as for a Produce. Once for a log that is not written to. "
        "The first sync of a leader epoch writes its file.",
    ),
    Operation(name="CreateTopics", run=create_topics),
    Operation(name="CreatePartitions", run=create_partitions),
    Operation(name="DeleteTopics", run=delete_topics),
    Operation(name="IncrementalAlterConfigs", run=alter_configs),
    Operation(
        name="AlterReplicaLogDirs",
        run=move,
        allowed="copy .index, .log, .snapshot, .timeindex; create .index.cleaned, .snapshot, "
        ".snapshot.cleaned, .timeindex.cleaned, leader-epoch-checkpoint; "
        "ftruncate .index.cleaned, .snapshot, .snapshot.cleaned, .timeindex.cleaned, "
        "leader-epoch-checkpoint; mkdir a partition; rename .index.cleaned, .snapshot.cleaned, "
        ".timeindex.cleaned, a partition, leader-epoch-checkpoint; unlink .txnindex",
        reason="The directory is made at once, so that a move can be cancelled at any time. At "
        "the end the last mebibyte is copied and the names change in one turn, because nobody "
        "may append in between. With flush.messages or flush.ms these bytes are synced, too. "
        "Once per move.",
    ),
    Operation(
        name="Compaction",
        run=clean,
        allowed="list a partition; rename .index, .index.cleaned, .index.swap, .log, "
        ".log.cleaned, .log.swap, .timeindex, .timeindex.cleaned, .timeindex.swap; stat .index, "
        ".index.cleaned, .log.cleaned, .timeindex, .timeindex.cleaned, .txnindex, "
        ".txnindex.cleaned, .txnindex.swap",
        reason="The files of a segment are renamed in one turn, so that no reader opens a file "
        "that has no name at that moment; a group of many segments takes several turns. Nothing is "
        "synced on the loop. Once per group of cleaned segments.",
    ),
    Operation(name="OffsetCommit", before=commit_offsets, run=commit_offsets),
    Operation(name="InitProducerId", run=init_producer_ids),
    Operation(name="DescribeLogDirs", run=describe_log_dirs),
    Operation(name="A metadata snapshot", run=write_snapshot),
    Operation(name="Looking at metadata snapshots", run=look_for_snapshot),
    Operation(name="Checkpoints", run=checkpoints),
    Operation(name="Small tasks by the clock", run=small_periodic_tasks),
]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    await made.fill()
    yield made
    made.files.thaw()
    await made.broker.close()


def unserved_seconds() -> float:
    """How long this thread has been ready to run without a processor, if the system tells it."""
    told = Path("/proc/thread-self/schedstat")
    return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


@asynccontextmanager
async def longest_stall() -> AsyncIterator[Callable[[], float]]:
    """How long the loop has not turned, at most, in seconds.

    Told by the ticks of another thread: where the machine gives neither a turn, none is missed.
    Time in which the loop could run, but got no processor, does not count.
    """
    ticks, longest, is_over = 0, 0.0, Event()

    def tick() -> None:
        nonlocal ticks
        while not is_over.wait(TICK_SECONDS):
            ticks += 1

    async def watch() -> None:
        nonlocal longest
        while not is_over.is_set():
            before, unserved = ticks, unserved_seconds()
            await asyncio.sleep(TICK_SECONDS)
            stall = (ticks - before) * TICK_SECONDS - (unserved_seconds() - unserved)
            longest = max(longest, stall)

    thread, watching = Thread(target=tick), asyncio.ensure_future(watch())
    thread.start()
    try:
        yield lambda: longest
        await asyncio.sleep(2 * TICK_SECONDS)
    finally:
        is_over.set()
        thread.join()
        await watching


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@pytest.mark.slow
async def test_the_loop_does_not_wait_for_a_slow_disk(rig: Rig, operation: Operation) -> None:
    if operation.before is not None:
        await operation.before(rig)
    rig.files.chill(calls_in(operation.allowed))
    async with longest_stall() as stall:
        await operation.run(rig)
    assert in_words(rig.files.on_loop) == operation.allowed
    assert stall() < LONGEST_STALL_SECONDS


def test_the_documentation_lists_the_same_calls() -> None:
    text = DOCUMENTATION.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        f"| {operation.name} | {operation.allowed or 'none'} | {operation.reason} |"
        for operation in OPERATIONS
    ]
