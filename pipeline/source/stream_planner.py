"""Plans the batches of a streaming query: where each ends, and the ranges that its tasks read.

Offsets are {partition: next offset}. Spark keeps them in the checkpoint. State of this class is
lost with the process, so correctness does not depend on it. As in Spark's Kafka source
(KafkaMicroBatchStream)

    a new partition       is read from its earliest offset. If that is not 0, data has been lost.
    a missing partition   is data loss. So is one that ends before the offset already reached.

Unlike there, a topic that was deleted and created again is detected by its id, if its log is long
enough. If loss is allowed, it is read from its beginning.

If a query begins at the latest offsets, its first batch is empty and ends where it begins, which
writes that position to the checkpoint. Otherwise a crash in the first batch would move it forward.

Spark stores where a batch ends, and the next batch begins there. The beginning of the first batch
is not stored: after a crash Spark asks again where the query begins. By then there may be more
partitions, and `latest` may be later. The batch still ends where it was planned to end, and the
next batch reads the rest.
"""

import math
from collections.abc import Callable

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.storage.topic_partition import TopicPartition

from .options import ReadOptions
from .origin import Origin
from .planning import split_ranges
from .positions import LATEST, Everywhere, Offsets, format_partitions
from .resolving import report_loss, selected_partitions, starting_offsets


class StreamPlanner:
    """Plans the batches of one query. `last_ends` are the partitions' ends when last looked up.

    Methods raise OptionError, DataLostError, BrokerError, OSError.
    """

    def __init__(self, origin: Origin, options: ReadOptions, clock_ms: Callable[[], float]) -> None:
        self._origin = origin
        self._options = options
        self._clock_ms = clock_ms
        self._initial: Offsets | None = None  # until this process has planned the first batch
        self._empty_first: Offsets | None = None  # where an empty first batch begins and ends
        self._final_ends: Offsets | None = None
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._last_batch_ms = -math.inf
        self.last_ends: Offsets = {}

    def initial(self) -> dict[TopicPartition, int]:
        """Return where a query without a checkpoint begins."""
        bounds = self._origin.bounds(selected_partitions(self._origin, self._options))
        found = starting_offsets(self._origin, self._options, bounds)
        self._initial = found
        if self._options.starting == Everywhere(LATEST):
            self._empty_first = found
        return found

    def current_ends(self) -> Offsets:
        """Return the end of each existing partition that the options select."""
        selected = self._options.topics.choose(self._origin.partitions())
        self.last_ends = {
            each: bounds.end for each, bounds in self._origin.bounds(selected).items()
        }
        return self.last_ends

    def stop_at_current_ends(self) -> None:
        """Exclude records that are written from now on (trigger AvailableNow)."""
        self._final_ends = self.current_ends()

    def all_ends(self) -> Offsets:
        """Return where a batch ends if neither its beginning nor a limit is known."""
        self._initial = None
        seen = self.last_ends
        ends = self.current_ends()
        self._fail_on_loss(seen, ends)
        return ends

    def next_end(self, start: Offsets, at_most: int | None, *, may_wait: bool) -> Offsets:
        """Return where a batch from `start` ends: after about `at_most` offsets, or all."""
        self._initial = None
        if start == self._empty_first:
            self._empty_first = None
            return start
        ends = self.current_ends() if self._final_ends is None else self._final_ends
        self._fail_on_loss(start, ends)
        starts = self._next_starts(start, ends)
        new = sum(max(0, end - starts[partition]) for partition, end in ends.items())
        if may_wait and self._final_ends is None and self._should_wait(new):
            return start
        self._last_batch_ms = self._clock_ms()
        return ends if at_most is None else _limited(starts, ends, at_most, new)

    def parts(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """Return the ranges of a batch's tasks."""
        if start == self._initial:
            # Another process planned this batch before a crash; it keeps its planned end.
            start = {each: min(start[each], end[each]) for each in start.keys() & end.keys()}
        recreated = self._recreated(end)
        self._report_gone(start, end)
        added = end.keys() - start.keys()
        bounds = self._origin.bounds(sorted(added | recreated | _shrunk(start, end)))
        begins = self._starts_of_added(sorted(added), bounds)
        ranges: dict[TopicPartition, tuple[int, int]] = {}
        for partition in sorted(end):
            begin = begins.get(partition) if partition in added else start[partition]
            if begin is None:
                continue
            if partition in recreated or begin > end[partition]:
                self._report_replaced(partition, begin, end[partition])
                begin = bounds[partition].start if partition in bounds else end[partition]
            ranges[partition] = (begin, end[partition])
        return split_ranges(self._origin, self._options, ranges)

    # -- partitions that are new or changed --------------------------------------------------------

    def _fail_on_loss(self, start: Offsets, ends: Offsets) -> None:
        """Raise before Spark stores the end, so the query can continue when the data is back."""
        if self._options.fail_on_data_loss:
            self._report_gone(start, ends)
            for partition in sorted(_shrunk(start, ends)):
                self._report_replaced(partition, start[partition], ends[partition])

    def _report_gone(self, start: Offsets, end: Offsets) -> None:
        gone = start.keys() - end.keys()
        if gone:
            report_loss(
                self._options, f"{format_partitions(gone)} no longer exist; data may be lost"
            )

    def _report_replaced(self, partition: TopicPartition, begin: int, end: int) -> None:
        report_loss(
            self._options,
            f"{partition}: the log that was read up to offset {begin} was replaced by another, "
            f"which ends at {end}; some data may have been missed",
        )

    def _next_starts(self, start: Offsets, ends: Offsets) -> dict[TopicPartition, int]:
        """Return where to continue; new or shrunk partitions at their earliest offset."""
        changed = sorted((ends.keys() - start.keys()) | _shrunk(start, ends))
        bounds = self._origin.bounds(changed)
        return {
            partition: bounds[partition].start
            if partition in bounds
            else min(start.get(partition, end), end)
            for partition, end in ends.items()
        }

    def _starts_of_added(
        self, added: list[TopicPartition], bounds: dict[TopicPartition, OffsetBounds]
    ) -> dict[TopicPartition, int]:
        missing = [partition for partition in added if partition not in bounds]
        if missing:
            report_loss(
                self._options,
                f"{format_partitions(missing)}: no earliest offsets; some data may be missed",
            )
        begins = {each: bounds[each].start for each in added if each in bounds}
        for partition, begin in begins.items():
            if begin != 0:
                report_loss(
                    self._options,
                    f"Added partition {partition} starts from {begin} instead of 0. "
                    "Some data may have been missed",
                )
        return begins

    def _recreated(self, end: Offsets) -> set[TopicPartition]:
        """Return partitions whose topic was deleted and created again since the last batch."""
        known, self._topic_ids = self._topic_ids, self._origin.topic_ids(sorted(end))
        return {
            partition
            for partition, topic_id in self._topic_ids.items()
            if known.get(partition, topic_id) != topic_id
        }

    def _should_wait(self, new: int) -> bool:
        """Whether there are too few new records for a batch, and the last one is recent."""
        options = self._options
        at_least = options.min_offsets_per_trigger
        if at_least is None or new >= at_least:
            return False
        return self._clock_ms() - self._last_batch_ms < options.max_trigger_delay_ms


def _shrunk(start: Offsets, end: Offsets) -> set[TopicPartition]:
    return {each for each in start.keys() & end.keys() if end[each] < start[each]}


def _limited(starts: Offsets, ends: Offsets, at_most: int, new: int) -> dict[TopicPartition, int]:
    """Return ends that admit about `at_most` offsets, in proportion to the new ones of each."""
    if new <= at_most:
        return dict(ends)
    limited: dict[TopicPartition, int] = {}
    for partition, end in ends.items():
        share = at_most * max(0, end - starts[partition]) / new
        # At least one, or a partition with few new records would never be read.
        count = max(1, int(share)) if share else 0
        limited[partition] = min(end, starts[partition] + count)
    return limited
