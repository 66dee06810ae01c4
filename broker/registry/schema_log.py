"""The topic `_schemas`, from which the state of the registry is built by replaying its records.

The topic has one partition and is compacted. The first record that the registry writes creates it.
The registry writes nothing while the topic's cleanup.policy includes `delete`, because schemas
would be lost. Other Kafka clients may write to the topic too: another registry, or a tool that
moves schemas. So before the registry decides or answers, it reads the new records (`follow`). If
the topic is deleted, the registry is empty. If it is created again, the registry has only the
records of the new topic.

A record that cannot be understood is ignored, and the broker's log says so. All records of a batch
are ignored if one of them would take too long to handle. That is a record of more than
max.message.bytes after decompression, which the registry itself could not write, or one with very
many headers.
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
MAX_RECORDS_IN_BATCH = 100
# The limit of headers in a batch. One record may have all of them; reading it then takes some ms.
MAX_HEADERS = 10_000
_CONFIGS = {"cleanup.policy": "compact"}


class SchemaLog:
    """The topic's log, and the registry that is built from it.

    `registry` is a new object after the topic was deleted or created again. Only one `follow` or
    `append` may run at a time. They replay records in slices, so a caller that reads the state in
    slices must not do so meanwhile.
    """

    def __init__(self, broker: Broker) -> None:
        self.registry = Registry(RegistryState())
        self._broker = broker
        self._log: PartitionLog | None = None
        self._next_offset = 0
        # Whether `registry` has once had all records. It may lack records that are newer than that.
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

        If the log has records that are not replayed, appends nothing and returns False. The caller
        must then decide again, because its decision was made without them. Raises ApiError.
        """
        if made:
            await self._create_topic()
            self._check_policy()
        for first in range(0, len(made), MAX_RECORDS_IN_BATCH):
            now_ms = self._broker.clock.now_ms()
            part = made[first : first + MAX_RECORDS_IN_BATCH]
            stored = [Record(record.key, record.value, now_ms) for record in part]
            # Encoding, appending and replaying a megabyte of JSON takes 15 ms. Other requests are
            # served between two batches.
            await asyncio.sleep(0)
            if first == 0 and not self.is_current:
                return False
            await self._append(stored)
        return True

    async def _append(self, stored: Sequence[Record]) -> None:
        base_offset = await self._broker.own_appends.append(TOPIC, 0, build_batch(stored))
        if base_offset != self._next_offset:
            # Another client has written before these records. All are read in the log's order.
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
        """Raise ApiError if the topic's cleanup.policy includes `delete`.

        Confluent's registry does not start with such a topic.
        """
        log = self._find()
        if log is not None and log.config.delete:
            text = f"the topic {TOPIC} deletes old schemas; its cleanup.policy must be compact"
            raise ApiError(ErrorCode.INVALID_CONFIG, text)

    # -- reading -----------------------------------------------------------------------------------

    async def _replay_some(self, log: PartitionLog) -> None:
        """Read and replay up to READ_BYTES. Meanwhile the log may be deleted or cleaned."""
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
                # A batch that is stored may be larger than the limit, which may have been lowered.
                max_record_bytes = max(len(batch.data), log.config.max_message_bytes)
                try:
                    for record in await self._records(batch, max_record_bytes, slices):
                        slices.step()
                        # The first batch may begin before the offset that was read.
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
        """Decompress a batch, and return its records.

        Raises CorruptRecordError. Raises TooManyRecordsError, before a record is decoded, if one is
        larger than `max_record_bytes` or has too many headers.
        """
        content = await self._broker.fetching.batch_reads.content(batch, MAX_DECOMPRESSED_BYTES)
        for skim in slices.of(skim_payload(content, batch.header, MAX_HEADERS)):
            if skim.body_bytes > max_record_bytes:
                text = f"a record has {skim.body_bytes} bytes, more than {max_record_bytes}"
                raise TooManyRecordsError(text)
        return read_payload(content, batch.header)

    def _replay(self, record: Record, step: Step) -> None:
        """Apply a record to the state. Other requests may be served at each call of `step`."""
        if record.key is None:
            return
        try:
            self.registry.state.replay(record.key, record.value, record.timestamp_ms, step=step)
        except UnreadableError as error:
            logger.warning(
                "the record of %s at offset %d is ignored: %s", TOPIC, record.offset, error
            )
