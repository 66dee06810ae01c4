"""Spark's reports on batches, and explanations of its errors. No Spark."""

from typing import Any

import pytest

from odradek.pipeline.jobs.etl.job_file import parse_job
from odradek.pipeline.jobs.etl.spark_reports import (
    EtlBatch,
    EtlSummary,
    SourceCount,
    batches_of,
    explain,
    first_line,
)
from odradek.pipeline.sink.write_options import Delivery
from odradek.tools.pipeline.etl_report import _ProgressLines, progress_line, show_summary
from tests.pipeline.jobs.test_etl_file import BASE, EXAMPLE


def report(number: int, **more: Any) -> dict[str, Any]:
    """As Spark 4.3 writes it."""
    return {
        "batchId": number,
        "durationMs": {"addBatch": 400, "triggerExecution": 500},
        "sources": [
            {
                "endOffset": {"orders": {"0": 50, "1": 40}},
                "latestOffset": {"orders": {"0": 70, "1": 40, "2": 3}},
            }
        ],
        "observedMetrics": {
            "odradek.source.orders": {"records": 90, "bad": 2, "example": "orders-0 offset 7: bad"},
            "odradek.sink": {"records": 30},
            "of the user": {"x": 1},
        },
        **more,
    }


def test_a_batch_is_read_from_observed_metrics() -> None:
    (batch,) = batches_of([report(4)], after=3)
    assert batch.sources == {"orders": SourceCount(90, 2, "orders-0 offset 7: bad")}
    assert (batch.records, batch.bad, batch.written, batch.lag) == (90, 2, 30, 23)
    line = "batch 4: 90 records in (180/s), 30 out (60/s), 2 bad, 23 behind"
    assert progress_line(batch) == line


def test_each_batch_is_counted_once_and_a_look_that_found_nothing_is_none() -> None:
    idle = report(6, durationMs={"triggerExecution": 3, "latestOffset": 3}, observedMetrics={})
    message = [report(4), report(5), report(5), idle]
    assert [batch.number for batch in batches_of(message, after=-1)] == [4, 5]
    assert batches_of(message, after=5) == []


@pytest.mark.parametrize("latest", [None, "no JSON", {"orders": 3}, 7])
def test_the_lag_is_unknown_if_sources_do_not_report_it(latest: object) -> None:
    sources = [{"endOffset": {"orders": {"0": 1}}, "latestOffset": latest}]
    (batch,) = batches_of([report(0, sources=sources)], after=-1)
    assert batch.lag is None
    assert progress_line(batch).endswith("2 bad")


def test_offsets_may_be_json_in_a_text_as_those_of_sparks_connector() -> None:
    sources = [{"endOffset": '{"a":{"0":5}}', "latestOffset": '{"a":{"0":5}}'}]
    (batch,) = batches_of([report(0, sources=sources, observedMetrics={})], after=-1)
    assert (batch.lag, batch.records, batch.written) == (0, 0, 0)
    assert progress_line(batch).endswith("caught up")


def summary_of(*numbers: int, **more: Any) -> EtlSummary:
    summary = EtlSummary(delivery=Delivery.EXACTLY_ONCE, **more)
    for batch in batches_of([report(number) for number in numbers], after=-1):
        summary.add(batch)
    return summary


def test_a_summary_has_counts_bad_records_and_the_guarantee(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = parse_job(EXAMPLE, BASE, {})
    assert show_summary(job, summary_of(0, 1), 2.0, until_caught_up=False) == 0
    out, err = capsys.readouterr()
    assert "large-orders: done after 2.0 s, 2 batches" in out
    assert "orders      180    4" in out
    assert "written: 60 records, exactly once" in out
    assert "4 of orders were sent to orders.bad" in err
    assert "for example: orders-0 offset 7: bad" in err


def test_a_requested_stop_interrupts_only_a_job_that_would_end_by_itself() -> None:
    job = parse_job(EXAMPLE, BASE, {})
    stopped = summary_of(0, was_stopped=True)
    assert show_summary(job, stopped, 2.0, until_caught_up=False) == 0
    assert show_summary(job, stopped, 2.0, until_caught_up=True) == 130


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [100.0]
    lines = _ProgressLines(lambda: now[0])
    empty = EtlBatch(number=0, seconds=0, sources={}, written=0, lag=0)
    for number, second in enumerate((100, 101, 109, 111)):
        now[0] = second
        lines.add(empty)
        lines.add(batches_of([report(number)], after=-1)[0])
    message = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in message] == ["batch 0", "batch 3"]


# -- errors, as Spark 4.3 words them ---------------------------------------------------------------

STREAM = "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: "
TAIL = " SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: x\nLogical Plan:\n+- ~Project [v#7]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            STREAM + "[USER_RAISED_EXCEPTION] orders: orders-0 offset 3: value: bad"
            " SQLSTATE: P0001" + TAIL,
            "orders: orders-0 offset 3: value: bad",
        ),
        (
            STREAM + "assertion failed: There are [2] sources in the checkpoint offsets and now "
            "there are [1] sources requested by the query. Cannot continue." + TAIL,
            "the checkpoint /cp belongs to another job: it has 2 sources, and this job has 1. "
            "Set another checkpoint",
        ),
        (
            STREAM + "[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when …: Traceback (most "
            "recent call last):\n  File x\nodradek.pipeline.reading.DataLostError: t-0: gone; data "
            "may be lost\n SQLSTATE: 38000" + TAIL,
            "DataLostError: t-0: gone; data may be lost",
        ),
        (
            STREAM + "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log." + TAIL,
            "another query is running on the checkpoint /cp",
        ),
        (
            STREAM + "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match"
            " SQLSTATE: 42K06" + TAIL,
            "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match (the state "
            "in /cp is that of another SQL: set another checkpoint)",
        ),
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka. Deploy …",
            "format: kafka is Spark's own connector, whose jars were not found: set "
            "spark.jars.packages",
        ),
        (STREAM + "something else" + TAIL, "something else"),
    ],
)
def test_an_error_of_spark_becomes_one_line(text: str, message: str) -> None:
    assert explain(RuntimeError(text), "/cp") == message


def test_the_first_line_has_no_codes() -> None:
    error = RuntimeError("\n[X] no column `a`. SQLSTATE: 42703; line 1 pos 7;\n'Project")
    assert first_line(error) == "[X] no column `a`. line 1 pos 7"
    assert first_line(RuntimeError()) == "RuntimeError"
