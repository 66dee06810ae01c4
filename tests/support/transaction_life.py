"""A producer's transactions on real logs and coordinators, in lives that a crash ends.

The producer is a client that repeats what was not answered. It has a script of steps; after a crash
it goes on with the step that it was in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.runtime.producer import NO_PRODUCER, ProducerIdAndEpoch
from odradek.coordinator.transactions.marker_writer import MarkerWriter
from odradek.coordinator.transactions.settings import TransactionSettings
from odradek.coordinator.transactions.states import IDLE
from odradek.coordinator.transactions.transaction import Transaction
from odradek.coordinator.transactions.transaction_coordinator import (
    InitCall,
    TransactionCoordinator,
)
from odradek.protocol.batch_header import BatchHeader, read_header
from odradek.protocol.compression import Buffer
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.record import read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.storage.topic_partition import TopicPartition
from tests.support.crashing_files import QuickFiles
from tests.support.groups import GROUP, TOPIC, WALL_AHEAD_MS, Groups, ManualLoop
from tests.support.log_box import batch_of, read_slice, split
from tests.support.timer import Timer

ID = "shop"
TIMEOUT_MS = 60_000
ABORT_INTERVAL_MS = 10_000
PARTITIONS = (0, 1)
OFFSETS = TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)
STATE = TopicPartition(TRANSACTION_STATE_TOPIC, 0)
NEVER = (1 << 63) - 1
LOGS = (*(TopicPartition(TOPIC[0], each) for each in PARTITIONS), OFFSETS, STATE)
SETTINGS = TransactionSettings(
    max_timeout_ms=900_000,
    abort_interval_ms=ABORT_INTERVAL_MS,
    expiration_ms=86_400_000,
    expiration_interval_ms=3_600_000,
    two_phase_commit=False,
)


class Marker(NamedTuple):
    """A marker in a log, and the data before it that it ended."""

    is_commit: bool
    epoch: int
    values: tuple[bytes, ...]


class Life:
    """A broker's logs and coordinators from start to crash.

    `syncs`: flush.messages is 1. An fsync is made when somebody waits for it, and no earlier.
    """

    def __init__(
        self,
        root: Path,
        files: Files,
        number: int,
        *,
        syncs: bool,
        segment_bytes: int | None = None,
    ) -> None:
        self.loop = ManualLoop()
        self.loop.wall_ahead_ms = WALL_AHEAD_MS + number * 1_000_000
        self._unsynced: dict[PartitionLog, None] = {}
        self._topic_config = TopicConfig(
            segment_index_bytes=1200,
            internal_segment_bytes=segment_bytes,
            flush_messages=1 if syncs else NEVER,
        )
        config = BrokerConfig.from_texts({"log.dirs": str(root / "data")})
        now_ms = self.loop.clock().wall_ms
        self.manager = LogManager.open(
            config, files=files, timer_ms=Timer(), report=lambda line: None
        )
        self.manager.on_flush_due = lambda log: self._unsynced.update({log: None})
        self.manager.load_logs(lambda _: self._topic_config, now_ms=now_ms)
        self.logs = {key: self._open(key, number) for key in LOGS}
        self.groups = Groups(logs=[self.logs[OFFSETS]], loop=self.loop)  # type: ignore[list-item] # a real log
        self.offsets = self.groups.coordinator.offsets
        self.transactions = self._coordinator()

    def _open(self, key: TopicPartition, number: int) -> PartitionLog:
        return self.manager.create(
            *key,
            TOPIC[1] if key[0] == TOPIC[0] else f"{key[0]:.16}".encode(),
            self._topic_config,
            now_ms=self.loop.clock().wall_ms,
            leader_epoch=number,
            is_new=False,
        )

    def _coordinator(self) -> TransactionCoordinator:
        coordinator = TransactionCoordinator(
            SETTINGS,
            loop=self.loop,  # type: ignore[arg-type] # as much of a loop as is needed
            clock=self.loop.clock,
            after_arrivals=self.loop.after_arrivals,
            markers=MarkerWriter(
                partition_exists=lambda topic, partition: (topic, partition) in LOGS,
                find_log=self.manager.get,
                groups=self.offsets,
            ),
            new_producer_id=lambda now_ms: 1,
            transaction_version=lambda: 2,
        )
        coordinator.open_topic([self.logs[STATE]], 1)
        return coordinator

    @property
    def transaction(self) -> Transaction | None:
        return self.transactions.shards.at(0).state.by_id.get(ID)

    def sync(self) -> None:
        """Sync what has reached flush.messages, as a response does that waits for it."""
        while self._unsynced:
            log = next(iter(self._unsynced))
            del self._unsynced[log]
            log.flush(self.loop.clock().wall_ms)

    def advance(self, by_ms: int) -> None:
        self.sync()
        self.loop.advance(by_ms)

    def settle(self) -> None:
        """Wait until no transaction is being completed."""
        for _ in range(10):
            self.advance(100)
        transaction = self.transaction
        assert transaction is None or not transaction.state.client_name.startswith("Prepare")

    def expire(self) -> None:
        """Wait until an open transaction is aborted."""
        for _ in range(8):
            self.advance(ABORT_INTERVAL_MS + 1)
        self.settle()
        assert self.transaction is None or self.transaction.state in IDLE

    # -- what is in the logs -----------------------------------------------------------------------

    def markers(self, key: TopicPartition) -> list[Marker]:
        """All markers of a log, each with the records of its producer since the one before."""
        found: list[Marker] = []
        values: list[bytes] = []
        for header, batch in self._batches(key):
            if header.is_control:
                kind = control_type(next(read_records(batch)).key)
                is_commit = kind is ControlRecordType.COMMIT
                found.append(Marker(is_commit, header.producer_epoch, tuple(values)))
                values = []
            else:
                values += [record.value or b"" for record in read_records(batch)]
        assert values == [], f"a transaction in {key} has not ended"
        return found

    def committed(self, partition: int) -> list[bytes]:
        """What a consumer makes of a read_committed Fetch: by the list of aborted transactions."""
        log = self.logs[LOGS[partition]]
        assert log.last_stable_offset == log.log_end_offset
        values: list[bytes] = []
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            read = log.read_committed(offset, 1 << 20, at_least_one_batch=True)
            for batch in split(read_slice(log, offset)):
                header = read_header(batch)
                offset = header.next_offset
                is_aborted = any(
                    header.producer_id == one.producer_id
                    and one.first_offset <= header.base_offset < one.last_offset
                    for one in read.aborted
                )
                if not header.is_control and not is_aborted:
                    values += [record.value or b"" for record in read_records(batch)]
        return values

    def _batches(self, key: TopicPartition) -> Iterator[tuple[BatchHeader, memoryview]]:
        for batch in self.logs[key].batches(0):
            yield read_header(batch), batch

    def committed_offset(self) -> int:
        """The group's offset, which must be stable."""
        topic = OffsetFetchRequestTopic(name=TOPIC[0], partition_indexes=[0])
        wanted = OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
        [answer] = self.offsets.fetch(wanted, [topic], stable=True)
        [place] = answer.partitions
        assert place.error_code == ErrorCode.NONE
        return int(place.committed_offset)


class Script(NamedTuple):
    """One transaction: its records by partition, the offset that it commits, and its end."""

    records: Sequence[tuple[int, bytes]]
    offset: int | None
    commit: bool

    def values(self, partition: int) -> tuple[bytes, ...]:
        """The records of one partition."""
        return tuple(value for where, value in self.records if where == partition)


class Memory(NamedTuple):
    """What a producer knows: its id and epoch, its next sequences, the steps that were answered,
    and how many of them were ends of transactions.
    """

    producer: ProducerIdAndEpoch = NO_PRODUCER
    sequences: Mapping[int, int] = MappingProxyType({})
    steps: int = 0
    ended: int = 0


NOTHING = Memory()
Step = Callable[[Life], Memory]


class Producer:
    """A transactional producer, whose memory outlives the broker.

    `version`: of its transactions. It adds partitions itself in version 1.
    """

    def __init__(self, scripts: Sequence[Script], version: int, memory: Memory = NOTHING) -> None:
        self.memory = memory
        self._version = version
        self._steps = [self._init, *(step for one in scripts for step in self._steps_of(one))]

    def go_on(self, life: Life) -> None:
        """Do the steps that are left. One that was not answered is done again."""
        while self.memory.steps < len(self._steps):
            self._until_done(life, self._steps[self.memory.steps])

    def _until_done(self, life: Life, step: Step) -> None:
        for _ in range(20):
            try:
                after = step(life)
            except ApiError as error:
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    raise
                life.advance(10)
            else:
                life.sync()
                self.memory = after._replace(steps=self.memory.steps + 1)
                return
        raise AssertionError("the last transaction is not completed")

    def _steps_of(self, script: Script) -> Iterator[Step]:
        for partition, value in script.records:
            yield partial(self._write, partition, value)
        if script.offset is not None:
            yield partial(self._commit_offset, script.offset)
        yield partial(self._end, script.commit)

    # -- steps: each returns what the producer knows when it is answered ---------------------------

    def _init(self, life: Life) -> Memory:
        call = InitCall(ID, TIMEOUT_MS)
        new_id = 7 if life.transactions.needs_producer_id(call) else None
        return Memory(life.transactions.init_producer_id(call, new_id))

    def _add(self, life: Life, where: TopicPartition) -> None:
        """Add a partition, or have the broker add it: its record is synced before what follows."""
        version = 2 if self._version == 2 else 0
        producer = self.memory.producer
        life.transactions.add_partitions(ID, producer, {where}, client_version=version)
        if self._version == 1 or life.transactions.unsynced_log(ID) is not None:
            life.sync()

    def _write(self, partition: int, value: bytes, life: Life) -> Memory:
        self._add(life, LOGS[partition])
        sequence = self.memory.sequences.get(partition, 0)
        now_ms = life.loop.clock().wall_ms
        batch = batch_of(
            value,
            timestamps=[now_ms],
            producer=(*self.memory.producer, sequence),
            is_transactional=True,
        )
        life.logs[LOGS[partition]].append(batch, now_ms=now_ms, transaction_verified=True)
        return self.memory._replace(sequences={**self.memory.sequences, partition: sequence + 1})

    def _commit_offset(self, offset: int, life: Life) -> Memory:
        self._add(life, OFFSETS)
        place = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        topic = OffsetCommitRequestTopic(name=TOPIC[0], topic_id=TOPIC[1], partitions=[place])
        request = TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=GROUP,
            producer_id=self.memory.producer.producer_id,
            producer_epoch=self.memory.producer.epoch,
            topics=[],
        )
        life.offsets.commit_in_transaction(request, [topic], 5)
        return self.memory

    def _end(self, commit: bool, life: Life) -> Memory:
        version = 2 if self._version == 2 else 0
        producer = self.memory.producer
        after = life.transactions.end(ID, producer, commit=commit, client_version=version)
        ended = self.memory.ended + 1
        if self._version == 1:
            return self.memory._replace(ended=ended)
        assert after == (producer.producer_id, producer.epoch + 1)
        return Memory(after, ended=ended)


class Event(NamedTuple):
    """A write to a log, or an fsync: how long each log is, and how much of it is synced."""

    memory: Memory  # the producer's
    sizes: Mapping[Path, int]
    synced: Mapping[Path, int]


class RecordingFiles(QuickFiles):
    """Records what happens to the logs below `root`."""

    def __init__(self, root: Path, producer: Producer) -> None:
        self.events: list[Event] = []
        self._root = root
        self._producer = producer
        self._sizes: dict[Path, int] = {}
        self._synced: dict[Path, int] = {}

    def append(self, file: OpenFile, buffers: Sequence[Buffer]) -> int:
        size = super().append(file, buffers)
        if file.path.suffix == ".log":
            self._sizes[file.path.relative_to(self._root)] = file.append_position
            self._note()
        return size

    def fsync(self, file: OpenFile) -> None:
        path = file.path.relative_to(self._root)
        if path in self._sizes:
            self._synced[path] = self._sizes[path]
            self._note()

    def _note(self) -> None:
        event = Event(self._producer.memory, dict(self._sizes), dict(self._synced))
        self.events.append(event)
