"""The journal: decide, append, replay. All state that survives a restart is written this way.

    outcome = state.some_decision(...)      # pure: reads state, changes nothing
    reply = journal.commit(outcome, now_ms) # appends the records, replays them into the state,
                                            # and then changes soft state (outcome.then)

There is no await between deciding and replaying, so the state does not change in between. A long
decision is the exception: it is made and encoded in slices. A lock keeps others from changing what
the controller's depend on; one about a group is made again if the group has changed
(group_decisions.py, offset_deletion.py), and a group must allow a long commit of offsets before and
after it is encoded (offset_service.py). The append and the replay are one step, too. When the
append fails, or a record cannot be encoded, neither log nor state has changed, and the ApiError
goes to the client. A value with fields that its version does not have is replayed without them, as
a restart will read it.

The caller decides whether the reply also waits for an fsync of `journal.log`: `__cluster_metadata`
is synced before replies are sent, the coordinators' logs as `flush.messages` says.

Opening a journal replays its log, so a restart runs the same code as a commit. Replay skips control
batches other than transaction markers, and records of unknown types and versions (they stay in the
log). Transactional records are replayed where they are stored, with their producer's id, and the
marker after them: the uncommitted changes of open transactions are part of the state (offsets.py),
as in Kafka.

Kafka: CoordinatorRuntime and CoordinatorLoaderImpl; QuorumController for the metadata log.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from odradek.protocol.any_batch import read_any_header, read_any_records
from odradek.protocol.batch_header import HEADER_BYTES, MAGIC_V2, BatchHeader, CorruptRecordError
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError, EncodeError
from odradek.storage.append import EndMarker
from odradek.storage.log import AppendOrigin, PartitionLog

from .outcome import (
    JoinedRecord,
    JournalRecord,
    Outcome,
    ReplayContext,
    StateMachine,
    TransactionEnd,
)
from .producer import NO_PRODUCER, ProducerIdAndEpoch
from .record_codec import CorruptJournalError, RecordCodec
from .steps import Step, free, no_step, stepping

R = TypeVar("R")
Stored = tuple[JournalRecord | TransactionEnd, ReplayContext]
Encoded = tuple[JournalRecord, bytes | None, bytes | None]


CheckAppend = Callable[[PartitionLog], object]
Join = Callable[[Iterable[JournalRecord], Step], list[JoinedRecord]]


class Prepared(NamedTuple):
    """The records of an outcome as they are replayed, and their batch."""

    joined: list[JoinedRecord]
    batch: bytearray


logger = logging.getLogger(__name__)

# An upper bound of a record's bytes besides key and value: lengths, offset and timestamp deltas.
RECORD_OVERHEAD = 40


def not_joined(records: Iterable[JournalRecord], step: Step) -> list[JoinedRecord]:
    """Each record is replayed by itself."""
    return [JoinedRecord(record, 1) for record in stepping(records, step)]


class Journal:
    """One internal partition and the state machine that its records build."""

    def __init__(
        self,
        log: PartitionLog,
        state: StateMachine,
        codec: RecordCodec,
        *,
        compression: CompressionType = CompressionType.NONE,
        start_offset: int | None = None,
        append_errors: Mapping[ErrorCode, ErrorCode] = MappingProxyType({}),
        join: Join = not_joined,
    ) -> None:
        """Replay the log from `start_offset` (default: its start) into `state`.

        `join` makes of the records of one batch those that are replayed when it is appended. It
        reads no state. `append_errors` maps errors of an append to the errors that clients get.
        Raises CorruptJournalError for a record that can't be read.
        """
        self.log = log
        self._state = state
        self._codec = codec
        self._compression = compression
        self._append_errors = append_errors
        self._join = join
        # Raises ApiError if nothing may be appended now; None: there is nothing to check.
        self.check_append: CheckAppend | None = None
        first = log.log_start_offset if start_offset is None else start_offset
        stored = stored_records(log.batches(first), codec, log.name)
        try:
            replay_stored(stored, state, first, log.name)
        except (DecodeError, CorruptRecordError) as error:
            raise CorruptJournalError(f"{log.name}: {error}") from error

    def commit(
        self,
        outcome: Outcome[R],
        now_ms: int,
        producer: ProducerIdAndEpoch = NO_PRODUCER,
        prepared: Prepared | None = None,
        step: Step = no_step,
    ) -> R:
        """Append the outcome's records, replay them, call its `then`, and return its reply.

        `prepared`: what `prepare` has returned for this outcome; else the batch is made here, in
        steps. There is no step after the append has begun. With a `producer` the records belong to
        its transaction, see `end_transaction`.
        Raises the append's ApiError (MESSAGE_TOO_LARGE when the records do not fit one batch), and
        UNKNOWN_SERVER_ERROR for a record that cannot be encoded. Then nothing has changed, except
        that a non-atomic outcome keeps the batches before the one that failed.
        """
        if outcome.records:
            try:
                if prepared is None:
                    encoded = self._encode(outcome.records, step)
                    for chunk in (encoded,) if outcome.atomic else self._chunks(encoded):
                        ready = self._prepared(chunk, now_ms, producer, step)
                        self._append_and_replay(ready, now_ms, producer)
                else:
                    self._append_and_replay(prepared, now_ms, producer)
            except ApiError as error:
                known = self._known_to_clients(error)
                _report_failure(outcome, known.code)
                raise known from error
            except Exception:
                _report_failure(outcome, ErrorCode.UNKNOWN_SERVER_ERROR)
                raise
        for then in outcome.then:
            then()
        return outcome.reply

    def end_transaction(self, marker: EndMarker, now_ms: int) -> None:
        """Append the marker of a producer's transaction, and apply it to the state.

        Raises ApiError, see PartitionLog.append_marker. Then nothing has changed.
        """
        self.log.append_marker(marker, now_ms)
        self._state.end_transaction(marker.producer_id, committed=marker.is_commit)

    def prepare(
        self,
        outcome: Outcome[R],
        now_ms: int,
        step: Step,
        producer: ProducerIdAndEpoch = NO_PRODUCER,
    ) -> Prepared | None:
        """Make the batch of an outcome for `commit` at `now_ms`, in steps; None: it has no records.

        Raises ApiError as `commit`.
        """
        assert outcome.atomic, "its records share one batch"
        if not outcome.records:
            return None
        try:
            encoded = self._encode(outcome.records, step)
            return self._prepared(encoded, now_ms, producer, step)
        except ApiError as error:
            raise self._known_to_clients(error) from error

    def _known_to_clients(self, error: ApiError) -> ApiError:
        return ApiError(self._append_errors.get(error.code, error.code), error.message)

    def _prepared(
        self,
        chunk: list[Encoded],
        now_ms: int,
        producer: ProducerIdAndEpoch,
        step: Step,
    ) -> Prepared:
        self._check_size(chunk, step)
        joined = self._join((record for record, _, _ in chunk), step)
        batch = build_batch(
            (Record(key, value, now_ms) for _, key, value in stepping(chunk, step)),
            compression=self._compression,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            is_transactional=producer is not NO_PRODUCER,
        )
        free(step, chunk)
        return Prepared(joined, batch)

    def _check_size(self, chunk: Iterable[Encoded], step: Step) -> None:
        """Raise ApiError MESSAGE_TOO_LARGE, as the append of a batch that is much too large.

        It takes 2 ms to make a megabyte of it first.
        """
        limit = self.log.config.max_message_bytes
        size = sum(len(key or b"") + len(value or b"") for _, key, value in stepping(chunk, step))
        if self._compression is CompressionType.NONE and size > limit:
            text = f"records of {size} bytes are over max.message.bytes ({limit})"
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, text)

    def _append_and_replay(
        self, prepared: Prepared, now_ms: int, producer: ProducerIdAndEpoch
    ) -> None:
        if self.check_append is not None:
            self.check_append(self.log)
        result = self.log.append(prepared.batch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        _replay_joined(
            prepared.joined,
            lambda index: ReplayContext(result.base_offset + index, now_ms, *producer),
            self._state,
            self.log.name,
        )

    def _encode(self, records: Sequence[JournalRecord], step: Step) -> list[Encoded]:
        try:
            return [self._encoded(record, step) for record in stepping(records, step)]
        except EncodeError as error:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.log.name}: {error}") from error

    def _chunks(self, encoded: Iterable[Encoded]) -> Iterator[list[Encoded]]:
        """Divide records that need not be in one batch; each list goes into one."""
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

    def _encoded(self, record: JournalRecord, step: Step) -> Encoded:
        """Return the record as a restart will read it, with its key and value bytes."""
        key, value = self._codec.encode(record, None if step is no_step else step)
        if self._codec.is_cut(record):
            stored = self._codec.decode(key, value)
            assert stored is not None, "what has been written can be read"
            record = stored
        return record, key, value


def _report_failure(outcome: Outcome[object], error: ErrorCode) -> None:
    if outcome.otherwise is not None:
        outcome.otherwise(error)


def stored_records(
    batches: Iterable[memoryview], codec: RecordCodec, log_name: str
) -> Iterator[Stored]:
    """Iterate over the typed records and transaction markers of stored batches, in log order.

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
        logger.warning("%s: kept %d records of unknown type or version", log_name, unknown)


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
            _replay(record, context, state, log_name)


def _replay_joined(
    joined: Iterable[JoinedRecord],
    context_of: Callable[[int], ReplayContext],
    state: StateMachine,
    log_name: str,
) -> None:
    """Replay joined records; `context_of` has the context of each record that they stand for.

    Raises CorruptJournalError for one that contradicts those before it.
    """
    replayed = 0
    for each in joined:
        replayed += each.count
        _replay(each.record, context_of(replayed - 1), state, log_name)


def _replay(
    record: JournalRecord, context: ReplayContext, state: StateMachine, log_name: str
) -> None:
    try:
        state.replay(record, context)
    except LookupError as error:
        raise CorruptJournalError(
            f"{log_name}, offset {context.offset}: {type(record.value).__name__} "
            f"names something that does not exist: {error}"
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
