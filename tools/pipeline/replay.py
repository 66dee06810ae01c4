"""`odradek pipeline replay`: sends archived records to topics."""

import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from odradek.storage.time_text import utc_ms
from odradek.tools.client.options import Bootstrap, ConfigFile, parse_name, parse_text

from .options import (
    Conf,
    DryRun,
    Master,
    Place,
    Processes,
    Storage,
    Topic,
    archive_location,
    place_of,
    settings_of,
)

if TYPE_CHECKING:
    from odradek.pipeline.jobs.replay.job import ReplaySettings


def command(  # noqa: PLR0913 - one parameter per option
    *,
    archive: Annotated[
        str, typer.Argument(metavar="ARCHIVE", help="The directory or URL of an archive.")
    ],
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
    topic: Topic = None,
    topics: Annotated[
        str | None,
        typer.Option(
            "--topics",
            metavar="PATTERN",
            help="Topics whose whole name matches this regular expression; an internal topic must "
            "be named by --topic. One of the two options is needed.",
        ),
    ] = None,
    to_topic: Annotated[
        str | None,
        typer.Option(
            "--to-topic",
            metavar="NAME",
            parser=parse_name,
            help="The target topic.  \\[default: the archived topic]",
        ),
    ] = None,
    from_time: Annotated[
        str | None,
        typer.Option(
            "--from-time", metavar="TIME", help="The first timestamp: ISO 8601, or milliseconds."
        ),
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option("--to-time", metavar="TIME", help="The end timestamp, exclusive."),
    ] = None,
    from_offset: Annotated[
        int | None, typer.Option("--from-offset", min=0, help="The first offset.")
    ] = None,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="The end offset, exclusive.")
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", min=0, help="A partition; may be given several times."),
    ] = None,
    create: Annotated[
        bool,
        typer.Option(
            "--create", help="Create missing topics, with as many partitions as were archived."
        ),
    ] = False,
    topic_config: Annotated[
        list[str] | None,
        typer.Option(
            "--topic-config",
            metavar="KEY=VALUE",
            parser=parse_text,
            help="With --create: a setting of the new topics; may be given several times.",
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, help="Records per second, at most.")
    ] = None,
    job_id: Annotated[
        str | None,
        typer.Option(
            "--job-id",
            metavar="ID",
            help="Continue this replay, which was stopped or killed.  \\[default: a new replay]",
        ),
    ] = None,
    delivery: Annotated[
        Literal["exactly-once", "at-least-once"],
        typer.Option(
            "--delivery",
            help="exactly-once, or at-least-once for brokers without transactions.",
        ),
    ] = "exactly-once",
    client_config: Annotated[
        list[str] | None,
        typer.Option(
            "--client-config",
            metavar="KEY=VALUE",
            parser=parse_text,
            help="A librdkafka setting beside those of --config; may be given several times.",
        ),
    ] = None,
    storage: Storage = None,
    processes: Processes = None,
    master: Master = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Send archived records to a topic: same partitions, order, timestamps, keys, headers.

    Records are sent in transactions. A replay that was stopped or killed continues with its
    --job-id: readers of committed records see each record once.
    """
    if not topic and topics is None:
        raise typer.BadParameter("name a topic, or a pattern by --topics", param_hint="--topic")
    _check_job_id(job_id)
    bounds_ms = (_time_ms(from_time, "--from-time"), _time_ms(to_time, "--to-time"))
    _check_order(bounds_ms, "--to-time")
    _check_order((from_offset, to_offset), "--to-offset")
    more_client_settings = settings_of(client_config, "--client-config")
    if "bootstrap.servers" in more_client_settings:
        raise typer.BadParameter("name the broker by --bootstrap", param_hint="--client-config")
    topic_settings = settings_of(topic_config, "--topic-config")
    if topic_settings and not create:
        raise typer.BadParameter("needs --create", param_hint="--topic-config")
    place = place_of(processes, master, conf)
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.replay.job import ReplaySettings, new_job_id
        from odradek.pipeline.jobs.replay.selection import Selection
        from odradek.pipeline.jobs.topic_choice import TopicChoice
        from odradek.pipeline.sink.write_options import Delivery
        from odradek.tools.client.client_config import client_settings

        settings = ReplaySettings(
            archive=archive_location(archive, storage),
            client={**client_settings(bootstrap, config), **more_client_settings},
            job_id=job_id or new_job_id(),
            continues=job_id is not None,
            topics=TopicChoice(names=topic or (), pattern=topics),
            to_topic=to_topic,
            selection=Selection(
                from_ms=bounds_ms[0],
                to_ms=bounds_ms[1],
                from_offset=from_offset,
                to_offset=to_offset,
                partitions=tuple(sorted(set(partition or ()))),
            ),
            delivery=Delivery(delivery),
            create=create,
            topic_settings=topic_settings,
            records_per_s=rate,
        )
        return _planned(settings) if dry_run else _run(settings, place)

    run_job(job)


def _check_job_id(job_id: str | None) -> None:
    """Raise BadParameter unless the id can be a directory's name."""
    if job_id is not None and not job_id.replace("-", "").replace("_", "").isalnum():
        raise typer.BadParameter("letters, digits, - and _ only", param_hint="--job-id")


def _check_order(bounds: tuple[int | None, int | None], hint: str) -> None:
    """Raise BadParameter if nothing is between the bounds."""
    start, end = bounds
    if start is not None and end is not None and start >= end:
        raise typer.BadParameter("is not after the start", param_hint=hint)


def _time_ms(text: str | None, hint: str) -> int | None:
    """Parse a time to milliseconds since 1970; without a zone it is UTC. Raises BadParameter."""
    if text is None:
        return None
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        return utc_ms(datetime.fromisoformat(text))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}", param_hint=hint) from error


def _planned(settings: "ReplaySettings") -> int:
    from odradek.pipeline.jobs.replay.job import plan_replay
    from odradek.tools.tables import number, print_each, show_table, size

    plan = plan_replay(settings)
    rows = [
        (
            str(source.of),
            target,
            number(len(source.files)),
            number(source.records),
            size(source.size_bytes),
        )
        for (target, _), source in plan.sources.items()
    ]
    header = ("partition", "to topic", "files", "records, at most", "size")
    show_table("would be replayed (nothing was sent)", header, rows)
    print_each("note", plan.notes)
    return 0


def _run(settings: "ReplaySettings", place: Place) -> int:
    from odradek.pipeline.jobs.progress import progress_bar
    from odradek.pipeline.jobs.replay.job import run_replay

    from .replay_report import show_summary
    from .running import runner_for

    def on_begin() -> None:
        typer.secho(f"job {settings.job_id}", dim=True, err=True)

    started = time.monotonic()
    with runner_for("replay", place) as runner, progress_bar("records") as bar:
        summary = run_replay(runner, settings, bar, on_begin=on_begin)
    title = f"job {settings.job_id}: replayed in {time.monotonic() - started:.1f} s"
    return show_summary(summary, title)
