"""Statistics of topics, and the lag of groups."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.told import QUIET, Told
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories, TopicPartition
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .group_log import GroupLogState, GroupLogWork
from .hour_stats import HOUR_MS, HourStats, merged
from .lag import GroupLag, group_lags
from .plan import PartitionExtent, extents, group_tasks, scan_tasks
from .topic_scan import RangeStats, ScanWork

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsSettings:
    """What is to be counted. `with_lag`: the groups, too."""

    log_directories: Sequence[Path]
    topics: TopicChoice = field(default_factory=TopicChoice)
    with_lag: bool = True
    verify_crc: bool = True


@dataclass(slots=True)
class TopicStats:
    """One topic; hours are counted from 1970, -1 has what bears no timestamp."""

    topic: str
    partitions: int = 0
    offsets: int = 0
    hours: dict[int, HourStats] = field(default_factory=dict)

    @property
    def total(self) -> HourStats:
        """Of all hours. It is computed anew each time."""
        return merged(self.hours.values())

    def add(self, stats: RangeStats) -> None:
        """One range of it."""
        for number, hour in stats.hours.items():
            self.hours.setdefault(number, HourStats()).merge(hour)


@dataclass(slots=True)
class StatsReport:
    """All that was counted. `problems` say what could not be read."""

    topics: list[TopicStats] = field(default_factory=list)
    groups: list[GroupLag] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class StatsPlan:
    """What would be read: the chosen partitions, and those that tell of groups."""

    chosen: list[PartitionExtent]
    all: list[PartitionExtent]  # ends of all partitions, for the lag


def stats(spark: "SparkSession", settings: StatsSettings, told: Told = QUIET) -> StatsReport:
    """Count. Raises JobError, OSError."""
    from odradek.pipeline.jobs.spark_tasks import (
        SparkTasks,  # here, for pyspark need not be there for the rest
    )

    return run_stats(SparkTasks(spark), settings, told)


def plan_stats(settings: StatsSettings) -> StatsPlan:
    """What would be read. Raises JobError, OSError."""
    directories = LogDirectories(settings.log_directories)
    names = set(settings.topics.partitions(directories))
    wanted = directories.partitions() if settings.with_lag else sorted(names)
    found = extents(directories, wanted)
    return StatsPlan([each for each in found if each.partition in names], found)


def run_stats(runner: TaskRunner, settings: StatsSettings, told: Told = QUIET) -> StatsReport:
    """The same by any runner. Raises JobError, OSError."""
    plan = plan_stats(settings)
    report = StatsReport()
    report.problems += [f"{each.partition}: {each.problem}" for each in plan.all if each.problem]
    report.topics = _scan(runner, settings, plan, report.problems, told)
    if settings.with_lag:
        report.groups = _lag(runner, settings, plan, report.problems, told)
    return report


def _scan(
    runner: TaskRunner,
    settings: StatsSettings,
    plan: StatsPlan,
    problems: list[str],
    told: Told,
) -> list[TopicStats]:
    topics: dict[str, TopicStats] = {}
    for each in plan.chosen:
        topic = topics.setdefault(each.partition.topic, TopicStats(each.partition.topic))
        topic.partitions += 1
        topic.offsets += each.bounds.end - each.bounds.start
    directories = LogDirectories(settings.log_directories)
    if not any(topic.offsets for topic in topics.values()):
        return list(topics.values())
    tasks = scan_tasks(directories, plan.chosen, runner.parallelism)
    told.total("counting", len(tasks))
    edges: list[RangeStats] = []
    work = ScanWork(tuple(settings.log_directories), settings.verify_crc)
    with closing(runner.run(work, tasks, "count")) as found:
        for _, results in found:
            for result in results:
                topics[result.partition.topic].add(result)
                if result.problem:
                    problems.append(f"{result.partition}: {result.problem}")
                result.hours = {}
                edges.append(result)
            told.done(1)
    _count_order_between(topics, edges)
    return list(topics.values())


def _count_order_between(topics: dict[str, TopicStats], ranges: list[RangeStats]) -> None:
    """The first record of a range may be older than the last of the range in front of it."""
    last: dict[TopicPartition, int] = {}
    for each in sorted(ranges, key=lambda each: (each.partition, each.start)):
        if each.first_ms < 0:
            continue
        if each.first_ms < last.get(each.partition, -1):
            hour = topics[each.partition.topic].hours[each.first_ms // HOUR_MS]
            hour.out_of_order_records += 1
        last[each.partition] = each.last_ms


def _lag(
    runner: TaskRunner,
    settings: StatsSettings,
    plan: StatsPlan,
    problems: list[str],
    told: Told,
) -> list[GroupLag]:
    logs = [each for each in plan.all if each.partition.topic == CONSUMER_OFFSETS_TOPIC]
    if not any(each.bounds.end > each.bounds.start for each in logs):
        return []
    tasks = group_tasks(logs, runner.parallelism)
    told.total("groups", len(tasks))
    states: list[GroupLogState] = []
    work = GroupLogWork(tuple(settings.log_directories))
    with closing(runner.run(work, tasks, "groups")) as found:
        for _, results in found:
            states += results
            told.done(1)
    for state in states:
        if state.problem:
            problems.append(f"{state.partition}: {state.problem}")
        if state.undecodable:
            problems.append(f"{state.partition}: {state.undecodable} records cannot be decoded")
    return group_lags(states, plan.all)
