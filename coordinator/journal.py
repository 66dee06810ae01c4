"""The journal: decide, append, replay. The one mechanism by which odradek remembers.

    outcome = state.some_decision(...)      # pure: reads state, changes nothing
    reply = journal.commit(outcome, now_ms) # appends the records, replays them into the state,
                                            # and then changes what is soft

There is no await between deciding and replaying, so decisions see the state that their records will
meet. When the append fails, or a record cannot be encoded, neither log nor state has changed, and
the ApiError goes to the client. A value that its version cannot carry whole is replayed as a
restart will read it, without the rest.
Whether the reply also waits for fsync is the caller's affair (`journal.log`): `__cluster_metadata`
is synced before its replies leave, the coordinators' logs as `flush.messages` says.

Opening a journal replays its log, so a restart runs the same code as a life. Left out on the way:
control batches other than transaction markers, and records of types and versions that we do not
know (they stay in the log). Records of a transaction are replayed when they are met, under their
producer's id, and its marker after them: what an open transaction may yet change is part of the
state (offsets.py), as with Kafka.

Kafka: CoordinatorRuntime and CoordinatorLoaderImpl; QuorumController for the metadata log.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from odradek.protocol.any_batch import read_any_header, read_any_records
from odradek.protocol.batch_header import MAGIC_V2
from odradek.protocol.declaration import cut_fields
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CompressionType,
    CorruptRecordError,
    build_batch,
)
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError, EncodeError, Message
from odradek.storage.log import AppendOrigin, PartitionLog

from .outcome import JournalRecord, Outcome, ReplayContext, StateMachine, TransactionEnd
from .record_codec import RecordCodec

R = TypeVar("R")
Stored = tuple[JournalRecord | TransactionEnd, ReplayContext]
Encoded = tuple[JournalRecord, bytes | None, bytes | None]

logger = logging.getLogger(__name__)

# At most this much is added to key and value by a record's own varints, offsets and timestamps.
RECORD_OVERHEAD = 40


class CorruptJournalError(Exception):
    """A record in an internal log cannot be read; names the log, the offset and the reason."""


class Journal:
    """One internal partition and the state machine that is the sum of its records."""

    def __init__(
        self,
        log: PartitionLog,
        state: StateMachine,
        codec: RecordCodec,
        *,
        compression: CompressionType = CompressionType.NONE,
        start_offset: int | None = None,
        append_errors: Mapping[ErrorCode, ErrorCode] = MappingProxyType({}),
    ) -> None:
        """Replay the log from `start_offset` (default: its start) into `state`.

        `append_errors`: what clients are told instead of an append's error.
        Raises CorruptJournalError for a record that can't be read.
        """
        self.log = log
        self._state = state
        self._codec = codec
        self._compression = compression
        self._append_errors = append_errors
        first = log.log_start_offset if start_offset is None else start_offset
        stored = stored_records(log.batches(first), codec, log.name)
        try:
            replay_stored(stored, state, first, log.name)
        except (DecodeError, CorruptRecordError) as error:
            raise CorruptJournalError(f"{log.name}: {error}") from error

    def commit(self, outcome: Outcome[R], now_ms: int) -> R:
        """Append the outcome's records, replay them, do what follows, and return its reply.

        Raises the append's ApiError (MESSAGE_TOO_LARGE when the records do not fit one batch), and
        UNKNOWN_SERVER_ERROR for a record that cannot be encoded. Nothing has changed then, except
        that batches of a non-atomic outcome before the one that failed stay.
        """
        if outcome.records:
            try:
                for chunk in self._chunks(outcome):
                    self._append_and_replay(chunk, now_ms)
            except ApiError as error:
                code = self._append_errors.get(error.code, error.code)
                _give_up(outcome, code)
                raise ApiError(code, error.message) from error
            except Exception:
                _give_up(outcome, ErrorCode.UNKNOWN_SERVER_ERROR)
                raise
        for then in outcome.then:
            then()
        return outcome.reply

    def _append_and_replay(self, chunk: list[Encoded], now_ms: int) -> None:
        batch = build_batch(
            [Record(key, value, now_ms) for _, key, value in chunk], compression=self._compression
        )
        result = self.log.append(batch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        for offset, (record, _, _) in enumerate(chunk, result.base_offset):
            self._state.replay(record, ReplayContext(offset, now_ms))

    def _chunks(self, outcome: Outcome[object]) -> Iterator[list[Encoded]]:
        """The records, encoded, in lists that go into one batch each."""
        try:
            encoded = [self._encoded(record) for record in outcome.records]
        except EncodeError as error:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.log.name}: {error}") from error
        if outcome.atomic:
            yield encoded
            return
        limit = self.log.config.max_message_bytes - HEADER_BYTES
        chunk: list[Encoded] = []
        size = 0
        for item in encoded:
            item_size = RECORD_OVERHEAD + len(item[1] or b"") + len(item[2] or b"")
            if chunk and size + item_size > limit:
                yield chunk
                chunk, size = [], 0
            chunk.append(item)
            size += item_size
        yield chunk

    def _encoded(self, record: JournalRecord) -> Encoded:
        """The record as a restart will read it, and its bytes."""
        key, value = self._codec.encode(record)
        if record.value is not None and _is_cut(record.value, record.value_version):
            stored = self._codec.decode(key, value)
            assert stored is not None, "what has been written can be read"
            record = stored
        return record, key, value


def _give_up(outcome: Outcome[object], error: ErrorCode) -> None:
    if outcome.otherwise is not None:
        outcome.otherwise(error)


def _is_cut(value: Message, version: int) -> bool:
    """Whether the value says something that its version cannot carry."""
    for name, default in _cut_defaults(type(value), version):  # no generator: once for each record
        if getattr(value, name) != default:
            return True
    return False


@cache
def _cut_defaults(message: type[Message], version: int) -> tuple[tuple[str, object], ...]:
    return tuple((field.name, field.default) for field in cut_fields(message, version))


def stored_records(
    batches: Iterable[memoryview], codec: RecordCodec, log_name: str
) -> Iterator[Stored]:
    """The typed records of stored batches, and the ends of transactions, as they lie there.

    Raises CorruptJournalError; `log_name` is for its message.
    """
    unknown = 0
    for batch in batches:
        header = read_any_header(batch)
        if header.is_control:
            if header.is_transactional and header.record_count:  # else the cleaner emptied it
                yield from _transaction_end(batch, header)
            continue
        read = 0
        for record, context in _typed_records(batch, header, codec, log_name):
            read += record.unread is None
            yield record, context
        if header.magic == MAGIC_V2:  # the others do not count their records
            unknown += header.record_count - read
    if unknown:
        logger.warning("%s: carried along %d records of unknown type or version", log_name, unknown)


def _transaction_end(batch: memoryview, header: BatchHeader) -> Iterator[Stored]:
    marker = next(read_records(batch, header=header))
    kind = control_type(marker.key)
    if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
        end = TransactionEnd(header.producer_id, kind is ControlRecordType.COMMIT)
        producer = (header.producer_id, header.producer_epoch)
        yield end, ReplayContext(marker.offset, marker.timestamp_ms, *producer)


def replay_stored(
    stored: Iterable[Stored], state: StateMachine, first_offset: int, log_name: str
) -> None:
    """Replay the stored records from `first_offset` on.

    Raises CorruptJournalError for one that contradicts those before it.
    """
    for record, context in stored:
        if context.offset < first_offset:
            continue
        if isinstance(record, TransactionEnd):
            state.end_transaction(record.producer_id, committed=record.committed)
        else:
            try:
                state.replay(record, context)
            except LookupError as error:
                raise CorruptJournalError(
                    f"{log_name}, offset {context.offset}: {type(record.value).__name__} "
                    f"names something that is not there: {error}"
                ) from error


def _typed_records(
    batch: memoryview, header: BatchHeader, codec: RecordCodec, log_name: str
) -> Iterator[tuple[JournalRecord, ReplayContext]]:
    offset = header.base_offset
    try:
        for record in read_any_records(batch, header):
            offset = record.offset
            typed = codec.decode(record.key, record.value)
            if typed is not None:
                context = ReplayContext(
                    offset, record.timestamp_ms, header.producer_id, header.producer_epoch
                )
                yield typed, context
    except (DecodeError, CorruptRecordError) as error:
        raise CorruptJournalError(f"{log_name}, offset {offset}: {error}") from error
