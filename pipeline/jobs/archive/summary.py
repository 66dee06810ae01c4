"""Counts what a run of archive has done, by topic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from odradek.pipeline.jobs.archive.parquet.dated_files import WrittenFile
from odradek.pipeline.jobs.offset_spans import Span
from odradek.storage.topic_partition import TopicPartition

from .planner import PartitionPlan
from .writing import WrittenRange


@dataclass(slots=True)
class TopicSummary:
    """`absent`, `lost`, `skipped` and `waiting` count offsets.

    `absent` have no record, as those of markers and compacted ones; `waiting` are left to a later
    run, because their transaction is open. `log_bytes` is the approximate planned size.
    """

    partitions: int = 0
    records: int = 0
    files: int = 0
    file_bytes: int = 0
    log_bytes: int = 0
    dead_letters: int = 0
    absent: int = 0
    lost: int = 0
    skipped: int = 0
    waiting: int = 0
    merged_files: int = 0


@dataclass(slots=True)
class ArchiveSummary:
    """The result of a run; all but `topics` are messages. `skipped` say what could not be read."""

    topics: dict[str, TopicSummary] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add_plans(self, plans: Sequence[PartitionPlan]) -> None:
        """Count what was found when the run began, without lost offsets."""
        for plan in plans:
            topic = self._topic(plan.partition.topic)
            topic.partitions += 1
            topic.log_bytes += plan.size_bytes
            topic.waiting += plan.waiting
            if plan.diverged:  # only in a dry run: a run has repaired the table before it plans
                self.notes.append(
                    f"{plan.partition}: the log has lost archived records; a run removes them from "
                    f"the table"
                )
            if plan.problem:
                self.problems.append(f"{plan.partition}: {plan.problem}")

    def add_lost(self, plans: Iterable[PartitionPlan]) -> None:
        """Count the offsets that were lost before the run began."""
        for plan in plans:
            for each in plan.lost:
                self._add_lost(plan.partition, each.lost)

    def add_problems(self, written: WrittenRange) -> None:
        """Add the messages of a range, whether or not it is committed."""
        partition = written.archived.of.without_id
        if written.error:
            self.problems.append(f"{partition}: {written.error}")
        if written.note:
            self.notes.append(f"{partition}: {written.note}")

    def add_committed(self, written: WrittenRange) -> None:
        """Count a range that was committed."""
        archived = written.archived
        partition = archived.of.without_id
        topic = self._topic(partition.topic)
        topic.absent += archived.absent
        topic.skipped += sum(span.size for span in archived.skipped)
        self.skipped += [f"{partition}: {each}" for each in written.skipped]
        self._add_lost(partition, archived.lost)
        self._add_files(written.files)

    def _add_lost(self, partition: TopicPartition, lost: Iterable[Span]) -> None:
        for span in lost:
            self._topic(partition.topic).lost += span.size
            self.lost.append(f"{partition}: offsets {span.start} to {span.end - 1}")

    def _add_files(self, files: Iterable[WrittenFile]) -> None:
        for file in files:
            topic = self._topic(file.topic)
            topic.files += 1
            topic.file_bytes += file.size_bytes
            if file.is_dead_letters:
                topic.dead_letters += file.records
            else:
                topic.records += file.records

    def add_merged(self, topic: str, fewer: int) -> None:
        """Count by how many files a topic has fewer after compaction."""
        self._topic(topic).merged_files += fewer

    def total(self) -> TopicSummary:
        """Return the sums of all topics."""
        return TopicSummary(
            *(
                sum(getattr(topic, name) for topic in self.topics.values())
                for name in TopicSummary.__slots__
            )
        )

    def _topic(self, name: str) -> TopicSummary:
        return self.topics.setdefault(name, TopicSummary())
