"""A share coordinator on logs in memory, with a clock that only moves when a test says so."""

from collections.abc import Mapping, Sequence
from typing import Any

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.share_state.batches import NO_OFFSET, DeliveryBatch
from odradek.coordinator.share_state.settings import ShareCoordinatorSettings
from odradek.coordinator.share_state.share_coordinator import ShareCoordinator
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.share_state.state import ShareState, StateWrite
from odradek.coordinator.share_state.table import ShareStateTable
from odradek.protocol.record import read_records
from odradek.protocol.records.share_group_state import RECORD_TYPES
from tests.support.groups import ManualLoop
from tests.support.memory_log import MemoryLog

CODEC = CoordinatorRecordCodec(RECORD_TYPES)
TOPIC_ID = b"a topic's own id"
KEY = SharePartitionKey("g", TOPIC_ID, 0)
MINUTE_MS = 60_000


class ShareStates:
    """A coordinator, and the requests to it. `topics`: partition counts by topic id."""

    def __init__(
        self,
        *,
        logs: Sequence[MemoryLog] = (),
        loop: ManualLoop | None = None,
        topics: Mapping[bytes, int] | None = None,
        updates_per_snapshot: int = 500,
        is_open: bool = True,
    ) -> None:
        self.loop = loop or ManualLoop()
        self.logs = list(logs) or [MemoryLog("__share_group_state")]
        self.topics = dict({TOPIC_ID: 2} if topics is None else topics)
        self.settings = ShareCoordinatorSettings(
            updates_per_snapshot=updates_per_snapshot,
            cold_snapshot_interval_ms=5 * MINUTE_MS,
            prune_interval_ms=7 * MINUTE_MS,
        )
        self.coordinator = ShareCoordinator(
            self.settings,
            loop=self.loop,  # type: ignore[arg-type] # as much of a loop as is needed
            clock=self.loop.clock,
            after_arrivals=self.loop.after_arrivals,
            partition_count=lambda topic_id: self.topics.get(topic_id, -1),
        )
        if is_open:
            self.coordinator.open_topic(self.logs, len(self.logs))  # type: ignore[arg-type] # a MemoryLog serves a journal

    def restarted(self) -> "ShareStates":
        """Another life on the same logs, without timers of the first one."""
        loop = ManualLoop()
        loop.now_ms = self.loop.now_ms
        return ShareStates(
            logs=self.logs,
            loop=loop,
            topics=self.topics,
            updates_per_snapshot=self.settings.updates_per_snapshot,
        )

    @property
    def now_ms(self) -> int:
        return self.loop.clock().wall_ms

    @property
    def table(self) -> ShareStateTable:
        """The states of the first partition."""
        return self.coordinator.shards.at(0).state

    @property
    def records(self) -> list[JournalRecord]:
        """What is in the first partition of the log."""
        found = []
        for batch in self.logs[0].batches(self.logs[0].log_start_offset):
            for stored in read_records(batch):
                record = CODEC.decode(stored.key, stored.value)
                assert record is not None
                found.append(record)
        return found

    def initialize(
        self, key: SharePartitionKey = KEY, state_epoch: int = 1, start: int = NO_OFFSET
    ) -> None:
        self.coordinator.initialize(key, state_epoch, start, self.now_ms)

    def read(self, key: SharePartitionKey = KEY, leader_epoch: int = 0) -> ShareState:
        return self.coordinator.read(key, leader_epoch, self.now_ms)

    def write(
        self,
        *batches: DeliveryBatch,
        key: SharePartitionKey = KEY,
        start: int = NO_OFFSET,
        **fields: Any,
    ) -> None:
        fields = {"state_epoch": 1, "leader_epoch": 0, "delivery_complete_count": 0, **fields}
        write = StateWrite(start_offset=start, batches=batches, **fields)
        self.coordinator.write(key, write, self.now_ms)

    def delete(self, key: SharePartitionKey = KEY) -> None:
        self.coordinator.delete(key, self.now_ms)

    def summary(self, key: SharePartitionKey = KEY) -> ShareState:
        return self.coordinator.read_summary(key)
