"""`odradek pipeline etl`: its arguments, and how it is stopped. No Spark."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark")

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.etl import job as etl_job
from odradek.pipeline.jobs.etl.job import Stop, _watch
from odradek.pipeline.jobs.etl.job_file import parse_job
from odradek.pipeline.jobs.etl.spark_reports import EtlBatch, EtlSummary
from odradek.pipeline.sink.write_options import Delivery
from odradek.tools.app import app
from odradek.tools.pipeline.etl import _stopped_by_signals
from tests.pipeline.jobs.test_etl_batches import report
from tests.pipeline.jobs.test_etl_file import BASE, EXAMPLE, SMALL


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["pipeline", "etl", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


def test_the_example_is_shown() -> None:
    assert run("--example") == EXAMPLE


def test_a_job_file_is_needed() -> None:
    assert "JOB.yaml" in run(code=2)


def test_errors_are_reported_before_spark_is_started(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    assert "cannot read the job file" in run(file, code=1)
    file.write_text(SMALL.replace("name:", "nome:"))
    for more in ((), ("--dry-run",), ("--once",)):
        assert "nome: unknown key; known keys are name, kafka" in run(file, *more, code=1)
    file.write_text(SMALL.replace("subscribe:", "subskribe:"))
    for more in ((), ("--dry-run",)):
        assert "Unknown option 'subskribe'" in run(file, *more, code=1)


# -- how it ends -----------------------------------------------------------------------------------


class Query:
    """As a StreamingQuery. `script`: what happens at each look."""

    def __init__(self, *script: Callable[["Query"], None]) -> None:
        self.reports: list[dict[str, Any]] = []
        self.status = {"isTriggerActive": True}
        self.looks = 0
        self.has_ended = False
        self._script = script

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's name
        if self.looks < len(self._script):
            self._script[self.looks](self)
        self.looks += 1
        assert self.looks < 50
        return self.has_ended

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802 - Spark's name
        return [_Report(each) for each in self.reports]

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - Spark's name
        return _Report(self.reports[-1]) if self.reports else None

    def stop(self) -> None:
        self.has_ended = True


class _Report(SimpleNamespace):
    def __init__(self, report: dict[str, Any]) -> None:
        super().__init__(timestamp=report["batchId"], json=json.dumps(report))


def nothing(query: Query) -> None:
    """Happens."""


def batch(number: int) -> Callable[[Query], None]:
    """Is finished, and the next one begins at once."""
    return lambda query: query.reports.append(report(number))


def watched(query: Query, stop: Stop, on_batch: Callable[[EtlBatch], None] = print) -> EtlSummary:
    summary = EtlSummary(delivery=Delivery.EXACTLY_ONCE)
    _watch(query, parse_job(EXAMPLE, BASE, {}), summary, on_batch, stop)  # type: ignore[arg-type]  # a fake
    return summary


def test_the_batch_that_is_being_written_is_finished() -> None:
    stop = Stop()
    query = Query(batch(0), lambda query: stop.after_batch.set(), nothing, nothing, batch(1))
    summary = watched(query, stop)
    assert (summary.batches, summary.was_stopped, query.looks) == (2, True, 6)


def test_a_batch_that_had_ended_before_is_not_the_one_that_is_waited_for() -> None:
    stop = Stop()

    def end_and_ask(query: Query) -> None:
        batch(0)(query)
        stop.after_batch.set()

    query = Query(end_and_ask, nothing, batch(1))
    assert watched(query, stop).batches == 2
    assert query.looks == 4


def test_between_two_batches_there_is_nothing_to_wait_for() -> None:
    stop = Stop()
    query = Query(batch(0), lambda query: stop.after_batch.set())
    query.status["isTriggerActive"] = False
    assert watched(query, stop).batches == 1
    assert query.looks == 3


def test_a_second_signal_waits_for_nothing() -> None:
    stop = Stop()
    stop.after_batch.set()
    query = Query(nothing, nothing, lambda query: stop.at_once.set())
    assert watched(query, stop).was_stopped
    assert query.looks == 4


def test_a_batch_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etl_job, "GRACE_S", -1.0)
    stop = Stop()
    stop.after_batch.set()
    assert watched(Query(), stop).batches == 0


def test_a_query_that_ends_by_itself_was_not_stopped() -> None:
    heard: list[int] = []
    query = Query(batch(0), lambda query: (batch(1)(query), query.stop())[0])
    summary = watched(query, Stop(), lambda each: heard.append(each.number))
    assert (summary.batches, summary.was_stopped, heard) == (2, False, [0, 1])


def test_a_query_that_fails_says_why() -> None:
    from pyspark.errors import StreamingQueryException

    def fail(query: Query) -> None:
        raise StreamingQueryException("[STREAM_FAILED] Query terminated with exception: no room")

    with pytest.raises(JobError, match=r"^no room$"):
        watched(Query(batch(0), fail), Stop())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_one_insists(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with _stopped_by_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.after_batch.wait(5)
        assert not stop.at_once.is_set()
        os.kill(os.getpid(), number)
        assert stop.at_once.wait(5)
    assert signal.getsignal(number) is before
