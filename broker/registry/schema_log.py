"""The topic `_schemas`: what the registry knows is what this log says.

The topic has one partition and is compacted. It is created with the first record that the registry
writes. To one that others have created with the policy `delete` nothing is written. Others may
write to it too, through Kafka: another registry, or a tool that moves schemas. So before the
registry decides or answers, it reads what is new (`follow`). A topic that is deleted leaves an
empty registry, and one that is created again begins with its own records.

Records that cannot be understood are left out, with a line in the broker's log. So are the records
of a batch with a record that would take too long: one that unpacks to more than max.message.bytes,
which is more than the registry itself can write, or one with very many headers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

from odradek.broker.broker import Broker
from odradek.broker.disk.batch_reads import StoredBatch
from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.registry import records
from odradek.coordinator.registry.records import UnreadableError
from odradek.coordinator.registry.registry import Registry
from odradek.coordinator.registry.schemas import TOPIC
from odradek.coordinator.registry.state import RegistryState
from odradek.coordinator.runtime.steps import Step
from odradek.protocol.batch_header import CorruptRecordError, TooManyRecordsError
from odradek.protocol.compression import MAX_DECOMPRESSED_BYTES
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, read_payload, skim_payload
from odradek.protocol.record_batch import build_batch
from odradek.storage.log import PartitionLog

logger = logging.getLogger("odradek.registry")

READ_BYTES = 256 * 1024
# More records are appended as several batches. Other requests are served between two of them.
MAX_AT_ONCE = 100
MAX_HEADERS = 10_000  # of a batch: one record may have them all, and takes some ms then
_CONFIGS = {"cleanup.policy": "compact"}


class SchemaLog:
    """The log and the registry that follows it. `registry` is replaced when the topic is.

    Only one `follow` or `append` may run at a time. What reads the state in slices must not run
    meanwhile: records are replayed in slices, too.
    """

    def __init__(self, broker: Broker) -> None:
        self.registry = Registry(RegistryState())
        self._broker = broker
        self._log: PartitionLog | None = None
        self._next_offset = 0
        # Whether this registry has been read to the end once. It may lack the newest records.
        self.is_whole = False

    @property
    def is_current(self) -> bool:
        """Whether all records are replayed. Raises ApiError if the log cannot be read."""
        log = self._find()
        return log is self._log and (log is None or self._next_offset >= log.high_watermark)

    async def follow(self) -> None:
        """Replay the records that are new. Raises ApiError."""
        while not self.is_current:
            log = self._find()
            if log is not self._log:
                self._log, self._next_offset = log, 0
                self.registry, self.is_whole = Registry(RegistryState()), False
            elif log is not None:
                await self._replay_some(log)
        self.is_whole = True

    async def append(self, made: Sequence[records.Record]) -> bool:
        """Append records and replay them.

        Returns False, and has appended nothing, if this registry did not know all records of the
        log: the decision that made these must be made again. Raises ApiError.
        """
        if made:
            await self._create_topic()
            self._check_policy()
        for first in range(0, len(made), MAX_AT_ONCE):
            now_ms = self._broker.clock.now_ms()
            part = made[first : first + MAX_AT_ONCE]
            stored = [Record(record.key, record.value, now_ms) for record in part]
            # Writing a megabyte of JSON, appending it, and reading it again takes 15 ms. Others
            # are served in between.
            await asyncio.sleep(0)
            if first == 0 and not self.is_current:
                return False
            await self._append(stored)
        return True

    async def _append(self, stored: Sequence[Record]) -> None:
        base_offset = await self._broker.own_appends.append(TOPIC, 0, build_batch(stored))
        if base_offset != self._next_offset:  # others have written
            await self.follow()
            return

        async def replay(slices: Slices) -> None:
            for record in stored:
                slices.step()
                self._replay(record, slices.step)

        await self._broker.turns.slices.run(replay)
        self._next_offset += len(stored)

    # -- the topic ---------------------------------------------------------------------------------

    def _find(self) -> PartitionLog | None:
        """Return the log, or None if there is no topic. Raises ApiError if it cannot be used."""
        topic = self._broker.metadata.topics.get(TOPIC)
        if topic is None:
            return None
        if len(topic.partitions) != 1:
            text = f"the topic {TOPIC} has {len(topic.partitions)} partitions; it must have one"
            raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
        return self._broker.log_manager.get(TOPIC, 0)

    async def _create_topic(self) -> None:
        if TOPIC in self._broker.metadata.topics:
            return
        new = NewTopic(name=TOPIC, partition_count=1, replication_factor=1, configs=_CONFIGS)
        for result in (await self._broker.admin.topics.create([new])).values():
            exists = ErrorCode.TOPIC_ALREADY_EXISTS
            if isinstance(result, ApiError) and result.code is not exists:
                raise result

    def _check_policy(self) -> None:
        """Raise ApiError if old schemas would be deleted. Confluent's registry does not start."""
        log = self._find()
        if log is not None and log.config.delete:
            text = f"the topic {TOPIC} deletes old schemas; its cleanup.policy must be compact"
            raise ApiError(ErrorCode.INVALID_CONFIG, text)

    # -- reading -----------------------------------------------------------------------------------

    async def _replay_some(self, log: PartitionLog) -> None:
        """Read on in the log. It may be deleted, or its segments be replaced, meanwhile."""
        offset = self._next_offset = max(self._next_offset, log.log_start_offset)
        if offset >= log.high_watermark:
            return
        try:
            batches = await self._broker.fetching.batch_reads.read(log, offset, READ_BYTES)
            await self._broker.turns.slices.run(
                lambda slices: self._replay_all(log, batches, slices)
            )
        except CorruptRecordError as error:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{log.name}: {error}") from error
        except (OSError, EOFError) as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name}: {error}") from error
        if self._next_offset == offset:
            text = f"{log.name} cannot be read from offset {offset} on"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)

    async def _replay_all(
        self, log: PartitionLog, batches: Iterator[StoredBatch], slices: Slices
    ) -> None:
        for batch in batches:
            header = batch.header
            if not header.is_control:
                max_record_bytes = max(len(batch.data), log.config.max_message_bytes)
                try:
                    for record in await self._records(batch, max_record_bytes, slices):
                        slices.step()
                        if record.offset >= self._next_offset:
                            self._replay(record, slices.step)
                except TooManyRecordsError as error:
                    logger.warning(
                        "the records of %s from offset %d to %d are ignored: %s",
                        TOPIC,
                        header.base_offset,
                        header.last_offset,
                        error,
                    )
            self._next_offset = max(self._next_offset, header.last_offset + 1)

    async def _records(
        self, batch: StoredBatch, max_record_bytes: int, slices: Slices
    ) -> Iterator[Record]:
        """Raises CorruptRecordError; TooManyRecordsError if a record would take too long."""
        content = await self._broker.fetching.batch_reads.content(batch, MAX_DECOMPRESSED_BYTES)
        for skim in slices.of(skim_payload(content, batch.header, MAX_HEADERS)):
            if skim.size_bytes > max_record_bytes:
                text = f"a record has {skim.size_bytes} bytes, more than {max_record_bytes}"
                raise TooManyRecordsError(text)
        return read_payload(content, batch.header)

    def _replay(self, record: Record, step: Step) -> None:
        if record.key is None:
            return
        try:
            self.registry.state.replay(record.key, record.value, record.timestamp_ms, step=step)
        except UnreadableError as error:
            logger.warning(
                "the record of %s at offset %d is ignored: %s", TOPIC, record.offset, error
            )
