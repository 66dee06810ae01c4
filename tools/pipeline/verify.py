"""`odradek pipeline verify`: the checks of `odradek verify`, for some topics and also on Spark."""

from odradek.tools.verify.options import Deep, Json

from .options import (
    Conf,
    DryRun,
    LogDirs,
    Master,
    Processes,
    Topic,
    Topics,
    log_directories,
    place_of,
)


def command(  # noqa: PLR0913 - one parameter per option
    *,
    path: LogDirs,
    topic: Topic = None,
    topics: Topics = None,
    deep: Deep = False,
    json: Json = False,
    processes: Processes = None,
    master: Master = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Check logs as `odradek verify` does: all, or those of some topics; also on Spark.

    Without --topic and --topics all logs are checked, also internal ones. Nothing is changed. A
    broker may be running, also Apache Kafka's. The exit code is 1 if there are problems.
    """
    directories, place = log_directories(path), place_of(processes, master, conf)
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.topic_choice import TopicChoice
        from odradek.tools.verify.command import run

        chosen = TopicChoice(names=topic or (), pattern=topics) if topic or topics else None
        return run(directories, place, chosen, deep=deep, as_json=json, dry_run=dry_run)

    run_job(job)
