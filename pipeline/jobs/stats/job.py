"""Implements `odradek pipeline stats`: statistics of topics, and the lag of groups."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from odradek.pipeline.jobs.progress import NO_PROGRESS, Progress
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .extents import PartitionExtent, find_extents, group_log_tasks, scan_tasks
from .group_log import GroupLogState, GroupLogWork
from .lag import GroupLag, group_lags
from .topic_scan import ScanWork, Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsSettings:
    """What to count. `with_lag`: the lag of groups too."""

    log_directories: Sequence[Path]
    topics: TopicChoice = field(default_factory=TopicChoice)
    with_lag: bool = True
    verify_crc: bool = True


@dataclass(slots=True)
class TopicStats:
    """One topic. `offsets` are those between the start and the end of its partitions."""

    topic: str
    partitions: int = 0
    offsets: int = 0
    sums: Sums = field(default_factory=Sums)


@dataclass(slots=True)
class StatsReport:
    """The result. `problems` are messages about what could not be read."""

    topics: list[TopicStats] = field(default_factory=list)
    groups: list[GroupLag] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class StatsPlan:
    """What would be read."""

    selected: list[PartitionExtent]
    all: list[PartitionExtent]  # ends of all partitions, for the lag


def plan_stats(settings: StatsSettings) -> StatsPlan:
    """Return what would be read. Raises JobError, OSError."""
    directories = LogDirectories(settings.log_directories)
    names = set(settings.topics.partitions(directories))
    wanted = directories.partitions() if settings.with_lag else sorted(names)
    extents = find_extents(directories, wanted)
    return StatsPlan([each for each in extents if each.partition in names], extents)


def run_stats(
    runner: TaskRunner, settings: StatsSettings, progress: Progress = NO_PROGRESS
) -> StatsReport:
    """Compute the statistics. Raises JobError, OSError."""
    plan = plan_stats(settings)
    report = StatsReport()
    report.problems += [f"{each.partition}: {each.problem}" for each in plan.all if each.problem]
    report.topics = _scan(runner, settings, plan, report.problems, progress)
    if settings.with_lag:
        report.groups = _lag(runner, settings, plan, report.problems, progress)
    return report


def _scan(
    runner: TaskRunner,
    settings: StatsSettings,
    plan: StatsPlan,
    problems: list[str],
    progress: Progress,
) -> list[TopicStats]:
    topics: dict[str, TopicStats] = {}
    for each in plan.selected:
        topic = topics.setdefault(each.partition.topic, TopicStats(each.partition.topic))
        topic.partitions += 1
        topic.offsets += each.bounds.end - each.bounds.start
    directories = LogDirectories(settings.log_directories)
    if not any(topic.offsets for topic in topics.values()):
        return list(topics.values())
    tasks = scan_tasks(directories, plan.selected, runner.parallelism)
    progress.total("counting", len(tasks))
    work = ScanWork(tuple(settings.log_directories), settings.verify_crc)
    with closing(runner.run(work, tasks, "count")) as results_by_task:
        for _, results in results_by_task:
            for result in results:
                topics[result.partition.topic].sums.merge(result.sums)
                if result.problem:
                    problems.append(f"{result.partition}: {result.problem}")
            progress.done(1)
    return list(topics.values())


def _lag(
    runner: TaskRunner,
    settings: StatsSettings,
    plan: StatsPlan,
    problems: list[str],
    progress: Progress,
) -> list[GroupLag]:
    logs = [
        each
        for each in plan.all
        if each.partition.topic == CONSUMER_OFFSETS_TOPIC and each.bounds.start < each.bounds.end
    ]
    if not logs:  # then the runner is not used: Spark takes seconds to start
        return []
    tasks = group_log_tasks(logs, runner.parallelism)
    progress.total("groups", len(tasks))
    states: list[GroupLogState] = []
    work = GroupLogWork(tuple(settings.log_directories))
    with closing(runner.run(work, tasks, "groups")) as results_by_task:
        for _, results in results_by_task:
            states += results
            progress.done(1)
    for state in states:
        if state.problem:
            problems.append(f"{state.partition}: {state.problem}")
        if state.undecodable:
            problems.append(f"{state.partition}: {state.undecodable} records cannot be decoded")
    return group_lags(states, plan.all)
