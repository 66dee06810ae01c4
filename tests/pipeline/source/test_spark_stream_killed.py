"""A streaming job that is killed and started again reads each record once.

The whole of Spark is killed, Python, Java and its workers, wherever it is, while a producer writes.
Its sink, Parquet files, takes each batch once by its number: so what it has tells whether the
source gives the same records for the same batch, and no others in the next.
"""

import pickle
import random
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.session import why_no_spark
from tests.support.broker_process import BrokerProcess
from tests.support.killed_stream import LIMIT_SECONDS, Job, Producing, let_it_run
from tests.support.lengths import LONG, SEED, by_length
from tests.support.streaming_program import Seen
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

MODES = by_length(("files",), ("files", "broker"))
SMALL = {"internal.segment.bytes": "20000", "index.interval.bytes": "500"}


@pytest.mark.skipif(not LONG, reason="long only: test_spark_stream.py has streams that go on")
def test_killed_at_any_moment_it_reads_each_record_once(
    broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    reason = why_no_spark()
    if reason:
        pytest.skip(reason)
    rng = random.Random(SEED)
    create_topic(broker.bootstrap, topic, 2, SMALL)
    job, kills, unfinished = Job(broker, topic, tmp_path, MODES), by_length(3, 40), 0
    with Producing(broker, topic) as producing:
        for kill in range(kills):
            let_it_run(job, rng)
            unfinished += sum(job.begun(mode) > job.finished(mode) for mode in MODES)
            if kill == 0:
                producing.grow(4)
    assert unfinished > 0
    with job.running(50_000, rows=str(tmp_path / "rows")) as process:
        assert process.wait(LIMIT_SECONDS) == 0, job.log_text()
    found = pickle.loads((tmp_path / "rows").read_bytes())
    assert sum(map(job.finished, MODES)) >= kills
    for mode in MODES:
        check_same(found[mode], sorted(producing.acknowledged))


def check_same(found: list[Seen], expected: list[Seen]) -> None:
    assert len(expected) > 1000
    assert sorted(set(found)) == found, "doubled"
    assert len(found) == len(expected), "lost"
    assert found == expected
