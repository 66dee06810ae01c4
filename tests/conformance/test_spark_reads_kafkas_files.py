"""A directory that Apache Kafka writes, read by `format("odradek")`: what a consumer reads.

It is compared record for record. The topics have all codecs, headers, nulls, aborted and open
transactions, compaction, deleted records: see kafkas_files/history.py.
"""

import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.pipeline.session import why_no_spark
from odradek.storage.log_reader import LogReader
from tests.conformance.kafkas_files import spark_reads
from tests.conformance.kafkas_files.consumed import ISOLATIONS, check_same, consumed, place_of
from tests.conformance.kafkas_files.direct_reads import read_directly
from tests.conformance.kafkas_files.history import BROKER_SETTINGS, KINDS, History
from tests.conformance.kafkas_files.writing import Place, Writing
from tests.conformance.spark_jobs import Row
from tests.support.broker_process import ApacheKafkaProcess
from tests.support.lengths import LONG, SEED, by_length, only_long
from tests.support.quick_spark import quick_java_options
from tests.support.spark_process import SparkProcess
from tests.support.spark_versions import needs_limits
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow]

NAME = "written"
WAYS = {
    "files": {"mode": "files"},
    "small-splits": {"mode": "files", "maxSplitBytes": "8k"},
    "broker": {"mode": "broker"},
}
COMMITTED = ISOLATIONS[1:]
READS = by_length(
    [("files", isolation) for isolation in ISOLATIONS], list(itertools.product(WAYS, ISOLATIONS))
)
Expected = dict[str, list[Row]]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafkaProcess]:
    """The broker whose directory is read."""
    process = ApacheKafkaProcess(tmp_path_factory.mktemp("kafka"), BROKER_SETTINGS)
    try:
        process.start()
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """One Spark for all tests here."""
    reason = why_no_spark()
    if reason:
        pytest.skip(reason)
    conf = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": quick_java_options()}
    with SparkProcess(tmp_path_factory.mktemp("engine"), conf, connector=False) as process:
        yield process


@pytest.fixture(scope="module")
def expected(kafka: ApacheKafkaProcess, engine: SparkProcess) -> Iterator[Expected]:
    """What a consumer reads of all topics, by isolation level; Spark starts in the meantime."""
    history = History(kafka, NAME, random.Random(SEED))
    kept = history.write()
    yield {isolation: consumed(kafka.bootstrap, NAME, isolation) for isolation in ISOLATIONS}
    del kept


def of(kafka: ApacheKafkaProcess, isolation: str, **more: str) -> dict[str, str]:
    """Options that read all topics."""
    return {
        "path": str(kafka.data),
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribePattern": f"{NAME}.*",
        "kafka.isolation.level": isolation,
        **more,
    }


def test_there_is_everything_to_be_read(kafka: ApacheKafkaProcess, expected: Expected) -> None:
    counts = {
        isolation: Counter(row.topic.partition("-")[2] for row in rows)
        for isolation, rows in expected.items()
    }
    for isolation in ISOLATIONS:
        assert set(counts[isolation]) == set(KINDS)
    uncommitted, committed = (counts[isolation] for isolation in ISOLATIONS)
    aborted = {kind for kind in KINDS if committed[kind] < uncommitted[kind]}
    assert aborted == {"transactions", "compacted"}
    assert {row.timestamp_type for row in expected["read_committed"]} == {0, 1}
    codecs, empty = Counter[int](), 0
    for directory in kafka.data.glob(f"{NAME}-*"):
        assert len(list(directory.glob("*.log"))) > 2, directory
        reader = LogReader(directory)
        for segment in reader.segments():
            for _, header in reader.headers(segment):
                codecs[header.compression_id] += 1
                empty += header.record_count == 0
    assert len(codecs) == 5
    assert min(codecs.values()) > 20
    assert empty > 0


@pytest.mark.parametrize(("way", "isolation"), READS)
def test_spark_reads_what_a_consumer_does(
    kafka: ApacheKafkaProcess, expected: Expected, engine: SparkProcess, way: str, isolation: str
) -> None:
    options = of(kafka, isolation, **WAYS[way])
    check_same(engine.do(spark_reads.read, options), expected[isolation])


@needs_limits
@pytest.mark.parametrize("isolation", by_length(COMMITTED, ISOLATIONS))
@only_long(
    "the files are read in one query above, and streams are planned in test_stream_planner.py"
)
def test_a_stream_reads_what_a_consumer_does(
    kafka: ApacheKafkaProcess,
    expected: Expected,
    engine: SparkProcess,
    isolation: str,
    tmp_path: Path,
) -> None:
    options = of(kafka, isolation, mode="files", maxOffsetsPerTrigger="2000")
    rows, batches = engine.do(spark_reads.stream, options, tmp_path / f"stream_{isolation}")
    check_same(rows, expected[isolation])
    assert batches > 2


@pytest.mark.parametrize("isolation", by_length(COMMITTED, ISOLATIONS))
@pytest.mark.parametrize(
    "cut", [{"maxSplitBytes": "1"}, {"minPartitions": by_length("400", "5000")}], ids=str
)
def test_wherever_it_is_cut_it_is_the_same(
    kafka: ApacheKafkaProcess, expected: Expected, isolation: str, cut: dict[str, str]
) -> None:
    check_same(read_directly(kafka.data, NAME, isolation, **cut), expected[isolation])


@pytest.mark.parametrize("cleanup", by_length(["delete"], ["delete", "compact"]))
def test_while_kafka_writes_nothing_is_torn_missing_or_doubled(
    kafka: ApacheKafkaProcess, cleanup: str
) -> None:
    topic = f"busy-{cleanup}"
    config = {**KINDS["compacted"], "cleanup.policy": cleanup, "internal.segment.bytes": "9000"}
    create_topic(kafka.bootstrap, topic, 2, config)
    writing = Writing(kafka.bootstrap, random.Random(SEED), topic)
    looks: Looks = {isolation: [] for isolation in ISOLATIONS}
    with Looking(kafka.data, topic, looks, writing):
        transactions = writing.transactions(3)
        for _ in range(by_length(8, 200)):
            transactions.play(topic, 2, 20)
            writing.plain(topic, 2, 60)
        transactions.end()
    for isolation in ISOLATIONS:
        at_last = consumed(kafka.bootstrap, topic, isolation)
        assert len(looks[isolation]) > 2
        for written_before, rows in looks[isolation]:
            check_look(rows, at_last, writing, is_compacted=cleanup == "compact")
            if isolation == "read_uncommitted" and cleanup == "delete":
                assert written_before <= set(map(place_of, rows))
    committed = {place_of(row) for row in consumed(kafka.bootstrap, topic, "read_committed")}
    aborted = writing.written.keys() - committed
    seen = {place_of(row) for _, rows in looks["read_committed"] for row in rows}
    assert cleanup == "compact" or not seen & aborted


# By isolation level: what had been acknowledged when a look began, and what it saw.
Looks = dict[str, list[tuple[set[Place], list[Row]]]]


class Looking:
    """Reads a topic again and again, until the end of the `with`."""

    def __init__(self, data: Path, topic: str, looks: Looks, writing: Writing) -> None:
        self._data, self._topic, self._looks, self._writing = data, topic, looks, writing
        self._end = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._look, name="looking", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _look(self) -> None:
        rng = random.Random(SEED)
        try:
            while not self._end.is_set():
                for isolation, looks in self._looks.items():
                    cut = {"maxSplitBytes": rng.choice(["1", "3000", "1m"])}
                    written = set(self._writing.written)
                    rows = read_directly(self._data, self._topic, isolation, **cut)
                    looks.append((written, rows))
        except Exception as error:  # noqa: BLE001  # raised in the thread that waits
            self._failure = error


def check_look(
    rows: list[Row], at_last: list[Row], writing: Writing, *, is_compacted: bool
) -> None:
    """That a look saw what was there then: a beginning, and more where it was not compacted yet."""
    for partition in range(2):
        seen = [row for row in rows if row.partition == partition]
        offsets = [row.offset for row in seen]
        assert offsets == sorted(set(offsets))
        end = offsets[-1] + 1 if offsets else 0
        left = [row for row in at_last if row.partition == partition and row.offset < end]
        if not is_compacted:
            check_same(seen, left)
            continue
        assert set(left) <= set(seen)
        for row in seen:
            assert writing.written[place_of(row)] == row.value


@pytest.mark.skipif(not LONG, reason="a random history is what the tests above have read")
@pytest.mark.parametrize("number", range(by_length(1, 15)))
def test_random_histories_are_read_as_a_consumer_does(
    kafka: ApacheKafkaProcess, engine: SparkProcess, number: int
) -> None:
    rng, name = random.Random(SEED + number), f"random-{number}-"
    kept = History(kafka, name, rng, rng.choice([300, 1000, 4000])).write()
    for isolation in ISOLATIONS:
        rows = consumed(kafka.bootstrap, name, isolation)
        options = of(kafka, isolation, subscribePattern=f"{name}.*", maxSplitBytes="50k")
        check_same(engine.do(spark_reads.read, options), rows)
        for _ in range(4):
            cut = {
                "maxSplitBytes": str(rng.choice([1, 100, 1000, 10_000, 100_000])),
                "minPartitions": str(rng.choice([1, 50, 1000])),
            }
            check_same(read_directly(kafka.data, name, isolation, **cut), rows)
    del kept


def test_a_directory_is_the_same_when_kafka_has_stopped(
    kafka: ApacheKafkaProcess, expected: Expected, engine: SparkProcess
) -> None:
    assert kafka.terminate() in kafka.clean_exit_codes
    for isolation in by_length(COMMITTED, ISOLATIONS):
        options = of(kafka, isolation, maxSplitBytes="64k")
        check_same(engine.do(spark_reads.read, options), expected[isolation])
        check_same(read_directly(kafka.data, NAME, isolation), expected[isolation])
