"""Spark with its own Kafka connector, unchanged, in a process of its own.

Its jars have to be named before the JVM starts, so it cannot share the session of other tests.
spark_worker.py is what runs in the process.
"""

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from odradek.pipeline.session import why_no_spark
from tests.support.java_tools import why_no_java
from tests.support.kafka_jars import spark_connector_jars, why_no_jars

ROOT = Path(__file__).parents[2]
JOB_SECONDS = 300.0
STOP_SECONDS = 100.0
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class SparkError(AssertionError):
    """A job failed; the message is Spark's."""


def why_no_connector() -> str | None:
    """Why the connector cannot run here, or None: the reason a test gives for being skipped."""
    reason = why_no_spark() or why_no_java()
    if reason is None and spark_connector_jars() is None:
        reason = why_no_jars()
    return reason


def _with_connector() -> dict[str, str]:
    jars = spark_connector_jars()
    assert jars is not None, why_no_jars()
    return {"spark.jars": ",".join(map(str, jars))}


class SparkProcess:
    """A process with a session; it ends with its `with`. With `connector` it knows "kafka", too.

    Jobs are functions of modules that can be imported: they are given the session, and travel as
    pickles, as does what they answer.
    """

    def __init__(
        self,
        scratch: Path,
        conf: Mapping[str, str],
        master: str = "local[2]",
        *,
        connector: bool = True,
    ) -> None:
        settings = {
            **(_with_connector() if connector else {}),
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
            "spark.log.level": "ERROR",
        }
        self._log = scratch / "spark.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.support.spark_worker"),
                    *(master, json.dumps({**settings, **conf})),
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The Python process; the JVM is its child."""
        return self._process.pid

    def end(self) -> None:
        """Close its input, and wait; it is killed when it does not end then."""
        try:
            self._process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def do(
        self,
        job: Callable[Concatenate[Any, Asked], Answer],
        *arguments: Asked.args,
        **options: Asked.kwargs,
    ) -> Answer:
        """What the job answers, given the session in front. Raises SparkError."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        pickle.dump((job, arguments, options), to)
        to.flush()
        late = threading.Timer(JOB_SECONDS, self._process.kill)  # ends the wait below
        late.start()
        try:
            failure, answer = pickle.load(back)  # our own child
        except EOFError:
            raise SparkError(f"Spark has ended:\n{self.log_text()[-4000:]}") from None
        finally:
            late.cancel()
        if failure is not None:
            raise SparkError(failure)
        done: Answer = answer
        return done

    def log_text(self) -> str:
        """What Spark wrote so far."""
        return self._log.read_text(errors="replace")
