"""Plans the batches of a streaming query: where each ends, and the ranges that its tasks read.

Spark keeps the ends of batches (StreamOffsets) in the checkpoint. State of this class is lost with
the process, so correctness does not depend on it. As in Spark's Kafka source
(KafkaMicroBatchStream)

    a new partition       is read from its earliest offset. If that is not 0, data has been lost.
    a missing partition   is data loss. So is one that ends before the offset already reached.

Unlike there, a topic that was deleted and created again is detected, because its id is another than
that in the checkpoint. This is data loss, too: what had not been read of the deleted topic is gone.
If loss is allowed, the new topic is read from its beginning. If it was created after a batch had
been planned, the batch has nothing of it, and the next batch begins at its beginning. A partition
that comes back with the same id is read on from where it was.

The readable offsets may also end before the offset already reached although the log still has the
records before it: a query reads only committed records now, and a transaction is open; or it reads
files now, which know a replicated partition's high watermark only as it was seconds ago. Nothing is
lost then. The stream stays where it is until the end is after it again. If the log itself ends
before that offset, and its topic has the same id, records are lost, for example by an unclean
election. The stream goes on from the new end, as Spark's does. If no id is known, it may be another
topic, and is read from its beginning.

Spark 4.0 and 4.1 say where a batch begins only after its end was planned (`all_ends`). So after a
restart the first end that is planned lacks the partitions that are missing then. When Spark has
said where this batch begins, the next end has them again. If the process ends in between, nobody
knows any more how far such a partition was read: if it comes back, it is read from its beginning.

If a query begins at the latest offsets, its first batch is empty and ends where it begins, which
writes that position to the checkpoint. Otherwise a crash in the first batch would move it forward.

Spark stores where a batch ends, and the next batch begins there. The beginning of the first batch
is not stored: after a crash Spark asks again where the query begins. By then there may be more
partitions, and `latest` may be later. The batch still ends where it was planned to end, and the
next batch reads the rest.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.protocol.primitives import uuid_text
from odradek.storage.topic_partition import TopicPartition

from .options import ReadOptions
from .origin import Origin
from .planning import split_ranges
from .positions import LATEST, Everywhere, Offsets, format_partitions
from .resolving import (
    bounds_of,
    report_loss,
    required_bounds,
    selected_partitions,
    starting_offsets,
)
from .stream_offsets import StreamOffsets, Tasks


class StreamPlanner:
    """Plans the batches of one query.

    `last_ends` are the partitions' ends when last looked up. It may also have missing partitions,
    with the offset up to which they were read. `begins` of an end is where its batch begins in
    partitions for which the end of the batch before does not say it (StreamOffsets).

    Methods raise OptionError, DataLostError, BrokerError, OSError.
    """

    def __init__(self, origin: Origin, options: ReadOptions, clock_ms: Callable[[], float]) -> None:
        self._origin = origin
        self._options = options
        self._clock_ms = clock_ms
        self._initial: StreamOffsets | None = None  # until this process plans the first batch
        self._has_first_batch = False  # another process has planned it
        self._empty_first: StreamOffsets | None = None  # where an empty first batch begins and ends
        self._final_ends: StreamOffsets | None = None  # where AvailableNow stops
        self._reported: set[TopicPartition] = set()  # missing partitions
        self._left_out: Offsets = {}  # how far partitions were read that the last end lacks
        self._last_batch_ms = -math.inf
        self.last_ends = StreamOffsets()

    def initial(self) -> StreamOffsets:
        """Return where a query without a checkpoint begins."""
        selected = selected_partitions(self._origin, self._options)
        topic_ids = self._origin.topic_ids(selected)
        bounds = required_bounds(self._origin, self._options, selected)
        final = self._final_ends
        if final is not None:  # Spark fixes it first: `latest` is not after it
            topic_ids = {**topic_ids, **final.topic_ids}
            bounds = _up_to(final.offsets, bounds)
        found = starting_offsets(self._origin, self._options, bounds)
        self._initial = self._stream_offsets(found, topic_ids)
        if self._options.starting == Everywhere(LATEST):
            self._empty_first = self._initial
        return self._initial

    def current_ends(self) -> StreamOffsets:
        """Return the end of each existing partition that the options select."""
        selected = self._options.topics.choose(self._origin.partitions())
        # The ids before the ends: if a topic is created again in between, `parts` finds that its
        # id is another than that of the batch.
        topic_ids = self._origin.topic_ids(selected)
        bounds = bounds_of(self._origin, selected)
        self.last_ends = self._stream_offsets(
            {each: bounds[each].end for each in bounds}, topic_ids
        )
        return self.last_ends

    def stop_at_current_ends(self) -> None:
        """Exclude records that are written from now on (trigger AvailableNow)."""
        self._final_ends = self.current_ends()

    def all_ends(self) -> StreamOffsets:
        """Return where a batch ends if neither its beginning nor a limit is known."""
        initial, self._initial = self._initial, None
        if self._has_first_batch:
            initial = None
        left_out, self._left_out = self._left_out, {}
        seen = self.last_ends
        ends = self._not_before(seen, self.current_ends())
        self._fail_on_loss(seen, ends)
        end = self._stream_offsets(
            {**self._missing(seen, ends), **ends.offsets}, {**seen.topic_ids, **ends.topic_ids}
        )
        begins: Offsets = left_out
        changed: set[TopicPartition] = set()
        if initial is not None:
            begins, changed = initial.offsets, _changed(initial, ends)
        elif seen.offsets:  # else this process does not know where the batch begins
            changed = _changed(seen, ends)
        unchanged = {each: begins[each] for each in begins.keys() - changed}
        end = replace(end, begins={**unchanged, **self._earliest(changed)})
        # Spark compares ends as text. If nothing is new, there is no further batch. `==` ignores
        # `tasks` and `begins`, so an equal end may have another text: the one before is returned.
        self.last_ends = seen if end == seen else end
        return self.last_ends

    def next_end(
        self, start: StreamOffsets, at_most: int | None, *, may_wait: bool
    ) -> StreamOffsets:
        """Return where a batch from `start` ends: after about `at_most` offsets, or all."""
        is_first = start == self._initial
        self._initial = None
        if start == self._empty_first:
            self._empty_first = None
            return start
        ends = self.current_ends() if self._final_ends is None else self._final_ends
        ends = self._not_before(start, ends)
        self._fail_on_loss(start, ends)
        changed = _changed(start, ends)
        earliest = self._earliest(changed)
        starts = {
            each: earliest.get(each, min(start.offsets.get(each, end), end))
            for each, end in ends.offsets.items()
        }
        new = sum(max(0, end - starts[each]) for each, end in ends.offsets.items())
        if may_wait and self._final_ends is None and self._should_wait(new):
            return start
        self._last_batch_ms = self._clock_ms()
        limited = ends.offsets if at_most is None else _limited(starts, ends.offsets, at_most, new)
        # An id that cannot be found out now may be found out, and compared, later.
        end = self._stream_offsets(
            {**self._missing(start, ends), **limited}, {**start.topic_ids, **ends.topic_ids}
        )
        if end == start:
            return start  # not `end`, whose text may be another: see `all_ends`
        unchanged = starts.keys() - changed if is_first else set()
        begins = {each: starts[each] for each in unchanged}
        return replace(end, begins={**begins, **earliest})

    def parts(self, start: StreamOffsets, end: StreamOffsets) -> list[OffsetRange]:
        """Return the ranges of a batch's tasks.

        A task whose topic was created again since the batch was planned has no rows. It stays a
        task, because the sink knows by their numbers what the others have written.
        """
        if start == self._initial:
            # Another process planned this batch before a crash; it keeps its planned end.
            self._has_first_batch = True
            both = start.offsets.keys() & end.offsets.keys()
            offsets = {each: min(start.offsets[each], end.offsets[each]) for each in both}
            start = replace(start, offsets=offsets, topic_ids=end.topic_ids)
        lost = self._created_since(end)
        starts, ends = start.offsets, end.offsets
        recreated = self._report_recreated(start, end) - lost
        self._report_gone(starts, ends, recreated)
        there = {each for each in ends if each.topic not in lost}
        ahead = {each: at for each, at in self._ahead(start, end).items() if each in there}
        self._remember_left_out(start, end, ahead)
        added = there - starts.keys()
        again = {each for each in there if each.topic in recreated}
        shrunk = (there & _shrunk(starts, ends)) - again - ahead.keys()
        self._report_shrunk(start, end, shrunk)
        replaced = again | (shrunk & _replaced(start, end))
        bounds = bounds_of(self._origin, sorted(added | replaced))
        begins = self._starts_of_added(sorted(added - replaced), bounds)
        ranges: dict[TopicPartition, tuple[int, int]] = {}
        for partition in sorted(ends):
            if partition in replaced:
                begin = bounds[partition].start if partition in bounds else ends[partition]
            elif partition in added:
                begin = begins.get(partition, ends[partition])
            else:  # a partition that has shrunk begins after its end: it has no rows
                begin = starts.get(partition, ends[partition])
            ranges[partition] = (end.begins.get(partition, begin), ends[partition])
        parts = split_ranges(self._origin, self._dividing_as(end.tasks), ranges)
        return [
            replace(
                part,
                start=part.end if part.partition.topic in lost else part.start,
                topic_id=end.topic_ids.get(part.partition.topic, part.topic_id),
            )
            for part in parts
        ]

    def _stream_offsets(self, offsets: Offsets, topic_ids: Mapping[str, bytes]) -> StreamOffsets:
        """Return the offsets with those of the ids that are of their topics."""
        topics = {each.topic for each in offsets}
        ids = {each: topic_ids[each] for each in topics if each in topic_ids}
        options = self._options
        return StreamOffsets(
            offsets, ids, Tasks(options.max_records_per_partition, options.min_partitions)
        )

    def _dividing_as(self, tasks: Tasks | None) -> ReadOptions:
        """Return the options, with those by which the batch was divided when it was planned."""
        if tasks is None:
            return self._options
        return replace(
            self._options,
            max_records_per_partition=tasks.max_records,
            min_partitions=tasks.min_partitions,
        )

    # -- partitions that are new or changed --------------------------------------------------------

    def _fail_on_loss(self, start: StreamOffsets, ends: StreamOffsets) -> None:
        """Raise before Spark stores the end, so the query can continue when the data is back."""
        if self._options.fail_on_data_loss:
            self._report_recreated(start, ends)
            self._report_gone(start.offsets, ends.offsets, set())
            self._report_shrunk(start, ends, _shrunk(start.offsets, ends.offsets))

    def _report_recreated(self, start: StreamOffsets, end: StreamOffsets) -> set[str]:
        """Return the topics that were created again between `start` and `end`."""
        recreated = _with_other_ids(start.topic_ids, end.topic_ids)
        for topic in sorted(recreated):
            report_loss(
                self._options,
                f"the topic {topic} was deleted and created again: its id was "
                f"{uuid_text(start.topic_ids[topic])} and is now {uuid_text(end.topic_ids[topic])}."
                " Records of the deleted topic may have been missed",
                "reads the new topic from its beginning",
            )
        return recreated

    def _created_since(self, end: StreamOffsets) -> set[str]:
        """Return the topics that were created again after the batch that ends here was planned."""
        lost = _with_other_ids(end.topic_ids, self._origin.topic_ids(sorted(end.offsets)))
        for topic in sorted(lost):
            report_loss(
                self._options,
                f"the topic {topic} was deleted and created again after this batch had been "
                "planned: the batch's records of it are lost",
                "continues without them, and reads the new topic from its beginning",
            )
        return lost

    def _report_gone(self, start: Offsets, end: Offsets, recreated: set[str]) -> None:
        gone = {each for each in start.keys() - end.keys() if each.topic not in recreated}
        if gone:
            report_loss(
                self._options, f"{format_partitions(gone)} no longer exist; data may be lost"
            )

    def _missing(self, start: StreamOffsets, ends: StreamOffsets) -> dict[TopicPartition, int]:
        """Return what had been read of partitions that are not there now, if loss is allowed.

        They may come back, for example when a broker has started. Then they are not read again.
        """
        missing = _missing(start, ends)
        if missing.keys() - self._reported:
            self._report_gone(missing, {}, set())
        self._reported = set(missing)
        return missing

    def _ahead(self, start: StreamOffsets, ends: StreamOffsets) -> dict[TopicPartition, int]:
        """Return where the stream is in partitions that end before, but still have the records."""
        recreated = _with_other_ids(start.topic_ids, ends.topic_ids)
        shrunk = _shrunk(start.offsets, ends.offsets)
        asked = sorted(each for each in shrunk if each.topic not in recreated)
        log_ends = self._origin.log_ends(asked) if asked else {}
        return {
            each: start.offsets[each]
            for each, log_end in log_ends.items()
            if log_end >= start.offsets[each]
        }

    def _not_before(self, start: StreamOffsets, ends: StreamOffsets) -> StreamOffsets:
        return replace(ends, offsets={**ends.offsets, **self._ahead(start, ends)})

    def _remember_left_out(self, start: StreamOffsets, end: StreamOffsets, ahead: Offsets) -> None:
        """Keep how far partitions were read that a planned end lacks, or has at an earlier offset.

        See the top of the module.
        """
        seen, missing = self.last_ends, _missing(start, end)
        unseen = {each: missing[each] for each in missing.keys() - seen.offsets.keys()}
        self._left_out = {**unseen, **ahead}
        if self._left_out:
            topic_ids = {**start.topic_ids, **seen.topic_ids}
            seen = self._stream_offsets({**seen.offsets, **self._left_out}, topic_ids)
            self.last_ends = replace(seen, begins=self._left_out)

    def _report_shrunk(
        self, start: StreamOffsets, end: StreamOffsets, shrunk: set[TopicPartition]
    ) -> None:
        replaced = _replaced(start, end)
        for each in sorted(shrunk):
            report_loss(
                self._options,
                f"{each}: the log that was read up to offset {start.offsets[each]} now ends at "
                f"{end.offsets[each]}; some data may have been missed",
                "reads it from its beginning" if each in replaced else "continues from there",
            )

    def _earliest(self, changed: set[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where those of these partitions begin that exist."""
        bounds = bounds_of(self._origin, sorted(changed))
        return {each: bounds[each].start for each in bounds}

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

    def _should_wait(self, new: int) -> bool:
        """Whether there are too few new records for a batch, and the last one is recent."""
        options = self._options
        at_least = options.min_offsets_per_trigger
        if at_least is None or new >= at_least:
            return False
        return self._clock_ms() - self._last_batch_ms < options.max_trigger_delay_ms


def _with_other_ids(before: Mapping[str, bytes], now: Mapping[str, bytes]) -> set[str]:
    """Return the topics that had an id before, and have another now."""
    return {topic for topic, topic_id in before.items() if now.get(topic, topic_id) != topic_id}


def _missing(start: StreamOffsets, ends: StreamOffsets) -> dict[TopicPartition, int]:
    """Return where those partitions of `start` were that `ends` lacks, and that may come back."""
    topics = start.topic_ids.keys() - _with_other_ids(start.topic_ids, ends.topic_ids)
    return {
        each: offset
        for each, offset in start.offsets.items()
        if each not in ends.offsets and each.topic in topics
    }


def _changed(start: StreamOffsets, ends: StreamOffsets) -> set[TopicPartition]:
    """Return the partitions that are new, or of another topic, or may be."""
    recreated = _with_other_ids(start.topic_ids, ends.topic_ids)
    added = ends.offsets.keys() - start.offsets.keys()
    again = {each for each in ends.offsets if each.topic in recreated}
    return added | again | _replaced(start, ends)


def _replaced(start: StreamOffsets, ends: StreamOffsets) -> set[TopicPartition]:
    """Return the partitions that are shorter than what was read, and may be of another topic."""
    with_ids = start.topic_ids.keys() & ends.topic_ids.keys()
    return {each for each in _shrunk(start.offsets, ends.offsets) if each.topic not in with_ids}


def _shrunk(start: Offsets, end: Offsets) -> set[TopicPartition]:
    return {each for each in start.keys() & end.keys() if end[each] < start[each]}


def _up_to(
    ends: Offsets, bounds: Mapping[TopicPartition, OffsetBounds]
) -> dict[TopicPartition, OffsetBounds]:
    """Return the bounds of these partitions, up to these ends."""
    return {
        each: OffsetBounds(min(bounds[each].start, end), min(bounds[each].end, end))
        for each, end in ends.items()
        if each in bounds
    }


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
