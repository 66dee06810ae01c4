"""The jobs as Python calls, for notebooks and programs. They do what the commands do.

    from odradek.pipeline.calls import archive, replay

    summary = archive("ARCHIVE", "data", topics=["orders"], until_end=True)
    summary.total().records, summary.problems

`topics` and `path` take one or several. `processes` is how many processes of this
machine do the work, by default one for each core.

They run in processes of this machine, archive and replay on Spark if a session is given. A script
must call them below `if __name__ == "__main__":`, because the processes import its file. In a
terminal and in a notebook with ipywidgets they show a progress bar. They raise JobError and
OSError.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.pipeline.jobs.archive.job import ArchiveSettings, run_archive
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from odradek.pipeline.jobs.archive.splitting.json_schema import parse_json_schema
from odradek.pipeline.jobs.archive.splitting.topic_schemas import RegistryChoice
from odradek.pipeline.jobs.archive.summary import ArchiveSummary
from odradek.pipeline.jobs.process_tasks import ProcessTasks
from odradek.pipeline.jobs.progress import progress_bar
from odradek.pipeline.jobs.replay.job import ReplaySettings, ReplaySummary, new_job_id, run_replay
from odradek.pipeline.jobs.replay.selection import Selection
from odradek.pipeline.jobs.stats.job import StatsReport, StatsSettings, run_stats
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.sink.write_options import Delivery
from odradek.storage.time_text import utc_ms

from .jobs import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Directory = str | PathLike[str]


def archive(  # noqa: PLR0913 - one parameter per option of the command
    target: Directory,
    path: Directory | Sequence[Directory],
    *,
    topics: str | Sequence[str] = (),
    pattern: str | None = None,
    until_end: bool = False,
    committed_only: bool = True,
    schema: Mapping[str, Any] | None = None,
    registry: RegistryChoice | None = None,
    keep_value: bool = True,
    compact: bool = False,
    accept_changes: bool = False,
    skip_unreadable: bool = False,
    iceberg_catalog: Directory | None = None,
    storage: Mapping[str, str] | None = None,
    processes: int | None = None,
    spark: "SparkSession | None" = None,
) -> ArchiveSummary:
    """Archive the log directories `path` in the Delta table `target`, as the command does.

    `schema` gives values columns: {"id": "long"}. What could not be archived is in the summary's
    `problems`, `lost` and `skipped`.
    """
    settings = ArchiveSettings(
        log_directories=_paths(path),
        archive=ArchiveLocation.named(str(target), storage or {}),
        topics=_topics(topics, pattern),
        until_end=until_end,
        committed_only=committed_only,
        values=None if schema is None else parse_json_schema(json.dumps(schema)),
        registry=registry,
        keep_value=keep_value,
        compact=compact,
        accept_changes=accept_changes,
        skip_unreadable=skip_unreadable,
        iceberg_catalog=None if iceberg_catalog is None else Path(iceberg_catalog),
    )
    with _runner(processes, spark) as runner, progress_bar("tasks") as bar:
        return run_archive(runner, settings, bar)


def replay(  # noqa: PLR0913 - one parameter per option of the command
    source: Directory,
    client: Mapping[str, str],
    *,
    topics: str | Sequence[str] = (),
    pattern: str | None = None,
    to_topic: str | None = None,
    from_time: datetime | None = None,
    to_time: datetime | None = None,
    from_offset: int | None = None,
    to_offset: int | None = None,
    partitions: Sequence[int] = (),
    create: bool = False,
    topic_settings: Mapping[str, str] | None = None,
    records_per_s: float | None = None,
    job_id: str | None = None,
    delivery: str = "exactly-once",
    storage: Mapping[str, str] | None = None,
    processes: int | None = None,
    spark: "SparkSession | None" = None,
) -> ReplaySummary:
    """Send records of the archive `source` to topics, as the command does.

    `client` are librdkafka's settings, with `bootstrap.servers`. If a replay is stopped or fails,
    the exception has a note with its job id, with which another call continues it.
    """
    if not topics and pattern is None:
        raise JobError("name topics, or a pattern")
    if delivery not in list(Delivery):
        raise JobError(f"delivery must be {' or '.join(Delivery)}, not {delivery!r}")
    settings = ReplaySettings(
        archive=ArchiveLocation.named(str(source), storage or {}),
        client=client,
        job_id=job_id or new_job_id(),
        continues=job_id is not None,
        topics=_topics(topics, pattern),
        to_topic=to_topic,
        selection=Selection(
            from_ms=None if from_time is None else utc_ms(from_time),
            to_ms=None if to_time is None else utc_ms(to_time),
            from_offset=from_offset,
            to_offset=to_offset,
            partitions=tuple(sorted(set(partitions))),
        ),
        delivery=Delivery(delivery),
        create=create,
        topic_settings=topic_settings or {},
        records_per_s=records_per_s,
    )
    try:
        with _runner(processes, spark) as runner, progress_bar("records") as bar:
            return run_replay(runner, settings, bar)
    except BaseException as error:
        error.add_note(f"the replay is continued with job_id={settings.job_id!r}, if it had begun")
        raise


def stats(
    path: Directory | Sequence[Directory],
    *,
    topics: str | Sequence[str] = (),
    pattern: str | None = None,
    processes: int | None = None,
) -> StatsReport:
    """Count the records of topics, and find the lag of groups, as the command does."""
    settings = StatsSettings(log_directories=_paths(path), topics=_topics(topics, pattern))
    with ProcessTasks(processes) as runner, progress_bar("tasks") as bar:
        return run_stats(runner, settings, bar)


@contextmanager
def _runner(processes: int | None, spark: "SparkSession | None") -> Iterator[TaskRunner]:
    if spark is not None:
        from odradek.pipeline.jobs.spark_tasks import SparkTasks

        yield SparkTasks(spark)
        return
    with ProcessTasks(processes) as tasks:
        yield tasks


def _paths(given: Directory | Sequence[Directory]) -> list[Path]:
    several = [given] if isinstance(given, str | PathLike) else given
    return [Path(each).absolute() for each in several]


def _topics(names: str | Sequence[str], pattern: str | None) -> TopicChoice:
    return TopicChoice(names=[names] if isinstance(names, str) else names, pattern=pattern)
