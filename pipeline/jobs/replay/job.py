"""`odradek pipeline replay`: records of an archive into topics, a task for each partition."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from odradek.pipeline.jobs.archive.layout import ArchiveLayout
from odradek.pipeline.jobs.archive.manifest import ArchiveState, Manifest
from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.told import QUIET, Told
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.files import Files

from .outgoing import check_columns
from .progress import ProgressNotes, ReplayJob, ReplayTopic
from .selection import PartitionFiles, Selection, select
from .sending import PartitionReplay, PartitionReplayed, SendingWork

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What is to be replayed, and where to.

    `client` is librdkafka's configuration, with `bootstrap.servers`. `to_topic` is for a single
    topic; without it each goes to one of its own name. With `create`, topics that are missing are
    made, with `topic_settings`. `records_per_s` bounds all partitions together.
    """

    archive: Path
    client: Mapping[str, str]
    job_id: str
    topics: TopicChoice
    to_topic: str | None = None
    selection: Selection = field(default_factory=Selection)
    create: bool = False
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    records_per_s: float | None = None


class ReplayPlan(NamedTuple):
    """Which partitions go where; `partitions` is how many each target needs."""

    job: ReplayJob
    replays: tuple[PartitionReplay, ...]
    partitions: Mapping[str, int]


@dataclass(slots=True)
class ReplaySummary:
    """What a run has done, and what it found objectionable."""

    replayed: list[PartitionReplayed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def replay(spark: "SparkSession", settings: ReplaySettings, told: Told = QUIET) -> ReplaySummary:
    """Replay, or go on with it. Raises JobError, OSError."""
    from odradek.pipeline.jobs.spark_tasks import (
        SparkTasks,  # here, for pyspark need not be there for the rest
    )

    return run_replay(SparkTasks(spark), settings, told)


def plan_replay(settings: ReplaySettings, files: Files | None = None) -> ReplayPlan:
    """What a run would do; nothing is sent, and no broker is asked. Raises JobError, OSError."""
    manifest = Manifest(ArchiveLayout(settings.archive), files or Files())
    state = ArchiveState.of(manifest.entries())
    if not state.last_number:
        raise JobError(f"{settings.archive} is no archive: it has no manifest")
    topics = settings.topics.chosen(sorted({key.topic for key in state.covered}))
    if settings.to_topic is not None and len(topics) != 1:
        raise JobError(f"{len(topics)} topics cannot become the one {settings.to_topic}")
    return _plan(settings, state, topics)


def _plan(settings: ReplaySettings, state: ArchiveState, topics: Sequence[str]) -> ReplayPlan:
    about: list[ReplayTopic] = []
    replays: list[PartitionReplay] = []
    needed: dict[str, int] = {}
    for topic in topics:
        target = settings.to_topic or topic
        selected = select(state, topic, settings.selection)
        lives = [key.topic_id for key in state.covered if key.topic == topic]
        about.append(ReplayTopic(source=topic, target=target, topic_id=lives[-1]))
        needed[target] = state.partitions.get(topic, 1)
        replays += [PartitionReplay(files, target) for files in selected]
    job = ReplayJob(topics=tuple(about), selection=settings.selection)
    return ReplayPlan(job, tuple(replays), needed)


def run_replay(
    runner: TaskRunner, settings: ReplaySettings, told: Told, files: Files | None = None
) -> ReplaySummary:
    """The same by any runner. Raises JobError, OSError."""
    files = files or Files()
    plan = plan_replay(settings, files)
    layout = ArchiveLayout(settings.archive)
    _check_files(layout, plan)
    summary = ReplaySummary()
    if not plan.replays:
        return summary
    summary.notes += _prepare_targets(settings, plan)
    notes = ProgressNotes(layout.replay(settings.job_id), files)
    notes.begin(plan.job)
    left = [each for each in plan.replays if not notes.of(each.source.partition).is_done]
    summary.replayed += [_done_before(each, notes) for each in plan.replays if each not in left]
    if left:  # else the runner is not asked: Spark takes seconds to start
        work = _work(settings, layout, files, min(runner.parallelism, len(left)))
        with (
            _watched(notes, [each.source for each in left], told),
            closing(runner.run(work, left, "replay")) as results,
        ):
            for _, replayed in results:
                summary.replayed += replayed
    summary.replayed.sort(key=lambda each: each.source)
    return summary


def _work(
    settings: ReplaySettings, layout: ArchiveLayout, files: Files, at_once: int
) -> SendingWork:
    rate = settings.records_per_s
    return SendingWork(
        layout=layout,
        job_id=settings.job_id,
        config=settings.client,
        selection=settings.selection,
        records_per_s=None if rate is None else rate / at_once,
        files=files,
    )


def _done_before(wanted: PartitionReplay, notes: ProgressNotes) -> PartitionReplayed:
    progress = notes.of(wanted.source.partition)
    return PartitionReplayed(wanted.source.partition, wanted.target, progress, progress, 0, 0)


def _check_files(layout: ArchiveLayout, plan: ReplayPlan) -> None:
    """All are there, and have what is needed: before anything is sent."""
    import pyarrow.parquet as pq

    for each in plan.replays:
        for file in each.source.files:
            path = layout.root / file.path
            try:
                check_columns(pq.read_schema(path), str(path))
            except FileNotFoundError:
                raise JobError(
                    f"{path} has been deleted (or is being published: run archive again)"
                ) from None


def _prepare_targets(settings: ReplaySettings, plan: ReplayPlan) -> list[str]:
    """Make the topics that are missing; what is to be said about the others."""
    from .target import Targets

    targets = Targets(settings.client)
    there = targets.partitions()
    for target, needed in plan.partitions.items():
        if target not in there:
            if not settings.create:
                raise JobError(f"there is no topic {target}: create it, or let replay (--create)")
            targets.create(target, needed, settings.topic_settings)
        elif there[target] < needed:
            raise JobError(f"{target} has {there[target]} partitions, {needed} are needed")
    oldest_ms = min(file.times_ms[0] for each in plan.replays for file in each.source.files)
    existing = [target for target in plan.partitions if target in there]
    return targets.objections(existing, oldest_ms, time.time_ns() // 1_000_000) if existing else []


@contextmanager
def _watched(notes: ProgressNotes, wanted: Sequence[PartitionFiles], told: Told) -> Iterator[None]:
    """Tells how many records have been acknowledged, by what the tasks note."""
    told.total("replaying", sum(each.records for each in wanted))
    ended = threading.Event()

    def look() -> None:
        seen = 0
        last = False
        while not last:
            last = ended.wait(_LOOK_EVERY_S)
            records = sum(notes.of(each.partition).records for each in wanted)
            told.done(records - seen)
            seen = records

    watch = threading.Thread(target=look, name="replay-progress", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()
