"""From where the options say to begin and to end to an offset for each partition."""

import logging
from collections.abc import Collection, Mapping

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.pipeline.reading.range_reader import DataLostError

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
    named,
)

_logger = logging.getLogger(__name__)

Bounds = Mapping[TopicPartition, OffsetBounds]


def wanted_partitions(origin: Origin, options: ReadOptions) -> list[TopicPartition]:
    """Those that the options mean and that are there.

    Raises DataLostError where some that are called by name are not there and that must not be.
    """
    there = origin.partitions()
    missing = options.topics.missing(there)
    if missing:
        report_loss(options, f"there is no {' and no '.join(missing)} to read")
    return options.topics.choose(there)


def report_loss(options: ReadOptions, what: str) -> None:
    """Raises DataLostError, or warns, as the options want it."""
    if options.fail_on_data_loss:
        raise DataLostError(f"{what} (failOnDataLoss=false goes on without)")
    _logger.warning("%s", what)


def starting_offsets(
    origin: Origin, options: ReadOptions, bounds: Bounds
) -> dict[TopicPartition, int]:
    """Where to begin in each of these partitions. Raises OptionError, DataLostError."""
    found = _resolve(origin, "starting", options.starting, bounds)
    where_no_time = LATEST if options.latest_where_no_time else None
    offsets: dict[TopicPartition, int] = {}
    for partition, offset in found.items():
        if offset is None and where_no_time is None:
            raise OptionError(
                f"No offset matched from request of starting timestamp in {partition}: all records "
                "are older (startingOffsetsByTimestampStrategy=latest begins behind them)"
            )
        offsets[partition] = bounds[partition].end if offset is None else offset
    return _within(options, offsets, bounds)


def ending_offsets(
    origin: Origin, options: ReadOptions, bounds: Bounds
) -> dict[TopicPartition, int]:
    """Where to end. Raises OptionError, DataLostError."""
    found = _resolve(origin, "ending", options.ending, bounds)
    return _within(
        options,
        {
            partition: bounds[partition].end if offset is None else offset
            for partition, offset in found.items()
        },
        bounds,
    )


def _resolve(
    origin: Origin, edge: str, position: Position, bounds: Bounds
) -> dict[TopicPartition, int | None]:
    """An offset, or None where no record is so young."""
    match position:
        case Everywhere(offset):
            return {partition: _meant(offset, bounds[partition]) for partition in bounds}
        case ByOffset(offsets):
            _check_same(f"{edge}Offsets", "TopicPartitions", offsets, bounds)
            return {
                partition: _meant(offset, bounds[partition])
                for partition, offset in offsets.items()
                if partition in bounds
            }
        case AtTime(timestamp_ms):
            return origin.offsets_at(dict.fromkeys(bounds, timestamp_ms), bounds)
        case ByTime(timestamps_ms):
            _check_same(f"{edge}OffsetsByTimestamp", "topics", timestamps_ms, bounds)
            return origin.offsets_at(timestamps_ms, bounds)


def _meant(offset: int, bounds: OffsetBounds) -> int:
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
            f"Specified: {named(given)}. Assigned: {named(assigned)}"
        )


def _within(
    options: ReadOptions, offsets: Mapping[TopicPartition, int], bounds: Bounds
) -> dict[TopicPartition, int]:
    """Offsets that are there. Raises DataLostError for others, or takes the nearest."""
    found: dict[TopicPartition, int] = {}
    for partition, offset in offsets.items():
        start, end = bounds[partition]
        found[partition] = min(max(offset, start), end)
        if found[partition] != offset:
            report_loss(options, f"{partition} has offsets {start} to {end}, not {offset}")
    return found
