"""Implements `odradek pipeline replay`: one task per partition writes an archive to topics."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.layout import ArchiveLayout
from odradek.pipeline.jobs.archive.manifest import ArchiveState, Manifest
from odradek.pipeline.jobs.progress import NO_PROGRESS, Progress
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.files import Files

from .outgoing import check_columns
from .progress_files import ProgressFiles, ReplayJob, ReplayTopic
from .selection import PartitionFiles, Selection, select
from .sending import PartitionReplay, ReplayResult, SendingWork

_POLL_EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What to replay, and where to.

    `client` is librdkafka's configuration, with `bootstrap.servers`. `to_topic` is the target of a
    single topic; by default each topic is written to one of the same name. With `create`, missing
    topics are created with `topic_settings`. `records_per_s` is the limit of all partitions
    together.
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
    """The partitions and their targets; `partitions` is the number that each target needs."""

    job: ReplayJob
    replays: tuple[PartitionReplay, ...]
    partitions: Mapping[str, int]


@dataclass(slots=True)
class ReplaySummary:
    """The result of a run; `notes` are warnings about the target topics."""

    results: list[ReplayResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan_replay(settings: ReplaySettings, files: Files | None = None) -> ReplayPlan:
    """Return what a run would do, without connecting to a broker. Raises JobError, OSError."""
    manifest = Manifest(ArchiveLayout(settings.archive), files or Files())
    state = ArchiveState.of(manifest.entries())
    if not state.last_number:
        raise JobError(f"{settings.archive} is not an archive: it has no manifest")
    topics = settings.topics.select(sorted({key.topic for key in state.covered}))
    if settings.to_topic is not None and len(topics) != 1:
        raise JobError(f"cannot replay {len(topics)} topics to one topic, {settings.to_topic}")
    return _plan(settings, state, topics)


def _plan(settings: ReplaySettings, state: ArchiveState, topics: Sequence[str]) -> ReplayPlan:
    replayed: list[ReplayTopic] = []
    replays: list[PartitionReplay] = []
    needed: dict[str, int] = {}
    for topic in topics:
        target = settings.to_topic or topic
        selected = select(state, topic, settings.selection)
        topic_ids = [key.topic_id for key in state.covered if key.topic == topic]
        replayed.append(ReplayTopic(source=topic, target=target, topic_id=topic_ids[-1]))
        needed[target] = state.partitions.get(topic, 1)
        replays += [PartitionReplay(files, target) for files in selected]
    job = ReplayJob(topics=tuple(replayed), selection=settings.selection)
    return ReplayPlan(job, tuple(replays), needed)


def run_replay(
    runner: TaskRunner,
    settings: ReplaySettings,
    progress: Progress = NO_PROGRESS,
    files: Files | None = None,
) -> ReplaySummary:
    """Start or resume a replay. Raises JobError, OSError."""
    files = files or Files()
    plan = plan_replay(settings, files)
    layout = ArchiveLayout(settings.archive)
    _check_files(layout, plan)
    summary = ReplaySummary()
    if not plan.replays:
        return summary
    summary.notes += _prepare_targets(settings, plan)
    stored = ProgressFiles(layout.replay(settings.job_id), files)
    stored.begin(plan.job)
    left = [each for each in plan.replays if not stored.read(each.source.partition).is_done]
    for each in plan.replays:
        if each not in left:
            before = stored.read(each.source.partition)
            summary.results.append(ReplayResult(each.source.partition, each.target, before, before))
    if left:  # else the runner is not used: Spark takes seconds to start
        work = _work(settings, layout, files, min(runner.parallelism, len(left)))
        with (
            _reported(stored, [each.source for each in left], progress),
            closing(runner.run(work, left, "replay")) as results_by_task,
        ):
            for _, results in results_by_task:
                summary.results += results
    summary.results.sort(key=lambda each: each.source)
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


def _check_files(layout: ArchiveLayout, plan: ReplayPlan) -> None:
    """Check that all files exist and have the required columns, before anything is sent."""
    import pyarrow.parquet as pq

    for each in plan.replays:
        for file in each.source.files:
            path = layout.root / file.path
            try:
                check_columns(pq.read_schema(path), str(path))
            except FileNotFoundError:
                raise JobError(
                    f"{path} was deleted, or is not published yet: run archive again"
                ) from None


def _prepare_targets(settings: ReplaySettings, plan: ReplayPlan) -> list[str]:
    """Create missing topics; return warnings about the others."""
    from .target import Targets

    targets = Targets(settings.client)
    existing = targets.partitions()
    for target, needed in plan.partitions.items():
        if target not in existing:
            if not settings.create:
                raise JobError(f"topic {target} does not exist: create it, or use --create")
            targets.create(target, needed, settings.topic_settings)
        elif existing[target] < needed:
            raise JobError(f"{target} has {existing[target]} partitions; {needed} are needed")
    oldest_ms = min(file.times_ms[0] for each in plan.replays for file in each.source.files)
    used = [target for target in plan.partitions if target in existing]
    return targets.warnings(used, oldest_ms, time.time_ns() // 1_000_000) if used else []


@contextmanager
def _reported(
    stored: ProgressFiles, wanted: Sequence[PartitionFiles], progress: Progress
) -> Iterator[None]:
    """Report how many records are acknowledged, from the progress that the tasks store."""
    progress.total("replaying", sum(each.records for each in wanted))
    ended = threading.Event()

    def poll() -> None:
        reported = 0
        last = False
        while not last:
            last = ended.wait(_POLL_EVERY_S)
            records = sum(stored.read(each.partition).records for each in wanted)
            progress.done(records - reported)
            reported = records

    poller = threading.Thread(target=poll, name="replay-progress", daemon=True)
    poller.start()
    try:
        yield
    finally:
        ended.set()
        poller.join()
