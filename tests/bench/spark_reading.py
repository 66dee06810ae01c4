"""Spark reads topics that Apache Kafka wrote: its own connector through the broker, and our source.

Both in one run, in turns, in the same JVM: the connector asks Kafka, `format("odradek")` reads the
files of that same Kafka's directory. The CPU is that of Spark and all its Python workers, and for
the connector also that of the broker. `_x` is how many times better odradek is.

Values are lines of JSON that compress as such lines do, in batches as large as a Java client makes
them: 16 KiB as they are stored.
"""

import itertools
import json
import random
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.compression import CompressionType
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.bench.spark_queries import COUNTED, run
from tests.bench.two_brokers import await_topic
from tests.support.broker_process import CLOCK_TICKS, BrokerProcess, WarmedKafkaProcess
from tests.support.bystander import PRODUCE_VERSION, produce_request
from tests.support.process_tree import children_of
from tests.support.spark_process import SparkProcess, why_no_connector
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

RECORDS = 5_000_000
VALUE_BYTES = 200
STORED_BYTES = 16 << 10
PARTITIONS = 4
DISTINCT_BATCHES = 100
IN_FLIGHT = 5
MASTERS = ("local[1]", "local[2]")
START_MS = 1_700_000_000_000
NONE, LZ4, ZSTD = CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD
CITIES = ("Oslo", "Lima", "Rome", "Paris", "Quito", "Accra", "Hanoi", "Tunis")
Figures = dict[str, float]


class Topic(NamedTuple):
    """What is written, and which queries read it."""

    queries: tuple[str, ...]
    codec: CompressionType = NONE
    with_headers: bool = False


TOPICS: Mapping[str, Topic] = {
    "plain": Topic(("all", "value", COUNTED, "aggregate")),
    "keyed": Topic(("headers",), with_headers=True),
    "lz4": Topic(("all", "value"), LZ4),
    "zstd": Topic(("all", "value"), ZSTD),
}


class Cost(NamedTuple):
    """What one read of a topic took."""

    seconds: float
    cpu_seconds: float


def spark_reading(scratch: Path, rounds: int, share: int) -> Figures:
    """Records per second and per CPU second of each query, and how they compare."""
    reason = why_no_connector()
    if reason:
        print(f"spark_reading: {reason}")
        return {}
    kafka = WarmedKafkaProcess(scratch / "spark-reading")
    figures: Figures = {}
    try:
        kafka.start()
        sizes = {name: fill(kafka, name, topic, RECORDS // share) for name, topic in TOPICS.items()}
        for master in MASTERS:
            settings = {"spark.driver.memory": "2g"}
            with SparkProcess(scratch, settings, master) as spark:
                for (name, query), costs in measure(kafka, spark, sizes, rounds).items():
                    label = f"{master}_{name}_{query}"
                    figures |= compared(label, sizes[name], costs)
    finally:
        kafka.stop()
    return figures | growth(figures)


def measure(
    kafka: BrokerProcess, spark: SparkProcess, sizes: Mapping[str, int], rounds: int
) -> dict[tuple[str, str], dict[str, list[Cost]]]:
    """The costs of each source for every topic and query; a first round warms both up."""
    found: dict[tuple[str, str], dict[str, list[Cost]]] = {}
    for number in range(rounds + 1):
        for name, topic in TOPICS.items():
            for query, source in itertools.product(topic.queries, ("kafka", "odradek")):
                cost, answer = read_once(kafka, spark, name, query, source)
                assert answer == sizes[name] or query != COUNTED, f"{source} counts {answer}"
                if number:
                    found.setdefault((name, query), {}).setdefault(source, []).append(cost)
    return found


def read_once(
    kafka: BrokerProcess, spark: SparkProcess, topic: str, query: str, source: str
) -> tuple[Cost, object]:
    """One read, and what the query answers."""
    where = {
        "kafka": {"kafka.bootstrap.servers": kafka.bootstrap},
        "odradek": {"path": str(kafka.data), "mode": "files"},
    }
    before = cpu_seconds(spark.pid), kafka.cpu_seconds()
    seconds, answer = spark.do(run, source, {**where[source], "subscribe": topic}, query)
    used = cpu_seconds(spark.pid) - before[0]
    if source == "kafka":
        used += kafka.cpu_seconds() - before[1]
    return Cost(seconds, used), answer


def cpu_seconds(pid: int) -> float:
    """What a process, its children, and those of them that ended have used."""
    total = 0
    for each in [pid, *children_of(pid)]:
        fields = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
        total += sum(map(int, fields[11:15]))
    return total / CLOCK_TICKS


def compared(label: str, records: int, costs: Mapping[str, list[Cost]]) -> Figures:
    """Thousands of records a second and a CPU second, by median; odradek's in the connector's."""
    rates = {
        source: (
            records / statistics.median(each.seconds for each in found) / 1000,
            records / statistics.median(each.cpu_seconds for each in found) / 1000,
        )
        for source, found in costs.items()
    }
    figures: Figures = {}
    for place, unit in enumerate(("krec_s", "krec_cpu_s")):
        for source in rates:
            figures[f"{label}_{source}_{unit}"] = rates[source][place]
        figures[f"{label}_{unit}_x"] = rates["odradek"][place] / rates["kafka"][place]
    return figures


def growth(figures: Figures) -> Figures:
    """How many times faster each read is with the second core."""
    one, two = (f"{master}_" for master in MASTERS)
    return {
        f"two_cores_{name.removeprefix(one).removesuffix('_krec_s')}_x": figures[
            two + name.removeprefix(one)
        ]
        / rate
        for name, rate in figures.items()
        if name.startswith(one) and name.endswith("_krec_s")
    }


# -- what is read -------------------------------------------------------------------------------


def fill(kafka: BrokerProcess, name: str, topic: Topic, records: int) -> int:
    """Write about so many records, batch after batch to all partitions; how many they are."""
    create_topic(kafka.bootstrap, name, PARTITIONS)
    await_topic(kafka, name)
    batches = list(itertools.islice(made_batches(topic), DISTINCT_BATCHES))
    frames = [
        request_frame(
            produce_request(name, batch, partitions=PARTITIONS, acks=1), PRODUCE_VERSION, 1, "bench"
        )
        for batch, _ in batches
    ]
    written = 0
    with WireClient(kafka.port) as client:
        for number in itertools.count():
            if written >= records:
                break
            client.send(frames[number % len(frames)])
            written += batches[number % len(frames)][1] * PARTITIONS
            if number >= IN_FLIGHT:
                check(client.read_frame())
        for _ in range(min(IN_FLIGHT, number)):
            check(client.read_frame())
    return written


def check(frame: memoryview) -> None:
    """Raises AssertionError when a Produce was refused."""
    answer = ProduceResponse.decode(frame[5:], PRODUCE_VERSION)
    for partition in answer.responses[0].partition_responses:
        assert partition.error_code == 0, f"error {partition.error_code}"


def made_batches(topic: Topic) -> Iterator[tuple[bytes, int]]:
    """Batches of the size that a Java client sends, and how many records each has."""
    rng = random.Random(len(topic.queries))
    records = made_records(rng, topic)
    count = STORED_BYTES // VALUE_BYTES
    while True:
        some = list(itertools.islice(records, count))
        batch = bytes(build_batch(some, compression=topic.codec))
        if len(batch) < STORED_BYTES * 0.9:
            count = count * STORED_BYTES // len(batch)  # it compresses: more go into one
            continue
        yield batch, count


def made_records(rng: random.Random, topic: Topic) -> Iterator[Record]:
    """Orders as lines of JSON; with keys and two headers where the topic has them."""
    for number in itertools.count():
        key = headers = None
        if topic.with_headers:
            key = b"customer-%07d" % rng.randrange(10_000_000)
            headers = (("trace", rng.randbytes(16)), ("source", b"shop-%d" % rng.randrange(20)))
        yield Record(key, made_value(rng, number), START_MS + number, headers or ())


def made_value(rng: random.Random, number: int) -> bytes:
    """A line of exactly VALUE_BYTES."""
    order = {
        "order": f"{rng.getrandbits(64):016x}",
        "customer": rng.randrange(10_000_000),
        "amount": round(rng.random() * 1000, 2),
        "city": rng.choice(CITIES),
        "items": [rng.randrange(100_000) for _ in range(6)],
        "at": START_MS + number,
        "note": "",
    }
    short = VALUE_BYTES - len(json.dumps(order))
    order["note"] = f"{rng.getrandbits(4 * max(short, 0)):x}".zfill(short)[:short]
    return json.dumps(order).encode()


WORKLOADS = {"spark_reading": spark_reading}
