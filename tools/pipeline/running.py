"""A job from its start to its exit code.

0    done
1    it failed, or something could not be done: what, is said
2    it cannot be begun: wrong usage, no pyspark, no Java
3    done, but records were gone before they could be read
130  interrupted
"""

import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

import typer

from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.session import NoSparkError, make_session
from odradek.tools.broken_pipe import exit_code_after_broken_pipe

from .quiet_spark import quiet_settings, start_interruptible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipeline.jobs.spark_tasks import SparkTasks

Item = TypeVar("Item")
Result = TypeVar("Result")
EXIT_DONE = 0
EXIT_PROBLEMS = 1
EXIT_USAGE = 2
EXIT_LOST = 3
EXIT_INTERRUPTED = 130
_OF_THE_EXTRA = frozenset({"confluent_kafka", "numpy", "pyarrow", "py4j", "pyspark", "yaml"})


def run_job(job: Callable[[], int]) -> None:
    """Run it, say what keeps it from being done, and exit with its code."""
    raise typer.Exit(_code_of(job))


def _code_of(job: Callable[[], int]) -> int:
    try:
        code = job()
        sys.stdout.flush()
    except BrokenPipeError:
        return exit_code_after_broken_pipe()
    except KeyboardInterrupt:
        say_error("interrupted: what was finished stays, and the next run goes on from there")
        return EXIT_INTERRUPTED
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name not in _OF_THE_EXTRA:
            raise
        say_error(f"{name} is not installed: pip install 'odradek[spark]'")
        return EXIT_USAGE
    except NoSparkError as error:
        say_error(str(error))
        return EXIT_USAGE
    except (JobError, OSError) as error:
        say_error(str(error))
        return EXIT_PROBLEMS
    return code


def say_error(text: str) -> None:
    """One line on standard error."""
    typer.secho(f"error: {text}", fg="red", err=True)


def spark_session(name: str, master: str | None, conf: Mapping[str, str]) -> "SparkSession":
    """A session for one job. Raises NoSparkError, JobError."""
    warnings.filterwarnings("ignore", module="pyspark")  # what it thinks of new versions of pandas
    typer.secho(f"starting Spark on {master or 'local[*]'}", dim=True, err=True)
    try:
        settings = quiet_settings(conf)
        return start_interruptible(lambda: make_session(master, f"odradek {name}", settings))
    except NoSparkError:
        raise
    except Exception as error:  # whatever Spark finds wrong with the master or a setting
        from odradek.pipeline.jobs.spark_tasks import reason_of

        raise JobError(f"Spark does not start: {reason_of(error)}") from error


class SparkOnDemand:
    """Runs the parts of a job; Spark is started when there is the first one."""

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
