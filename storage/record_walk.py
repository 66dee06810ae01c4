"""Walks the records of a produced batch: reads them one by one, within limits.

The header says little about the cost of a walk. A batch of a kilobyte can hold gigabytes, or many
thousand empty records, headers, or parts of a compressed stream. So a walk has limits, in bytes and
in steps, and raises TooManyRecordsError when it reaches one. Then it is started again in a place
with higher limits:

    AT_ONCE     on the event loop, which does nothing else meanwhile: about 0.3 ms, which is what
                the loop takes to send a batch of 100 KiB to a process
    SHORT       in a worker process: about half a second
    LONG        in another worker process: up to a minute

LONG is the highest limit; Kafka has none. A batch that would unpack to more than
`LONG.unpacked_bytes` is refused with MESSAGE_TOO_LARGE, because a Java producer then splits it and
sends both halves. With INVALID_RECORD or CORRUPT_MESSAGE it would drop the records. The limit is
that of a whole request (the default of socket.request.max.bytes), or `max.message.bytes` if that is
larger: no client could send more without compression.

No list of the records is made. For a batch that is rebuilt with another codec, memory holds at most
its unpacked records twice and its packed records once.

Kafka: LogValidator.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from odradek.protocol.batch_header import (
    COMPRESSION_MASK,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptRecordError,
    TooManyRecordsError,
    read_header,
)
from odradek.protocol.compression import MAX_DECOMPRESSED_BYTES, NO_LIMIT, Buffer, CompressionType
from odradek.protocol.conversion import convert_down, convert_up
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import payload, read_payload, skim_payload
from odradek.protocol.record_batch import build_batch

from .append_rules import AppendRules

_ERRORS_SHOWN = 3
STAMPED_BY_PRODUCER = "a producer may not set the timestamp type LogAppendTime"
# Kafka names every record at fault. 10 000 of them make a response of a megabyte; a batch could
# have millions.
_ERRORS_KEPT = 10_000
# The cost, in steps, to read one message of an old format and write it as a record, and to unpack
# an empty part of a compressed stream.
_STEPS_OF_A_MESSAGE = 4
STEPS_OF_A_PART = 4


class WalkLimits(NamedTuple):
    """A step is the cost of one record, or of one header of a record: about a microsecond."""

    unpacked_bytes: int
    steps: int


AT_ONCE = WalkLimits(128 << 10, 256)
SHORT = WalkLimits(16 << 20, 200_000)
LONG = WalkLimits(100 << 20, NO_LIMIT)


class WalkTooLongError(Exception):
    """The walk takes longer than the caller may wait.

    `walk(batch, limits=...)` must be called elsewhere. `walk` can be pickled; `batch` is a copy,
    because the caller's buffer may be reused. `walk` returns the WalkedRecords of a batch, or the
    batch that was made from a message set. It raises what `walk_records` and `convert_messages`
    raise.
    """

    def __init__(
        self, reason: str, batch: bytes, walk: "Callable[..., WalkedRecords | bytearray]"
    ) -> None:
        super().__init__(reason)
        self.batch = batch
        self.walk = walk


class RecordsRefusedError(ApiError):
    """Single records of a batch are at fault; Produce v8 and later names each (KIP-467)."""

    def __init__(self, code: ErrorCode, message: str, records: Sequence[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(records)


class WalkedRecords(NamedTuple):
    """The result of a walk: the newest timestamp, and the rebuilt batch if it must be replaced."""

    newest_ms: int
    rebuilt: bytes | None = None


def changes_codec(header: BatchHeader, rules: AppendRules) -> bool:
    """Whether the topic's codec differs from the producer's."""
    return (
        rules.compression is not None and header.attributes & COMPRESSION_MASK != rules.compression
    )


def walk_records(
    batch: Buffer, *, rules: AppendRules, now_ms: int, limits: WalkLimits
) -> WalkedRecords:
    """Check each record of one whole batch with a valid header; rebuild the batch if needed.

    Raises ApiError with INVALID_RECORD or MESSAGE_TOO_LARGE, RecordsRefusedError, and
    TooManyRecordsError when it reaches a limit.
    """
    try:
        return _walk(batch, rules, now_ms, limits)
    except TooManyRecordsError as error:
        raise _final_error(error, limits) from None
    except CorruptRecordError as error:
        raise invalid(str(error)) from error


def convert_messages(
    messages: Buffer, *, log_append_time: bool, max_message_bytes: int, limits: WalkLimits
) -> bytearray:
    """Make a v2 batch from a message set. Raises as `convert_up` and `walk_records`."""
    try:
        return convert_up(
            messages,
            log_append_time=log_append_time,
            max_message_bytes=max_message_bytes,
            max_bytes=_unpacked_bytes(limits, max_message_bytes),
            max_messages=limits.steps // _STEPS_OF_A_MESSAGE,
        )
    except TooManyRecordsError as error:
        raise _final_error(error, limits) from None
    except CorruptRecordError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None


def convert_stored(batches: Buffer, *, magic: int, first_offset: int, limits: WalkLimits) -> bytes:
    """Convert stored batches to a message set, see `convert_down`.

    Raises ApiError, and TooManyRecordsError when it reaches a limit before the first message.
    """
    try:
        return convert_down(
            batches,
            magic=magic,
            first_offset=first_offset,
            max_input_bytes=len(batches),
            # Stored batches may not have been walked. In another process (LONG) the limit is that
            # of all readers.
            max_bytes=MAX_DECOMPRESSED_BYTES if limits == LONG else limits.unpacked_bytes,
            max_records=limits.steps // _STEPS_OF_A_MESSAGE,
        )
    except CorruptRecordError as error:
        if isinstance(error, TooManyRecordsError) and limits != LONG:
            raise
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None


def invalid(message: str) -> ApiError:
    """An INVALID_RECORD error with that message."""
    return ApiError(ErrorCode.INVALID_RECORD, message)


def too_large(size_bytes: int, rules: AppendRules) -> ApiError:
    """A MESSAGE_TOO_LARGE error for a batch of that size."""
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size_bytes} bytes is over max.message.bytes ({rules.max_message_bytes})",
    )


def _final_error(error: TooManyRecordsError, limits: WalkLimits) -> Exception:
    """The error itself, or a refusal at the highest limits, after which there are no others."""
    return ApiError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) if limits == LONG else error


def _unpacked_bytes(limits: WalkLimits, max_message_bytes: int) -> int:
    return max(limits.unpacked_bytes, max_message_bytes if limits == LONG else 0)


def _walk(batch: Buffer, rules: AppendRules, now_ms: int, limits: WalkLimits) -> WalkedRecords:
    header = read_header(batch)
    if header.record_count > limits.steps:
        raise TooManyRecordsError(f"{header.record_count} records")
    compressed = header.attributes & COMPRESSION_MASK != CompressionType.NONE
    max_bytes = _unpacked_bytes(limits, rules.max_message_bytes) if compressed else len(batch)
    inside = payload(batch, header, max_bytes, limits.steps // STEPS_OF_A_PART)
    newest_ms, consecutive = _check_each(inside, header, rules, now_ms, limits)
    rebuilt = None
    if changes_codec(header, rules) or (compressed and not consecutive):
        rebuilt = _rebuild(inside, header, rules)
    return WalkedRecords(newest_ms, rebuilt)


def _check_each(
    inside: bytes, header: BatchHeader, rules: AppendRules, now_ms: int, limits: WalkLimits
) -> tuple[int, bool]:
    """Check each record; return the newest timestamp and whether offsets are consecutive."""
    max_bytes = rules.max_record_bytes if header.attributes & COMPRESSION_MASK else NO_LIMIT
    wants_keys, is_append_time = rules.compacted, header.is_log_append_time
    # STAMPED_BY_PRODUCER says more than is refused: as in Kafka, a topic that keeps the producer's
    # timestamps refuses only records without one. Kafka: LogValidator.validateTimestamp.
    accepts_append_time = not rules.log_append_time
    oldest_ms, latest_ms = _bounds(rules, now_ms)
    newest_ms, consecutive = None, True
    refused, code = [], ErrorCode.INVALID_RECORD
    errors = 0
    for index, (delta, timestamp_ms, has_key, body_bytes) in enumerate(
        skim_payload(inside, header, limits.steps)
    ):
        if body_bytes > max_bytes:  # Kafka: DefaultRecord.readFrom
            raise invalid(
                f"a record of {body_bytes} bytes is over max.decompressed.message.bytes"
                f" ({max_bytes})"
            )
        if newest_ms is None or timestamp_ms > newest_ms:
            newest_ms = timestamp_ms
        if delta != index:
            consecutive = False
        if wants_keys and not has_key:
            why = "a compacted topic accepts no record without a key"
        elif is_append_time and not (accepts_append_time and timestamp_ms != NO_TIMESTAMP):
            code = ErrorCode.INVALID_TIMESTAMP
            why = STAMPED_BY_PRODUCER
        elif not oldest_ms <= timestamp_ms <= latest_ms and timestamp_ms != NO_TIMESTAMP:
            code = ErrorCode.INVALID_TIMESTAMP
            why = _out_of_bounds(timestamp_ms, rules, now_ms)
        else:
            continue
        errors += 1
        if errors <= _ERRORS_KEPT:
            refused.append((index, why))
    if errors:
        shown = "; ".join(f"record {index}: {why}" for index, why in refused[:_ERRORS_SHOWN])
        message = f"{errors} of {header.record_count} records: {shown}"
        raise RecordsRefusedError(code, message, refused)
    return NO_TIMESTAMP if newest_ms is None else newest_ms, consecutive


def _bounds(rules: AppendRules, now_ms: int) -> tuple[int, int]:
    """The oldest and the latest timestamp that the topic accepts."""
    if rules.log_append_time:
        return -NO_LIMIT - 1, NO_LIMIT
    return now_ms - rules.timestamp_before_max_ms, now_ms + rules.timestamp_after_max_ms


def _out_of_bounds(timestamp_ms: int, rules: AppendRules, now_ms: int) -> str:
    """The reason to refuse a timestamp: the limit, the broker's time and the setting."""
    if timestamp_ms > now_ms:
        setting = f"message.timestamp.after.max.ms={rules.timestamp_after_max_ms}"
        limit_ms = now_ms + rules.timestamp_after_max_ms
        return f"timestamp {timestamp_ms} is after {limit_ms} (now {now_ms}, {setting})"
    setting = f"message.timestamp.before.max.ms={rules.timestamp_before_max_ms}"
    limit_ms = now_ms - rules.timestamp_before_max_ms
    return f"timestamp {timestamp_ms} is before {limit_ms} (now {now_ms}, {setting})"


def _rebuild(inside: bytes, header: BatchHeader, rules: AppendRules) -> bytes:
    """A new batch with the same records, compressed with the topic's codec."""
    compression = header.compression if rules.compression is None else rules.compression
    batch = build_batch(
        read_payload(inside, header),
        compression=compression,
        compression_level=rules.compression_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
    if len(batch) > rules.max_message_bytes:
        raise too_large(len(batch), rules)
    return bytes(batch)
