"""Checks the log directories of one node, and every log in them, by the processes of a runner.

The metadata log is checked first, because it says which topic owns each partition directory.
Without a metadata log in the given directories, ownership is not checked. `__transaction_state` is
checked after all other logs. Both are checked in this process, because other checks need what they
hold.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.progress import NO_PROGRESS, Progress
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.storage.topic_partition import TopicPartition
from odradek.tools.transactions.stored_transactions import StoredTransactions

from .directories import DirectoriesCheck
from .findings import Finding, Findings, Totals
from .logs import LogItem, LogResult, LogsCheck
from .metadata_facts import MetadataFacts
from .open_transaction_check import OpenTransactionCheck
from .partition_check import LogDirectory

_TASKS_PER_CORE = 4
_SMALLEST_TASK_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """What to check. `deep`: read every record, not only those of internal logs.

    If `topics` is None, all logs are checked, also internal ones.
    """

    log_directories: Sequence[Path]
    now_ms: int
    topics: TopicChoice | None = None
    deep: bool = False


@dataclass(slots=True)
class VerifyReport:
    """The result. `topics`: what was checked of each topic."""

    findings: list[Finding] = field(default_factory=list)
    topics: dict[str, Totals] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    is_in_use: bool = False


def plan_verify(settings: VerifySettings, files: Files | None = None) -> dict[str, Totals]:
    """Return what would be checked of each topic. Raises JobError, OSError."""
    run = _Run(settings, NO_PROGRESS, files or Files())
    for item in run.chosen:
        try:
            segments = LogReader(run.path_of(item)).segments()
        except FileNotFoundError:
            continue  # its topic was deleted meanwhile
        size = sum(segment.size_bytes for segment in segments)
        totals = run.report.topics.setdefault(item.log[0], Totals())
        totals.add(Totals(partitions=1, segments=len(segments), log_bytes=size))
    return run.report.topics


def run_verify(
    runner: TaskRunner,
    settings: VerifySettings,
    progress: Progress = NO_PROGRESS,
    files: Files | None = None,
) -> VerifyReport:
    """Check everything. Raises JobError; OSError if a log directory cannot be listed."""
    run = _Run(settings, progress, files or Files())
    run.check(runner)
    return run.report


class _Run:
    def __init__(self, settings: VerifySettings, progress: Progress, files: Files) -> None:
        self.report = VerifyReport()
        self._settings = settings
        self._progress = progress
        self._files = files
        paths = [path.absolute() for path in settings.log_directories]
        beside_logs = Findings()
        self._log_dirs = DirectoriesCheck(files, beside_logs).run(paths)
        self._add(beside_logs.listed, beside_logs.totals)
        self._findings = Findings()  # those that need all logs
        self._metadata = MetadataFacts()
        self._stored = StoredTransactions()
        self._open = OpenTransactionCheck(self._findings, settings.now_ms)
        self._items = [
            LogItem(number, log)
            for number, log_dir in enumerate(self._log_dirs)
            for log in sorted(log_dir.logs)
        ]
        self.chosen = self._chosen(paths)

    def _chosen(self, paths: Sequence[Path]) -> list[LogItem]:
        """The logs of the chosen topics. Raises JobError if a named one, or any, does not exist."""
        choice = self._settings.topics
        if choice is None:
            return self._items
        existing = sorted({item.log[0] for item in self._items})
        where = f" in {', '.join(map(str, paths))}"
        topics = set(choice.select(existing, where))
        if not topics:
            raise JobError(f"no topic matches {choice.pattern!r}{where}")
        return [item for item in self._items if item.log[0] in topics]

    def path_of(self, item: LogItem) -> Path:
        """The directory of a log."""
        log_dir = self._log_dirs[item.directory_index]
        return log_dir.path / log_dir.logs[item.log]

    def check(self, runner: TaskRunner) -> None:
        """Check everything, and fill in the report."""
        results: dict[LogItem, LogResult] = {}
        for item in self._items_of(CLUSTER_METADATA_TOPIC):
            results[item], look = self._logs_check().check(item, StoredTransactions())
            self._metadata = look.metadata
        others = [
            item
            for item in self.chosen
            if item.log[0] not in (CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
        ]
        for result in self._run_others(runner, others):
            results[result.item] = result
        for item in self._items_of(TRANSACTION_STATE_TOPIC):
            results[item], look = self._logs_check().check(item, self._stored)
            self._stored = look.stored
        self._log_dirs = [each.now(self._files) for each in self._log_dirs]
        self.report.is_in_use = any(each.is_in_use for each in self._log_dirs)
        self._report_logs(results)
        self._check_open_transactions()
        if self._settings.topics is None:
            self._check_missing()
        self._add(self._findings.listed, self._findings.totals)

    def _add(self, findings: list[Finding], totals: Totals) -> None:
        self.report.findings += findings
        self.report.totals.add(totals)

    def _items_of(self, topic: str) -> list[LogItem]:
        """The logs of an internal topic, chosen or not: other checks need what they hold."""
        return [item for item in self._items if item.log[0] == topic]

    def _logs_check(self) -> LogsCheck:
        return LogsCheck(
            files=self._files,
            log_dirs=self._log_dirs,
            metadata=self._metadata,
            deep=self._settings.deep,
        )

    def _run_others(self, runner: TaskRunner, items: Sequence[LogItem]) -> Iterator[LogResult]:
        self._progress.total("verifying", len(items))
        sizes = {item: self._size_of(item) for item in items}
        check, tasks = self._logs_check(), divide_into_tasks(sizes, runner.parallelism)
        if len(tasks) == 1:  # it is not worth the start of another process
            for result in check(tasks[0]):
                yield result
                self._progress.done(1)
            return
        with closing(runner.run(check, tasks, "verify")) as results_by_task:
            for _, results in results_by_task:
                yield from results
                self._progress.done(len(results))

    def _size_of(self, item: LogItem) -> int:
        try:
            return sum(each.size_bytes for each in LogReader(self.path_of(item)).segments())
        except OSError:
            return 0  # the check says why it cannot be read

    def _report_logs(self, results: Mapping[LogItem, LogResult]) -> None:
        chosen = set(self.chosen)
        for item in self._items:
            result = results.get(item)
            if result is None:
                continue
            if result.open is not None:
                self._open.add(item.log, result.open)
            if item in chosen:
                self._add(result.findings, result.totals)
                self.report.topics.setdefault(item.log[0], Totals()).add(result.totals)

    # --- transactions

    def _check_open_transactions(self) -> None:
        directories = {
            partition: log_dir.path / name
            for log_dir in self._log_dirs
            for (topic, partition), name in log_dir.logs.items()
            if topic == TRANSACTION_STATE_TOPIC
        }
        existing: set[TopicPartition] | None = None
        if self._metadata.is_known:
            topics = self._metadata.topics.values()
            existing = {
                TopicPartition(each.name, partition)
                for each in topics
                for partition in each.directories
            }
        expected = {each[1] for each in existing or () if each[0] == TRANSACTION_STATE_TOPIC}
        if existing is None or not expected <= directories.keys():
            self._stored.is_complete = False
        if not expected and self.report.is_in_use:
            self._stored.is_complete = False  # it may have been created since
        self._open.check_open(self._stored)
        if self._settings.topics is None:
            self._open.check_stored(self._stored, directories, existing)

    # --- logs that should be there

    def _check_missing(self) -> None:
        for log_dir in self._log_dirs:
            directory_id = None if log_dir.meta is None else log_dir.meta.directory_id
            if not self._metadata.is_known or directory_id in (None, ZERO_UUID):
                continue
            for name, topic in sorted(self._metadata.topics.items()):
                for partition, directories in sorted(topic.directories.items()):
                    log = TopicPartition(name, partition)
                    # The metadata log has the new place before the log gets its name there.
                    if directory_id in directories and log not in log_dir.arriving:
                        self._check_exists(log_dir, f"{name}-{partition}")

    def _check_exists(self, log_dir: LogDirectory, name: str) -> None:
        if not self._files.is_directory(log_dir.path / name):
            what = "missing, though the metadata log places it here"
            # A broker that is killed may not have created all logs of a new topic.
            report = self._findings.problem if log_dir.stopped_cleanly else self._findings.note
            report(log_dir.path / name, what, "an empty log is created")


def divide_into_tasks(sizes: Mapping[LogItem, int], parallelism: int) -> list[list[LogItem]]:
    """Return tasks of about equal bytes: several per core, or fewer if they would be small."""
    max_tasks = max(1, -(-sum(sizes.values()) // _SMALLEST_TASK_BYTES))
    count = min(len(sizes), parallelism * _TASKS_PER_CORE, max_tasks)
    tasks: list[list[LogItem]] = [[] for _ in range(count)]
    loads = [(0, 0, number) for number in range(count)]
    for item in sorted(sizes, key=lambda each: -sizes[each]):
        load, logs, number = heapq.heappop(loads)
        tasks[number].append(item)
        heapq.heappush(loads, (load + sizes[item], logs + 1, number))
    return tasks
