"""Runs a job: in processes or on Spark, prints errors, and chooses the exit code.

0    done
1    failed, or done in part; the reason is printed
2    not started: wrong usage, a package or Java is missing
3    done, but some records had been deleted before they could be read, or were skipped
4    another process did the same work at the same time, and what it did is complete
130  interrupted
"""

import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Self, TypeVar

import typer

from odradek.pipeline.jobs import JobError, OvertakenError
from odradek.pipeline.session import NoSparkError, make_session
from odradek.tools.client.failure import CommandError
from odradek.tools.standard_streams import reader_may_end

from .options import Place
from .quiet_spark import quiet_settings, start_interruptible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipeline.jobs.spark_tasks import SparkTasks
    from odradek.pipeline.jobs.task_runner import TaskRunner

Item = TypeVar("Item")
Result = TypeVar("Result")
EXIT_DONE = 0
EXIT_PROBLEMS = 1
EXIT_USAGE = 2
EXIT_LOST = 3
EXIT_ANOTHER = 4
EXIT_INTERRUPTED = 130
_EXTRAS = {
    **dict.fromkeys(("confluent_kafka", "deltalake", "numpy", "pyarrow"), "pipeline"),
    **dict.fromkeys(("py4j", "pyspark"), "spark"),
    **dict.fromkeys(("fastavro", "google", "httpx2", "jsonschema"), "registry"),
}


def run_job(job: Callable[[], int]) -> None:
    """Run the job, print its error if it fails, and exit with the code."""
    raise typer.Exit(_exit_code_of(job))


def _exit_code_of(job: Callable[[], int]) -> int:
    try:
        with reader_may_end():
            return job()
    except KeyboardInterrupt:
        print_error("interrupted: finished work is kept, and the next run continues from there")
        return EXIT_INTERRUPTED
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name not in _EXTRAS:
            raise
        print_error(f"{name} is not installed: pip install 'odradek[{_EXTRAS[name]}]'")
        return EXIT_USAGE
    except NoSparkError as error:
        print_error(str(error))
        return EXIT_USAGE
    except OvertakenError as error:
        print_error(str(error))
        return EXIT_ANOTHER
    except (JobError, OSError, CommandError) as error:
        print_error(str(error))
        return EXIT_PROBLEMS


def print_error(text: str) -> None:
    """Print one line to standard error."""
    typer.secho(f"error: {text}", fg="red", err=True)


def runner_for(job: str, place: Place) -> "AbstractContextManager[TaskRunner]":
    """Return what runs the parts of a job there. Nothing is started before the first part."""
    if place.is_spark:
        return SparkOnDemand(job, place.master, place.conf)
    from odradek.pipeline.jobs.process_tasks import ProcessTasks

    return ProcessTasks(place.processes)


def spark_session(name: str, master: str | None, conf: Mapping[str, str]) -> "SparkSession":
    """Start a session for one job. Raises NoSparkError, JobError."""
    warnings.filterwarnings("ignore", module="pyspark")  # it warns about new versions of pandas
    typer.secho(f"starting Spark on {master or 'local[*]'}", dim=True, err=True)
    try:
        settings = quiet_settings(conf)
        return start_interruptible(lambda: make_session(master, f"odradek {name}", settings))
    except NoSparkError:
        raise
    except Exception as error:  # Spark raises many types for a wrong master or setting
        from odradek.pipeline.jobs.spark_tasks import short_reason

        raise JobError(f"Spark does not start: {short_reason(error)}") from error


class SparkOnDemand:
    """A TaskRunner that starts Spark when the first task is run."""

    def __init__(self, name: str, master: str | None, conf: Mapping[str, str]) -> None:
        self._wanted = (name, master, conf)
        self._session: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.stop()

    @property
    def parallelism(self) -> int:
        """See TaskRunner."""
        return self._tasks().parallelism

    def run(
        self, work: Callable[[Item], Iterable[Result]], items: Sequence[Item], description: str
    ) -> Generator[tuple[int, list[Result]], None, None]:
        """See TaskRunner."""
        if items:
            yield from self._tasks().run(work, items, description)

    def _tasks(self) -> "SparkTasks":
        from odradek.pipeline.jobs.spark_tasks import SparkTasks

        if self._session is None:
            self._session = spark_session(*self._wanted)
        return SparkTasks(self._session)
