"""From batch to batch of a streaming query: how far to go, and what that means to be read.

Offsets are {partition: next offset}. Spark keeps them in the checkpoint; what is kept here besides
is lost with the process, and must not be needed. As in Kafka's source (KafkaMicroBatchStream)

    a new partition    is read from its earliest offset on; where that is not 0, data has been lost
    one that is gone   is data loss; so is one that ends before the offset that was reached

Other than there, a topic that has been made anew is noticed by its id where its log is long enough,
and where loss is allowed it is read from its beginning.

A query that begins at the latest offsets ends its first batch where it begins, without a record: so
the checkpoint knows where that was. Otherwise a crash in the first batch would make it begin later.

Spark keeps where a batch ends, and that is where the next one begins. Only of the first one that is
not kept: after a crash in it Spark asks anew where a query begins. By then there may be more
partitions, and `latest` lies further on; the batch ends where it did, and the rest is the next's.
"""

import math
from collections.abc import Callable

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.pipeline.reading.range_reader import OffsetRange

from .options import ReadOptions
from .origin import Origin
from .planning import cut_ranges
from .positions import LATEST, Everywhere, Offsets, named
from .resolving import report_loss, starting_offsets, wanted_partitions


class StreamPlanner:
    """Plans the batches of one query; `seen` is where the partitions ended at the last look.

    Raises OptionError, DataLostError, NoAnswerError, OSError.
    """

    def __init__(self, origin: Origin, options: ReadOptions, clock_ms: Callable[[], float]) -> None:
        self._origin = origin
        self._options = options
        self._clock_ms = clock_ms
        self._initial: Offsets | None = None  # as long as nothing was planned from there
        self._first: Offsets | None = None
        self._goal: Offsets | None = None
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._last_batch_ms = -math.inf
        self.seen: Offsets = {}

    def initial(self) -> dict[TopicPartition, int]:
        """Where a query that has no checkpoint begins."""
        bounds = self._origin.bounds(wanted_partitions(self._origin, self._options))
        found = starting_offsets(self._origin, self._options, bounds)
        self._initial = found
        if self._options.starting == Everywhere(LATEST):
            self._first = found
        return found

    def ends_now(self) -> Offsets:
        """The end of each partition that is wanted and there."""
        wanted = self._options.topics.choose(self._origin.partitions())
        self.seen = {each: bounds.end for each, bounds in self._origin.bounds(wanted).items()}
        return self.seen

    def stop_at_what_is_there(self) -> None:
        """What is written from now on is not for this query (AvailableNow)."""
        self._goal = self.ends_now()

    def next_end(self, start: Offsets, at_most: int | None, *, may_wait: bool) -> Offsets:
        """Where a batch that begins at `start` ends: behind about `at_most` offsets, or all."""
        self._initial = None
        if start == self._first:
            self._first = None
            return start
        ends = self.ends_now() if self._goal is None else self._goal
        self._fail_on_loss(start, ends)
        begins = self._begins(start, ends)
        new = sum(max(0, end - begins[partition]) for partition, end in ends.items())
        if may_wait and self._goal is None and self._waits(new):
            return start
        self._last_batch_ms = self._clock_ms()
        return ends if at_most is None else _limited(begins, ends, at_most, new)

    def parts(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """What the tasks of a batch read."""
        if start == self._initial:
            # Planned by another process, which has ended in it.
            start = {each: min(start[each], end[each]) for each in start.keys() & end.keys()}
        remade = self._remade(end)
        self._report_gone(start, end)
        added = end.keys() - start.keys()
        bounds = self._origin.bounds(sorted(added | remade | _shrunk(start, end)))
        begins = self._starts_of_added(sorted(added), bounds)
        ranges: dict[TopicPartition, tuple[int, int]] = {}
        for partition in sorted(end):
            begin = begins.get(partition) if partition in added else start[partition]
            if begin is None:
                continue
            if partition in remade or begin > end[partition]:
                begin = self._begin_again(partition, begin, end[partition], bounds)
            ranges[partition] = (begin, end[partition])
        return cut_ranges(self._origin, self._options, ranges)

    # -- what is new -------------------------------------------------------------------------------

    def _fail_on_loss(self, start: Offsets, ends: Offsets) -> None:
        """Before Spark notes the end: what is only away for a while can then be gone on with."""
        if self._options.fail_on_data_loss:
            self._report_gone(start, ends)
            for partition in sorted(_shrunk(start, ends)):
                self._report_another(partition, start[partition], ends[partition])

    def _report_gone(self, start: Offsets, end: Offsets) -> None:
        gone = start.keys() - end.keys()
        if gone:
            report_loss(self._options, f"{named(gone)}: not there any more; data may be lost")

    def _report_another(self, partition: TopicPartition, begin: int, end: int) -> None:
        report_loss(
            self._options,
            f"{partition}: the log that was read to offset {begin} is another one now, which ends "
            f"at {end}; some data may have been missed",
        )

    def _begins(self, start: Offsets, ends: Offsets) -> dict[TopicPartition, int]:
        """Where to go on; new partitions from their earliest offset."""
        odd = sorted((ends.keys() - start.keys()) | _shrunk(start, ends))
        bounds = self._origin.bounds(odd)
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
                self._options, f"{named(missing)}: no earliest offsets; some data may be missed"
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

    def _remade(self, end: Offsets) -> set[TopicPartition]:
        """Those whose topics were deleted and made anew since the last batch."""
        known, self._topic_ids = self._topic_ids, self._origin.topic_ids(sorted(end))
        return {
            partition
            for partition, topic_id in self._topic_ids.items()
            if known.get(partition, topic_id) != topic_id
        }

    def _begin_again(
        self,
        partition: TopicPartition,
        begin: int,
        end: int,
        bounds: dict[TopicPartition, OffsetBounds],
    ) -> int:
        """At the beginning, of what is another log now."""
        self._report_another(partition, begin, end)
        return bounds[partition].start if partition in bounds else end

    def _waits(self, new: int) -> bool:
        """Whether too little is new for a batch, and the last one is not long ago."""
        options = self._options
        at_least = options.min_offsets_per_trigger
        if at_least is None or new >= at_least:
            return False
        return self._clock_ms() - self._last_batch_ms < options.max_trigger_delay_ms


def _shrunk(start: Offsets, end: Offsets) -> set[TopicPartition]:
    return {each for each in start.keys() & end.keys() if end[each] < start[each]}


def _limited(begins: Offsets, ends: Offsets, at_most: int, new: int) -> dict[TopicPartition, int]:
    """Ends that together leave about `at_most` offsets, in proportion to what is new in each."""
    if new <= at_most:
        return dict(ends)
    limited: dict[TopicPartition, int] = {}
    for partition, end in ends.items():
        share = at_most * max(0, end - begins[partition]) / new
        # At least one, or a partition with little new would never come to its turn.
        count = max(1, int(share)) if share else 0
        limited[partition] = min(end, begins[partition] + count)
    return limited
