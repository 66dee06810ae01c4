"""format("odradek") writes to Apache Kafka: a reader of committed records sees each row once."""

import random
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from confluent_kafka.admin import AdminClient

from tests.conformance import sink_jobs as jobs
from tests.support.broker_process import ApacheKafkaProcess
from tests.support.committed import committed_values, wait_until_decided
from tests.support.killed_stream import LIMIT_SECONDS, Job, Producing, let_it_run
from tests.support.lengths import SEED, by_length, only_long
from tests.support.quick_spark import quick_java_options
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_process import ROOT, SparkProcess
from tests.support.spark_versions import needs_limits
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow]

ROWS = 20_000
# Of small rows a task has all when it begins its transaction, of large ones it has not.
SIZES = [8, 1000]
IN_SMALL_BATCHES = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1000"}
TWO_EXECUTORS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.ui.enabled": "false",
}
# A second attempt is begun as soon as a task is a little slower than the others.
SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}


def spark_on(master: str, scratch: Path, **more: str) -> SparkProcess:
    conf = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": quick_java_options(),
        "spark.executor.extraJavaOptions": quick_java_options(),
    }
    return SparkProcess(scratch, {**conf, **IN_SMALL_BATCHES, **more}, master, connector=False)


def written_to(kafka: ApacheKafkaProcess, topic: str) -> dict[str, str]:
    create_topic(kafka.bootstrap, topic, 2)
    return {"kafka.bootstrap.servers": kafka.bootstrap, "topic": topic, "delivery": "exactly-once"}


def all_once(size: int) -> list[bytes]:
    return [b"%0*d" % (size, number) for number in range(ROWS)]


def groups(kafka: ApacheKafkaProcess) -> list[str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})  # kept until the answer is read
    answer = admin.list_consumer_groups().result()
    assert not answer.errors
    return [each.group_id for each in answer.valid]


@pytest.mark.parametrize("size", by_length(SIZES[1:], SIZES))
def test_tasks_that_fail_and_run_again_write_their_rows_once(
    kafka: ApacheKafkaProcess, tmp_path: Path, topic: str, size: int
) -> None:
    known = set(groups(kafka))
    options = written_to(kafka, topic)
    with spark_on("local[2,2]", tmp_path) as spark:
        spark.do(jobs.write_failing, ROWS, size, options, str(tmp_path))
    assert {path.name for path in tmp_path.glob("?-?")} == {"0-0", "0-1", "1-0", "1-1"}
    wait_until_decided(kafka.bootstrap, topic, 2)
    assert committed_values(kafka.bootstrap, topic, 2) == all_once(size)
    (left,) = [name for name in set(groups(kafka)) - known if name.startswith("odradek-")]
    assert left.count("-") == 5, "the group of a task, odradek-UUID-0, and not of the query"


@only_long("tasks run again above, and attempts fence each other in sink/test_fenced_attempts.py")
@pytest.mark.parametrize("size", SIZES)
def test_of_two_attempts_at_a_time_one_writes(
    kafka: ApacheKafkaProcess, tmp_path: Path, topic: str, size: int
) -> None:
    options = written_to(kafka, topic)
    # Spark does not begin a second attempt on the machine of the first.
    with (
        SparkCluster(tmp_path) as cluster,
        spark_on(cluster.master, tmp_path, **SPECULATING, **TWO_EXECUTORS) as spark,
    ):
        spark.do(jobs.write_overtaken, ROWS, size, options, str(tmp_path))
    assert {"0-0", "1-0", "1-1"} <= {path.name for path in tmp_path.glob("?-?")}
    wait_until_decided(kafka.bootstrap, topic, 2)
    assert committed_values(kafka.bootstrap, topic, 2) == all_once(size)


@only_long("tasks run again above, and sink/test_spark_write.py has a stream")
@needs_limits
def test_a_stream_that_is_killed_at_any_moment_writes_each_record_once(
    kafka: ApacheKafkaProcess, tmp_path: Path, topic: str
) -> None:
    rng, least, kills, unfinished = random.Random(SEED), 20, 0, 0
    create_topic(kafka.bootstrap, topic, 2)
    copy = f"{topic}-copy"
    job = Job(kafka, topic, tmp_path, to=written_to(kafka, copy))
    with Producing(kafka, topic) as producing:
        while kills < least or not unfinished:
            let_it_run(job, rng, in_batch=not unfinished)
            unfinished += job.begun("files") > job.finished("files")
            kills += 1
            assert kills < least + 10, "no batch was under way"
    with job.running(5000, rows=str(tmp_path / "rows")) as process:
        assert process.wait(LIMIT_SECONDS) == 0, job.log_text()
    expected = sorted(value for _, _, value in producing.acknowledged)
    assert len(expected) > 500
    assert committed_values(kafka.bootstrap, copy, 2) == expected
