"""Implements `odradek pipeline replay`: one task per partition writes an archive to topics."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from xxhash import xxh3_64_hexdigest

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from odradek.pipeline.jobs.progress import NO_PROGRESS, Progress
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.sink.marks import MarkGroup, Place
from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_transaction import TaskTransaction
from odradek.pipeline.sink.turns import Clock
from odradek.pipeline.sink.write_options import Delivery
from odradek.storage.files import Files

from .archived import ArchivedPartition, read_archive
from .partition_progress import (
    ID_PREFIX,
    PartitionProgress,
    check_same_job,
    first_marks,
    read_progress,
)
from .selection import Selection
from .sending import PartitionReplay, ReplayResult, SendingWork

_POLL_EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What to replay, and where to.

    `client` is librdkafka's configuration, with `bootstrap.servers`. `to_topic` is the target of a
    single topic; by default each topic is written to one of the same name. With `create`, missing
    topics are created with `topic_settings`. `records_per_s` is the limit of all partitions
    together. With `continues`, the job must have begun before.
    """

    archive: ArchiveLocation
    client: Mapping[str, str]
    job_id: str
    topics: TopicChoice
    continues: bool = False
    to_topic: str | None = None
    selection: Selection = field(default_factory=Selection)
    delivery: Delivery = Delivery.EXACTLY_ONCE
    create: bool = False
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    records_per_s: float | None = None


class ReplayPlan(NamedTuple):
    """The partitions with their targets, and how many partitions each target needs.

    `notes` say in what the archive may differ from the topics that were archived.
    """

    sources: Mapping[Place, ArchivedPartition]
    partitions: Mapping[str, int]
    content_hash: str
    notes: Sequence[str]


@dataclass(slots=True)
class ReplaySummary:
    """The result of a run. `notes` are warnings about the archive and the target topics."""

    results: list[ReplayResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many records this run has sent."""
        return sum(each.progress.records - each.before.records for each in self.results)


def new_job_id() -> str:
    """Return an id for a job that begins now."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"


def plan_replay(settings: ReplaySettings, files: Files | None = None) -> ReplayPlan:
    """Return what a run would do, without connecting to a broker. Raises JobError, OSError."""
    rate = settings.records_per_s
    if rate is not None and not 0 < rate < math.inf:
        raise JobError(f"{rate:g} records per second is no rate: name one above 0, or none")
    archived = read_archive(settings.archive, settings.topics, settings.selection, files or Files())
    if settings.to_topic is not None and len(archived.topics) != 1:
        raise JobError(
            f"cannot replay {len(archived.topics)} topics to one topic, {settings.to_topic}"
        )
    targets = {topic: settings.to_topic or topic for topic in archived.topics}
    sources = {
        (targets[topic], each.of.partition): each
        for topic, partitions in archived.topics.items()
        for each in partitions
    }
    for source in sources.values():
        source.check(settings.selection)
    needed = {targets[topic]: count for topic, count in archived.partition_counts.items()}
    topic_ids = sorted({(each.of.topic, each.topic_id) for each in sources.values()})
    content_hash = xxh3_64_hexdigest(msgspec.json.encode((targets, topic_ids, settings.selection)))
    return ReplayPlan(sources, needed, content_hash, archived.notes)


def run_replay(
    runner: TaskRunner,
    settings: ReplaySettings,
    progress: Progress = NO_PROGRESS,
    files: Files | None = None,
    on_begin: Callable[[], None] = lambda: None,
) -> ReplaySummary:
    """Begin or continue a replay. `on_begin` is called when it can be continued.

    Raises JobError, OSError.
    """
    plan = plan_replay(settings, files)
    summary = ReplaySummary(notes=list(plan.notes))
    if not plan.sources:
        return summary
    summary.notes += _prepare_targets(settings, plan)
    try:
        with MarkGroup(settings.client, ID_PREFIX + settings.job_id) as group:
            before = _begin(settings, plan, group, summary)
            on_begin()
            replays = [
                PartitionReplay(plan.sources[place], place[0], before[place]) for place in before
            ]
            left = [each for each in replays if not each.before.is_done]
            summary.results = [_unchanged(each) for each in replays if each.before.is_done]
            if left:  # else the runner is not used: Spark takes seconds to start
                work = _work(settings, min(runner.parallelism, len(left)))
                with (
                    _reported(group, left, progress),
                    closing(runner.run(work, left, "replay")) as results_by_task,
                ):
                    for _, results in results_by_task:
                        summary.results += results
    except WriteError as error:
        raise JobError(str(error)) from error
    summary.results.sort(key=lambda each: each.source)
    return summary


def _begin(
    settings: ReplaySettings, plan: ReplayPlan, group: MarkGroup, summary: ReplaySummary
) -> dict[Place, PartitionProgress]:
    """Commit the first marks unless the job is continued, check its marks, and return them."""
    found = read_progress(group, plan.sources.keys())
    if not settings.continues:
        if found:
            raise JobError(f"the job {settings.job_id} exists already")
        _commit_first(settings, plan, group)
        found = read_progress(group, plan.sources.keys())
    check_same_job(plan.content_hash, settings.job_id, list(found.values()))
    for place, progress in found.items():
        if not progress.is_done:
            plan.sources[place].check_continued(progress.next_offset, progress.repairs)
    summary.notes += [
        f"{plan.sources[place].of} was archived after the job began: it is not part of it"
        for place in plan.sources
        if place not in found
    ]
    return found


def _commit_first(settings: ReplaySettings, plan: ReplayPlan, group: MarkGroup) -> None:
    marks = first_marks(plan.content_hash, plan.sources.keys())
    if settings.delivery is Delivery.AT_LEAST_ONCE:
        group.commit(marks)
        return
    target, _ = next(iter(plan.sources))
    with closing(TaskTransaction(settings.client, group.name, [target], Clock())) as transaction:
        transaction.take_over()
        transaction.begin()
        transaction.commit(group, marks)


def _unchanged(replay: PartitionReplay) -> ReplayResult:
    return ReplayResult(replay.source.of, replay.target, replay.before, replay.before)


def _work(settings: ReplaySettings, at_once: int) -> SendingWork:
    rate = settings.records_per_s
    return SendingWork(
        client=settings.client,
        job_id=settings.job_id,
        selection=settings.selection,
        delivery=settings.delivery,
        records_per_s=None if rate is None else rate / at_once,
    )


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
    oldest_ms = min(source.oldest_ms for source in plan.sources.values())
    used = [target for target in plan.partitions if target in existing]
    return targets.warnings(used, oldest_ms, time.time_ns() // 1_000_000) if used else []


@contextmanager
def _reported(
    group: MarkGroup, replays: Sequence[PartitionReplay], progress: Progress
) -> Iterator[None]:
    """Report how many records are committed, from the marks."""
    places = [each.place for each in replays]
    progress.total("replaying", sum(each.source.records for each in replays))
    ended = threading.Event()

    def poll() -> None:
        reported = 0
        last = False
        while not last:
            last = ended.wait(_POLL_EVERY_S)
            try:
                # A single attempt: the end of the job waits for it.
                found = read_progress(group, places, within_s=0)
            except (JobError, WriteError):
                continue  # the tasks report what is wrong
            records = sum(each.records for each in found.values())
            progress.done(records - reported)
            reported = records

    poller = threading.Thread(target=poll, name="replay-progress", daemon=True)
    poller.start()
    try:
        yield
    finally:
        ended.set()
        poller.join()
