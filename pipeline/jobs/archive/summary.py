"""Counts what a run of archive has done, by topic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from odradek.pipeline.jobs.offset_spans import Span
from odradek.storage.topic_partition import TopicPartition

from .entries import ArchivedFile
from .plan import PartitionPlan
from .staging import StagedRange


@dataclass(slots=True)
class TopicSummary:
    """`waiting` and `lost` count offsets; `log_bytes` is the approximate planned size."""

    partitions: int = 0
    records: int = 0
    files: int = 0
    file_bytes: int = 0
    log_bytes: int = 0
    dead_letters: int = 0
    absent: int = 0
    lost: int = 0
    waiting: int = 0
    merged_files: int = 0


@dataclass(slots=True)
class ArchiveSummary:
    """The result of a run; `lost`, `notes` and `problems` are messages."""

    topics: dict[str, TopicSummary] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add_plans(self, plans: Sequence[PartitionPlan]) -> None:
        """Count what was found when the run began."""
        for plan in plans:
            topic = self._topic(plan.partition.topic)
            topic.partitions += 1
            topic.log_bytes += plan.size_bytes
            topic.waiting += plan.waiting
            if plan.problem:
                self.problems.append(f"{plan.partition}: {plan.problem}")
            for each in plan.lost:
                self._add_lost(plan.partition, each.lost)

    def add_staged(self, staged: StagedRange) -> None:
        """Count a range that is about to be committed."""
        partition = staged.archived.of.without_id
        self._topic(partition.topic).absent += staged.archived.absent
        self._add_lost(partition, staged.archived.lost)
        if staged.error:
            self.problems.append(f"{partition}: {staged.error}")
        if staged.note:
            self.notes.append(f"{partition}: {staged.note}")

    def _add_lost(self, partition: TopicPartition, lost: Iterable[Span]) -> None:
        for span in lost:
            self._topic(partition.topic).lost += span.size
            self.lost.append(f"{partition}: offsets {span.start} to {span.end - 1}")

    def add_committed(self, files: Iterable[ArchivedFile]) -> None:
        """Count files that were committed."""
        for file in files:
            topic = self._topic(file.of.topic)
            topic.files += 1
            topic.file_bytes += file.size_bytes
            if file.is_dead_letters:
                topic.dead_letters += file.records
            else:
                topic.records += file.records

    def add_merged(self, topic: str, files: int) -> None:
        """Count files that were merged into one; `merged_files` is by how many there are fewer."""
        self._topic(topic).merged_files += files - 1

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
