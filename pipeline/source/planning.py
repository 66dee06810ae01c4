"""Divides ranges of offsets into one range per task. Kafka: KafkaOffsetRangeCalculator."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.storage.topic_partition import TopicPartition

from .options import ReadOptions
from .origin import Origin
from .resolving import (
    ending_offsets,
    required_bounds,
    selected_partitions,
    starting_offsets,
)


def plan_batch(origin: Origin, options: ReadOptions) -> list[OffsetRange]:
    """Return the ranges of a batch query's tasks. Raises OptionError, DataLostError, OSError."""
    selected = selected_partitions(origin, options)
    # The ids before the offsets: if a topic is created again in between, or later, its tasks find
    # that it has another id.
    topic_ids = origin.topic_ids(selected)
    bounds = required_bounds(origin, options, selected)
    start = starting_offsets(origin, options, bounds)
    end = ending_offsets(origin, options, bounds)
    ranges = {each: (start[each], end[each]) for each in sorted(start.keys() & end.keys())}
    return [
        replace(part, topic_id=topic_ids.get(part.partition.topic, part.topic_id))
        for part in split_ranges(origin, options, ranges)
    ]


def split_ranges(
    origin: Origin, options: ReadOptions, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> list[OffsetRange]:
    """Divide ranges [start, end) into parts for tasks; an empty range has none."""
    parts = [
        part
        for partition, (start, end) in ranges.items()
        if start < end
        for part in origin.parts(partition, start, end)
    ]
    if options.batch_view:
        return parts  # a batch must not be divided
    max_records = options.max_records_per_partition
    if max_records is not None:
        parts = [each for part in parts for each in _split(part, -(-_size(part) // max_records))]
    return _split_to_at_least(parts, options.min_partitions or 0)


def _split_to_at_least(parts: Sequence[OffsetRange], count: int) -> list[OffsetRange]:
    """Divide the parts into at least `count` in proportion to their sizes, if sizes permit."""
    if len(parts) >= count:
        return list(parts)
    total = sum(map(_size, parts))
    return [each for part in parts for each in _split(part, math.ceil(_size(part) * count / total))]


def _split(part: OffsetRange, count: int) -> Iterable[OffsetRange]:
    size = _size(part)
    count = min(count, size)
    bounds = [part.start + size * number // count for number in range(count + 1)]
    return [replace(part, start=start, end=end) for start, end in pairwise(bounds)]


def _size(part: OffsetRange) -> int:
    return part.end - part.start
