"""The topics that Spark reads in benchmarks, and what fills them.

Values are lines of JSON that compress as such lines do, in batches as large as a Java client makes
them: 16 KiB as they are stored.
"""

import itertools
import json
import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from odradek.protocol.compression import CompressionType
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.bench.two_brokers import await_topic
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import PRODUCE_VERSION, produce_request
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

RECORDS = 1_000_000
VALUE_BYTES = 200
STORED_BYTES = 16 << 10
PARTITIONS = 4
DISTINCT_BATCHES = 100
IN_FLIGHT = 5
START_MS = 1_700_000_000_000
NONE, LZ4, ZSTD = CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD
CITIES = ("Oslo", "Lima", "Rome", "Paris", "Quito", "Accra", "Hanoi", "Tunis")


class Topic(NamedTuple):
    """What its records are like."""

    codec: CompressionType = NONE
    with_headers: bool = False


TOPICS: Mapping[str, Topic] = {
    "plain": Topic(),
    "keyed": Topic(with_headers=True),
    "lz4": Topic(LZ4),
    "zstd": Topic(ZSTD),
}


def fill(kafka: BrokerProcess, name: str, records: int) -> int:
    """Create a topic, and write about so many records; how many they are."""
    create_topic(kafka.bootstrap, name, PARTITIONS)
    await_topic(kafka, name)
    return max(writing(kafka, name, records))


def writing(kafka: BrokerProcess, name: str, records: int) -> Iterator[int]:
    """Write about so many records, batch after batch to all partitions; how many were sent so far.

    The caller may take its time between two requests.
    """
    batches = list(itertools.islice(made_batches(TOPICS[name]), DISTINCT_BATCHES))
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
            yield written
            if number >= IN_FLIGHT:
                check(client.read_frame())
        for _ in range(min(IN_FLIGHT, number)):
            check(client.read_frame())


def check(frame: memoryview) -> None:
    """Raises AssertionError when a Produce was refused."""
    answer = ProduceResponse.decode(frame[5:], PRODUCE_VERSION)
    for partition in answer.responses[0].partition_responses:
        assert partition.error_code == 0, f"error {partition.error_code}"


def made_batches(topic: Topic) -> Iterator[tuple[bytes, int]]:
    """Batches of the size that a Java client sends, and how many records each has."""
    rng = random.Random(4)
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
