"""Resolves the starting and ending positions of the options to an offset for each partition."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.range_reader import DataLostError
from odradek.storage.topic_partition import TopicPartition

from .options import ReadOptions
from .origin import Origin
from .positions import (
    EARLIEST,
    LATEST,
    AtTime,
    ByOffset,
    ByTime,
    Everywhere,
    Offsets,
    Position,
    format_partitions,
)

_logger = logging.getLogger(__name__)

Bounds = Mapping[TopicPartition, OffsetBounds]
Found = TypeVar("Found")

_LOOKS = 10
_WAIT_S = 0.2


def selected_partitions(origin: Origin, options: ReadOptions) -> list[TopicPartition]:
    """Return the existing partitions that the options select.

    Raises DataLostError if a topic or partition that is named does not exist (failOnDataLoss).
    """
    existing = origin.partitions()
    missing = options.topics.missing(existing)
    if missing:
        report_loss(options, f"not found: {', '.join(missing)}")
    return options.topics.choose(existing)


def bounds_of(
    origin: Origin, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, OffsetBounds]:
    """Return the bounds of those partitions that exist. Looks again for the others."""
    return _found_again(partitions, origin.bounds)


def required_bounds(
    origin: Origin, options: ReadOptions, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, OffsetBounds]:
    """Do the same. Raises DataLostError if one does not exist (failOnDataLoss)."""
    bounds = bounds_of(origin, partitions)
    _report_missing(options, partitions, bounds)
    return bounds


def _found_again(
    partitions: Collection[TopicPartition],
    find: Callable[[list[TopicPartition]], dict[TopicPartition, Found]],
) -> dict[TopicPartition, Found]:
    """Return what is found of partitions that exist; looks again for those that are not found.

    A partition is not found for a moment while it is moved to another log directory, or if its
    leader does not know yet that it is the leader. Such a partition has rows.
    """
    found: dict[TopicPartition, Found] = {}
    for look in range(_LOOKS):
        missing = [each for each in partitions if each not in found]
        if not missing:
            break
        if look > 0:
            time.sleep(_WAIT_S)
        found |= find(missing)
    return found


def _report_missing(
    options: ReadOptions, wanted: Collection[TopicPartition], found: Collection[TopicPartition]
) -> None:
    missing = set(wanted) - set(found)
    if missing:
        report_loss(options, f"{format_partitions(missing)} no longer exist; data may be lost")


def report_loss(options: ReadOptions, what: str, otherwise: str = "continues without") -> None:
    """Raise DataLostError, or log a warning if failOnDataLoss is false."""
    if options.fail_on_data_loss:
        raise DataLostError(f"{what} (failOnDataLoss=false {otherwise})")
    _logger.warning("%s", what)


def starting_offsets(
    origin: Origin, options: ReadOptions, bounds: Bounds
) -> dict[TopicPartition, int]:
    """Return where to begin in each of these partitions. Raises OptionError, DataLostError."""
    offsets = _resolve(origin, "starting", options.starting, bounds)
    _report_missing(options, bounds, offsets)
    for partition, offset in offsets.items():
        if offset is None and not options.latest_if_no_match:
            raise OptionError(
                f"No offset matched from request of starting timestamp in {partition}: all records "
                "are older (startingOffsetsByTimestampStrategy=latest begins at its end)"
            )
    return _within(options, offsets, bounds)


def ending_offsets(
    origin: Origin, options: ReadOptions, bounds: Bounds
) -> dict[TopicPartition, int]:
    """Return where to end. Raises OptionError, DataLostError."""
    offsets = _resolve(origin, "ending", options.ending, bounds)
    _report_missing(options, bounds, offsets)
    return _within(options, offsets, bounds)


def _resolve(
    origin: Origin, edge: str, position: Position, bounds: Bounds
) -> dict[TopicPartition, int | None]:
    """Return the offset of each partition; None if all its records are older."""
    match position:
        case Everywhere(offset):
            return {partition: _resolve_offset(offset, bounds[partition]) for partition in bounds}
        case ByOffset(offsets):
            _check_same(f"{edge}Offsets", "TopicPartitions", offsets, bounds)
            return {
                partition: _resolve_offset(offset, bounds[partition])
                for partition, offset in offsets.items()
                if partition in bounds
            }
        case AtTime(timestamp_ms):
            return _offsets_at(origin, dict.fromkeys(bounds, timestamp_ms), bounds)
        case ByTime(timestamps_ms):
            _check_same(f"{edge}OffsetsByTimestamp", "topics", timestamps_ms, bounds)
            return _offsets_at(origin, timestamps_ms, bounds)


def _offsets_at(
    origin: Origin, timestamps_ms: Offsets, bounds: Bounds
) -> dict[TopicPartition, int | None]:
    def find(missing: list[TopicPartition]) -> dict[TopicPartition, int | None]:
        return origin.offsets_at({each: timestamps_ms[each] for each in missing}, bounds)

    return _found_again(bounds, find)


def _resolve_offset(offset: int, bounds: OffsetBounds) -> int:
    if offset == EARLIEST:
        return bounds.start
    return bounds.end if offset == LATEST else offset


def _check_same(
    option: str, what: str, given: Offsets, assigned: Collection[TopicPartition]
) -> None:
    if set(given) != set(assigned):
        raise OptionError(
            f"If {option} contains specific offsets, you must specify all {what}. "
            f"Use -1 for latest, -2 for earliest. "
            f"Specified: {format_partitions(given)}. Assigned: {format_partitions(assigned)}"
        )


def _within(
    options: ReadOptions, offsets: Mapping[TopicPartition, int | None], bounds: Bounds
) -> dict[TopicPartition, int]:
    """Clip offsets to the bounds, or raise DataLostError for those outside (failOnDataLoss).

    None stands for the end of the partition.
    """
    clipped: dict[TopicPartition, int] = {}
    for partition, offset in offsets.items():
        start, end = bounds[partition]
        clipped[partition] = end if offset is None else min(max(offset, start), end)
        if offset not in (None, clipped[partition]):
            report_loss(options, f"offset {offset} of {partition} is not in [{start}, {end}]")
    return clipped
