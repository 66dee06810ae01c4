"""Sends one partition's records in order of offset, part by part. Does not depend on Spark."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from odradek.pipeline.client_values import headers_of, times_ms
from odradek.pipeline.jobs import JobError
from odradek.pipeline.sink.marks import Mark, MarkGroup, Place
from odradek.pipeline.sink.row_sender import FencedError, RowSender
from odradek.pipeline.sink.rows import OutgoingRow, WriteError
from odradek.pipeline.sink.task_transaction import TaskTransaction
from odradek.pipeline.sink.turns import Clock, Turns
from odradek.pipeline.sink.write_options import Delivery
from odradek.storage.topic_partition import TopicPartition

from .archived import ArchivedPartition
from .partition_progress import ID_PREFIX, PartitionProgress, read_progress
from .selection import Selection, with_kept_times
from .send_rate import SendRate

# A part is committed when it has so many bytes, or took so long: until then, nobody sees it.
_PART_BYTES = 32 << 20
_PART_S = 5.0
# A reader of committed records waits as long for the open transaction of a job that was killed.
_TIMEOUT_MS = 120_000


class PartitionReplay(NamedTuple):
    """A partition to replay, and how far it was when this run began."""

    source: ArchivedPartition
    target: str
    before: PartitionProgress

    @property
    def place(self) -> Place:
        """Where its records go, and its mark is."""
        return self.target, self.source.of.partition


@dataclass(slots=True)
class ReplayResult:
    """The result for a partition; `changed_timestamps` are those of 0 that became 1."""

    source: TopicPartition
    target: str
    before: PartitionProgress
    progress: PartitionProgress
    changed_timestamps: int = 0


class PartWriter(Protocol):
    """Writes parts of a partition. Methods raise WriteError, and FencedError."""

    timeout_s: float

    @property
    def open_for_s(self) -> float: ...
    def take_over(self) -> None: ...
    def begin(self) -> None: ...
    def send(self, rows: Iterable[OutgoingRow]) -> None: ...
    def commit(self, group: MarkGroup, marks: Iterable[Mark]) -> None: ...
    def check_timeout(self) -> None: ...
    def close(self) -> None: ...


class PlainWriter:
    """Writes at least once: the mark is committed when the part is acknowledged."""

    timeout_s = 0.0

    def __init__(self, client: Mapping[str, Any], topic: str, clock: Clock) -> None:
        self._sender = RowSender(client)
        self._sender.connect(topic)
        self._clock = clock
        self._began_at = clock.now()
        self.send = self._sender.send
        self.close = self._sender.close

    def take_over(self) -> None:
        """Do nothing: nobody can be fenced."""

    check_timeout = take_over

    def begin(self) -> None:
        """Begin a part."""
        self._began_at = self._clock.now()

    @property
    def open_for_s(self) -> float:
        """How long ago the part began."""
        return self._clock.now() - self._began_at

    def commit(self, group: MarkGroup, marks: Iterable[Mark]) -> None:
        """Wait until all is acknowledged, and commit the marks."""
        self._sender.flush()
        group.commit(marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingWork:
    """What the tasks of a replay do. It is pickled and sent to them.

    `client` is librdkafka's configuration. `records_per_s` is the limit of one task.
    """

    client: Mapping[str, Any]
    job_id: str
    selection: Selection
    delivery: Delivery = Delivery.EXACTLY_ONCE
    records_per_s: float | None = None
    clock: Clock = field(default_factory=Clock)

    def __call__(self, wanted: PartitionReplay) -> Iterator[ReplayResult]:
        """Replay one partition. Raises JobError, OSError."""
        result = ReplayResult(wanted.source.of, wanted.target, wanted.before, wanted.before)
        with MarkGroup(self.client, ID_PREFIX + self.job_id) as group:
            _Sending(self, wanted, group, result).run()
        yield result

    def writer(self, place: Place) -> PartWriter:
        """Return a writer for one partition."""
        if self.delivery is Delivery.AT_LEAST_ONCE:
            return PlainWriter(self.client, place[0], self.clock)
        name = f"{ID_PREFIX}{self.job_id}-{place[0]}-{place[1]}"
        client = {"transaction.timeout.ms": _TIMEOUT_MS, **self.client}
        return TaskTransaction(client, name, place[:1], self.clock)


class _Sending:
    """One attempt to send a partition. It keeps `result` up to date."""

    def __init__(
        self, work: SendingWork, wanted: PartitionReplay, group: MarkGroup, result: ReplayResult
    ) -> None:
        self._work = work
        self._wanted = wanted
        self._group = group
        self._result = result
        self._send_rate = SendRate(work.records_per_s, work.clock)
        self._part_from = self._part_bytes = 0

    def run(self) -> None:
        """Return when this attempt or another has sent everything. Raises JobError, OSError."""
        turns: Turns | None = None
        try:
            while not self._read().is_done:
                wait_s = 0.0
                with closing(self._work.writer(self._wanted.place)) as writer:
                    turns = turns or Turns(writer.timeout_s, self._work.clock)
                    try:
                        writer.take_over()
                        self._send_rest(writer, self._read())
                    except FencedError:
                        writer.check_timeout()
                        if turns.are_over:
                            raise
                        wait_s = turns.next_wait_s(writer.open_for_s)
                if wait_s:
                    self._wait_for_other(turns, wait_s)
        except WriteError as error:
            source, progress = self._wanted.source.of, self._result.progress
            raise JobError(
                f"{source}: offsets {self._part_from} to {progress.next_offset} are not sent to "
                f"{self._wanted.target}: {error}"
            ) from error

    def _read(self) -> PartitionProgress:
        found = read_progress(self._group, [self._wanted.place])
        if not found:
            raise JobError(f"the progress of {self._wanted.source.of} was deleted from the broker")
        self._result.progress = found[self._wanted.place]
        return self._result.progress

    def _wait_for_other(self, turns: Turns, wait_s: float) -> None:
        """Return when the other attempt is done, or has committed nothing for that long."""
        seen = self._read()
        while not seen.is_done and turns.has_changed(self._read, seen, wait_s):
            seen = self._result.progress

    def _send_rest(self, writer: PartWriter, progress: PartitionProgress) -> None:
        progress = progress._replace(repairs=len(self._wanted.source.state.repairs))
        self._begin(writer, progress)
        for table in self._tables(progress.next_offset):
            wait_s = self._send_rate.reserve(table.num_rows)
            if self._is_full(writer, wait_s):
                writer.commit(self._group, [progress.as_mark(self._wanted.place)])
                self._begin(writer, progress)
            self._work.clock.sleep(wait_s)
            progress = progress._replace(
                next_offset=table["offset"][-1].as_py() + 1,
                records=progress.records + table.num_rows,
            )
            self._result.progress = progress
            writer.send(_rows(table, *self._wanted.place))
            self._part_bytes += table.nbytes
            self._result.changed_timestamps += _changed_timestamps(table)
        done = progress._replace(is_done=True)
        writer.commit(self._group, [done.as_mark(self._wanted.place)])
        self._result.progress = done

    def _begin(self, writer: PartWriter, progress: PartitionProgress) -> None:
        self._part_from, self._part_bytes = progress.next_offset, 0
        writer.begin()

    def _is_full(self, writer: PartWriter, wait_s: float) -> bool:
        """Whether the part is to be committed before the next records, which wait so long."""
        return self._part_bytes > 0 and (
            self._part_bytes >= _PART_BYTES or writer.open_for_s + wait_s >= _PART_S
        )

    def _tables(self, start: int) -> Iterator[pa.Table]:
        """Yield the selected records from `start` on, in small tables."""
        selection = self._work.selection
        for table in self._wanted.source.tables(max(start, selection.from_offset or 0)):
            selected = selection.filter(table)
            for at in range(0, selected.num_rows, self._send_rate.chunk_records):
                yield selected.slice(at, self._send_rate.chunk_records)


def _rows(table: pa.Table, topic: str, partition: int) -> Iterator[OutgoingRow]:
    return zip(
        repeat(topic),
        table["value"].to_pylist(),
        table["key"].to_pylist(),
        repeat(partition),
        with_kept_times(times_ms(table["timestamp"]), table).tolist(),
        headers_of(table["headers"]),
        strict=False,
    )


def _changed_timestamps(table: pa.Table) -> int:
    """Return how many records have a timestamp of 0, which becomes 1."""
    return int((table["timestamp"].cast(pa.int64()).to_numpy() // 1000 == 0).sum())
