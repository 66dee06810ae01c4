"""Implements `odradek pipeline archive`: reads, writes and commits what the archive lacks.

Results are committed every few seconds while tasks are running. If the job is killed, only the work
since the last commit is lost.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from odradek.pipeline.jobs import CatalogError, JobError, OvertakenError
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from odradek.pipeline.jobs.archive.splitting.topic_schemas import RegistryChoice, TopicSchemas
from odradek.pipeline.jobs.archive.splitting.value_columns import ValueColumns
from odradek.pipeline.jobs.archive.table.archive_table import ArchiveTable
from odradek.pipeline.jobs.archive.table.data_files import DataFile
from odradek.pipeline.jobs.archive.table.merging import MergingWork, files_to_merge
from odradek.pipeline.jobs.archive.table.state import ArchivedRange, ArchiveState, PartitionKey
from odradek.pipeline.jobs.archive.table.table_format import create_table, is_archive
from odradek.pipeline.jobs.progress import NO_PROGRESS, Progress
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition

from .overtaken import not_archived
from .planner import (
    MAX_PART_BYTES,
    PartitionPlan,
    Planner,
    divide_into_tasks,
    part_size_bytes,
    partition_key,
)
from .repair import Repair
from .stable_offsets import StableOffsets
from .summary import ArchiveSummary
from .writing import WritingWork, WrittenRange

if TYPE_CHECKING:
    from odradek.pipeline.jobs.archive.table.iceberg_copy import IcebergCopy

_COMMIT_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings:
    """What to archive, and how.

    `until_end`: the active segment too. `values` is the schema of values that are JSON objects,
    `registry` says that they have schemas of a registry; without `keep_value`, the bytes of such
    values are not archived. `accept_changes`: records that other writers of the table have changed
    stay so. `skip_unreadable`: batches that cannot be read are left out for good.
    `waits_for_topics`: a named topic that is missing is a problem, and the others are archived.
    `max_split_bytes` is the size of the part of a log that goes into one file, at most. In
    `iceberg_catalog`, a file of SQLite, the table is listed for readers of Iceberg, too.
    """

    log_directories: Sequence[Path]
    archive: ArchiveLocation
    topics: TopicChoice = field(default_factory=TopicChoice)
    until_end: bool = False
    committed_only: bool = True
    values: pa.StructType | None = None
    registry: RegistryChoice | None = None
    keep_value: bool = True
    compact: bool = False
    accept_changes: bool = False
    skip_unreadable: bool = False
    verify_crc: bool = True
    waits_for_topics: bool = False
    max_split_bytes: int = MAX_PART_BYTES
    iceberg_catalog: Path | None = None

    def schemas(self) -> TopicSchemas:
        """Return what finds the schemas of values. Raises JobError if that of JSON is invalid."""
        given = None if self.values is None else ValueColumns(self.values, self.keep_value)
        return TopicSchemas(given, self.registry, keep_value=self.keep_value)


def plan_archive(settings: ArchiveSettings, files: Files | None = None) -> list[PartitionPlan]:
    """Return what a run would do now; write nothing. Raises JobError, OSError."""
    files = files or Files()
    state = ArchiveState()
    if is_archive(settings.archive):
        state = ArchiveTable(settings.archive, files).state
    planner = _planner(settings, files, state, StableOffsets())
    return [planner.plan(each) for each in settings.topics.partitions(planner.directories)]


def _planner(
    settings: ArchiveSettings, files: Files, state: ArchiveState, stable_offsets: StableOffsets
) -> Planner:
    return Planner(
        directories=LogDirectories(settings.log_directories, files),
        state=state,
        stable_offsets=stable_offsets,
        until_end=settings.until_end,
        committed_only=settings.committed_only,
    )


def run_archive(
    runner: TaskRunner,
    settings: ArchiveSettings,
    progress: Progress = NO_PROGRESS,
    files: Files | None = None,
) -> ArchiveSummary:
    """Bring an archive up to date. Raises JobError, OSError."""
    run = ArchiveRun(runner, settings, progress, files)
    run.read()
    if settings.compact:
        run.compact()
    return run.summary


class ArchiveRun:
    """Reads what is missing, and commits it. `summary` counts what was done."""

    def __init__(
        self,
        runner: TaskRunner,
        settings: ArchiveSettings,
        progress: Progress = NO_PROGRESS,
        files: Files | None = None,
    ) -> None:
        """Open the table, which is created if there is none. Raises JobError, OSError."""
        self._schemas = settings.schemas()  # an invalid one is refused before anything is done
        self._prepared: set[str] = set()  # topics whose columns the table has
        self._files = files or Files()
        self._iceberg = _iceberg_copy(settings, self._files)
        create_table(settings.archive)
        refuses = not settings.accept_changes
        self._table = ArchiveTable(settings.archive, self._files, refuse_changes=refuses)
        accepted = [] if refuses else self._table.accept_changes()
        if self._schemas.given is not None:
            self._table.add_columns(self._schemas.given.schema)
        if self._iceberg is not None:
            # The last run may have been killed before it. This one tries again when it has read.
            with suppress(CatalogError):
                self._iceberg.follow(self._table)
        self._runner = runner
        self._settings = settings
        self._progress = progress
        self._stable_offsets = StableOffsets()
        self._written: list[WrittenRange] = []
        self._committed: set[str] = set()  # the paths of files
        self.summary = ArchiveSummary(
            notes=[f"what another writer has changed is accepted: {each}" for each in accepted]
        )

    def read_again(self) -> ArchiveSummary:
        """Read what has been missing since the last time; return what was done this time.

        Raises JobError, OSError.
        """
        self.summary = ArchiveSummary()
        self._table.refresh()
        self._schemas = self._settings.schemas()  # a registry may have newer ones
        self._prepared.clear()
        self.read()
        return self.summary

    def read(self) -> None:
        """Read all that is missing. What was committed stays committed if an error is raised."""
        plans = self._plans()
        self.summary.add_plans(plans)
        self._partitions = _partition_counts(plans)
        self._log_starts = _log_starts(plans)
        lost = [each for plan in plans for each in plan.lost]
        if lost:
            self._table.append([], self._with(lost))
            self.summary.add_lost(plans)  # only now: else a run that fails would count them, too
        self._run_tasks(self._tasks(plans))
        self._follow_in_iceberg()

    def _run_tasks(self, tasks: Sequence[list[OffsetRange]]) -> None:
        work = self._work()
        topics = {each.partition.topic for task in tasks for each in task}
        self._committed.clear()
        committed_at = time.monotonic()
        with self._table.discarding(work.run_id, topics, self._committed):
            try:
                with closing(self._runner.run(work, tasks, "archive")) as results:
                    for _, written in results:
                        self._written += written
                        self._progress.done(1)
                        if time.monotonic() - committed_at > _COMMIT_EVERY_S:
                            self._commit(work.run_id)
                            committed_at = time.monotonic()
            finally:
                self._commit(work.run_id)

    def compact(self) -> None:
        """Merge small files, and delete those that nobody has read for a week."""
        archived = sorted({key.topic for key in self._table.state.partitions})
        topics = filter(self._settings.topics.matcher(), archived)
        groups = list(files_to_merge(self._table.data_files(*topics)))
        if groups:
            self._merge(groups)
        self._table.vacuum()
        self._follow_in_iceberg(cleans=True)

    def _follow_in_iceberg(self, *, cleans: bool = False) -> None:
        if self._iceberg is None:
            return
        try:
            self._iceberg.follow(self._table)
            if cleans:
                self._iceberg.clean(self._table)
        except JobError as error:  # all is archived: the summary says so
            self.summary.problems.append(str(error))

    def _merge(self, groups: Sequence[Sequence[DataFile]]) -> None:
        self._progress.total("compacting", len(groups))
        work = MergingWork(location=self._settings.archive, files=self._files)
        topics = {file.topic for group in groups for file in group}
        committed: set[str] = set()
        with (
            self._table.discarding(work.run_id, topics, committed),
            closing(self._runner.run(work, groups, "compact")) as results,
        ):
            for _, merged in results:
                for each in self._table.merge(merged):
                    committed.add(each.written.path)
                    self.summary.add_merged(each.written.topic, len(each.replaced) - 1)
                self._progress.done(1)

    def _plans(self) -> list[PartitionPlan]:
        """Plan all partitions. Those that have diverged are repaired before."""
        planner = _planner(self._settings, self._files, self._table.state, self._stable_offsets)
        partitions, missing = self._settings.topics.existing_partitions(planner.directories)
        if missing and not self._settings.waits_for_topics:
            raise JobError(missing)
        if missing:
            self.summary.problems.append(missing)
        return [self._plan(planner, partition) for partition in partitions]

    def _plan(self, planner: Planner, partition: TopicPartition) -> PartitionPlan:
        plan = planner.plan(partition)
        if not (plan.ranges or plan.diverged):
            return plan
        try:
            self._prepare_columns(partition.topic)
        except JobError as error:
            return PartitionPlan(partition, problem=str(error))
        return self._repaired(planner, partition) if plan.diverged else plan

    def _prepare_columns(self, topic: str) -> None:
        """Have columns for the fields of the topic's values. Raises JobError."""
        if topic in self._prepared:
            return
        schema = self._schemas.of(topic)
        if schema is not None:
            self._table.add_columns(schema.schema)
        self._prepared.add(topic)

    def _repaired(self, planner: Planner, partition: TopicPartition) -> PartitionPlan:
        repair = Repair(self._table, replace(planner, state=self._table.state), self._work())
        try:
            self.summary.repaired.append(f"{partition}: {repair.repair(partition)}")
        except OvertakenError:
            raise
        except (JobError, CorruptRecordError, OSError, pa.ArrowException) as error:
            return PartitionPlan(partition, problem=f"the archive was not repaired: {error}")
        return replace(planner, state=self._table.state).plan(partition)

    def _commit(self, run_id: str) -> None:
        written, self._written = self._written, []
        for each in written:
            self.summary.add_problems(each)
        try:
            self._append(written)
        except OvertakenError:
            self._append_rest(written, run_id)
            raise

    def _append_rest(self, written: Sequence[WrittenRange], run_id: str) -> None:
        """Commit what no other process has read. Each attempt that fails is after its commit."""
        while True:
            written = list(not_archived(self._table.files, self._table.state, written, run_id))
            with suppress(OvertakenError):
                self._append(written)
                return

    def _append(self, written: Sequence[WrittenRange]) -> None:
        written = [each for each in written if each.archived.end > each.archived.start]
        if written:
            files = [file for each in written for file in each.files]
            self._table.append(files, self._with([each.archived for each in written]))
            self._committed.update(file.path for file in files)
            for each in written:
                self.summary.add_committed(each)

    def _with(self, ranges: Sequence[ArchivedRange]) -> Callable[[ArchiveState], ArchiveState]:
        """Return the change of the state that a commit of these ranges makes."""
        return lambda state: state.with_ranges(ranges, self._partitions, self._log_starts)

    def _tasks(self, plans: Sequence[PartitionPlan]) -> list[list[OffsetRange]]:
        total_bytes = sum(plan.size_bytes for plan in plans)
        if not any(plan.ranges for plan in plans):
            return []  # without asking the runner: Spark takes seconds to start
        max_bytes = part_size_bytes(
            total_bytes, self._runner.parallelism, self._settings.max_split_bytes
        )
        directories = LogDirectories(self._settings.log_directories, self._files)
        tasks = list(divide_into_tasks(directories, plans, max_bytes))
        self._progress.total("archiving", len(tasks))
        return tasks

    def _work(self) -> WritingWork:
        return WritingWork(
            log_directories=tuple(path.absolute() for path in self._settings.log_directories),
            location=self._settings.archive,
            value_schemas=self._schemas.known,
            verify_crc=self._settings.verify_crc,
            skip_unreadable=self._settings.skip_unreadable,
            files=self._files,
        )


def _iceberg_copy(settings: ArchiveSettings, files: Files) -> "IcebergCopy | None":
    """Return the copy that is wanted. Raises JobError."""
    if settings.iceberg_catalog is None:
        return None
    try:
        from odradek.pipeline.jobs.archive.table.iceberg_copy import IcebergCopy
    except ModuleNotFoundError as error:
        raise JobError(
            f"an Iceberg catalog needs {error.name}: pip install 'odradek[iceberg]'"
        ) from error
    return IcebergCopy(settings.iceberg_catalog, settings.archive, files)


def _partition_counts(plans: Sequence[PartitionPlan]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for plan in plans:
        topic, partition = plan.partition
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts


def _log_starts(plans: Sequence[PartitionPlan]) -> dict[PartitionKey, int]:
    return {
        partition_key(each.partition, each.topic_id): plan.log_start
        for plan in plans
        for each in plan.ranges
    }
