"""Workloads against a broker process, by raw requests."""

import itertools
import time
from collections.abc import Callable

from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import PRODUCE_VERSION, produce, produce_request
from tests.support.stored_batches import FETCH_VERSION, fetch_request, fetched, next_offset
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

GB = 2**30
IN_FLIGHT = 5
FLUSHING_CLIENTS = 100
FLUSHED_PARTITIONS = 4
NOW_MS = 1_700_000_000_000
_names = (f"bench-{number}" for number in itertools.count())

now = time.perf_counter


class Meter:
    """Wall clock, and CPU time of the broker, since it was made."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._cpu = broker.cpu_seconds()
        self._started = now()

    def moved(self, size_bytes: int) -> dict[str, float]:
        """The figures of a workload that moved so many bytes."""
        seconds = now() - self._started
        cpu = self._broker.cpu_seconds() - self._cpu
        gigabytes = size_bytes / GB
        return {"MB_per_s": size_bytes / 2**20 / seconds, "cpu_s_per_GB": cpu / gigabytes}


def batch_of(size_bytes: int, count: int) -> bytes:
    """One batch of `count` records with so many bytes of values in all."""
    value = bytes(size_bytes // count)
    return bytes(build_batch([Record(key=None, value=value, timestamp_ms=NOW_MS)] * count))


def produce_frame(topic: str, partitions: int, batch: bytes, acks: int) -> bytes:
    request = produce_request(topic, batch, partitions=partitions, acks=acks)
    return request_frame(request, PRODUCE_VERSION, 1, "bench")


def pipelined(client: WireClient, frame: bytes, requests: int) -> None:
    """Send one frame again and again, with a few answers outstanding, as clients do."""
    for number in range(requests):
        client.send(frame)
        if number >= IN_FLIGHT:
            client.read_frame()
    for _ in range(min(IN_FLIGHT, requests)):
        client.read_frame()


def _produce(
    broker: BrokerProcess, partitions: int, batch_bytes: int, total_bytes: int, acks: int
) -> dict[str, float]:
    topic = next(_names)
    create_topic(broker.bootstrap, topic, partitions)
    batch = batch_of(batch_bytes, max(1, batch_bytes // 1024))
    frame = produce_frame(topic, partitions, batch, acks)
    requests = total_bytes // (batch_bytes * partitions)
    meter = Meter(broker)
    with WireClient(broker.port) as client:
        pipelined(client, frame, requests)
    figures = meter.moved(total_bytes)
    figures["requests_per_s"] = figures["MB_per_s"] * 2**20 / (batch_bytes * partitions)
    return figures


def produce_large_batches(broker: BrokerProcess, share: int) -> dict[str, float]:
    """One partition, 64 KiB a batch, acks=1."""
    return _produce(broker, 1, 65536, GB // share, 1)


def produce_six_partitions(broker: BrokerProcess, share: int) -> dict[str, float]:
    """Six partitions a request, 16 KiB a batch, acks=all: the Java producer's defaults."""
    return _produce(broker, 6, 16384, GB // share, -1)


def produce_tiny_batches(broker: BrokerProcess, share: int) -> dict[str, float]:
    """One record of 100 bytes a request: what a request costs."""
    return _produce(broker, 1, 100, 5_000_000 // share, 1)


def produce_flush_each(broker: BrokerProcess, share: int) -> dict[str, float]:
    """flush.messages=1: one record a request, each answered after its fsync, by many clients."""
    topic = next(_names)
    create_topic(broker.bootstrap, topic, FLUSHED_PARTITIONS, {"flush.messages": "1"})
    batch = batch_of(1024, 1)
    figures = {}
    for clients in (1, FLUSHING_CLIENTS):
        rounds = max(20, 400 // share)
        seconds, trips = _together(broker, topic, batch, clients, rounds)
        trips.sort()
        figures[f"requests_per_s_{clients}"] = clients * rounds / seconds
        figures[f"p50_ms_{clients}"] = trips[len(trips) // 2] * 1e3
        figures[f"p99_ms_{clients}"] = trips[len(trips) * 99 // 100] * 1e3
    return figures


def _together(
    broker: BrokerProcess, topic: str, batch: bytes, count: int, rounds: int
) -> tuple[float, list[float]]:
    """Each of `count` connections sends a record, waits for all answers, and again; with the time
    of it all, and of each round trip.
    """
    clients = [WireClient(broker.port) for _ in range(count)]
    frames = [
        request_frame(
            ProduceRequest(
                acks=-1,
                timeout_ms=30_000,
                topic_data=[
                    ProduceTopicData(
                        name=topic,
                        partition_data=[
                            ProducePartitionData(index=n % FLUSHED_PARTITIONS, records=batch)
                        ],
                    )
                ],
            ),
            PRODUCE_VERSION,
            1,
            "bench",
        )
        for n in range(count)
    ]
    trips = []
    began = now()
    for _ in range(rounds):
        started = now()
        for client, frame in zip(clients, frames, strict=True):
            client.send(frame)
        for client in clients:
            client.read_frame()
            trips.append(now() - started)
    seconds = now() - began
    for client in clients:
        client.close()
    return seconds, trips


def fetch_warm(broker: BrokerProcess, share: int) -> dict[str, float]:
    """Read a partition that lies in the page cache, 2 MiB an answer."""
    topic = next(_names)
    create_topic(broker.bootstrap, topic)
    frame = produce_frame(topic, 1, batch_of(65536, 64), 1)
    wanted = 4 * GB // share
    with WireClient(broker.port) as client:
        pipelined(client, frame, 4096)
        meter = Meter(broker)
        return meter.moved(fetch_around(client, topic, wanted))


def fetch_around(client: WireClient, topic: str, wanted_bytes: int) -> int:
    """Fetch from the beginning to the end and again, until so many bytes have come."""
    moved, offset = 0, 0
    room = memoryview(bytearray(4 << 20))  # one for all answers: a new one each costs page faults
    while moved < wanted_bytes:
        client.send(client.frame_of(fetch_request(topic, 0, offset, 2 << 20), FETCH_VERSION))
        data = fetched(client.read_answer(FetchResponse, FETCH_VERSION, room))
        moved += len(data)
        offset = next_offset(data)
    return moved


def one_at_a_time(broker: BrokerProcess, share: int) -> dict[str, float]:
    """The round trip of one small record, acks=all: the middle and the tail."""
    topic = next(_names)
    create_topic(broker.bootstrap, topic)
    batch = batch_of(100, 1)
    trips = []
    with WireClient(broker.port) as client:
        for _ in range(10_000 // share):
            started = now()
            produce(client, topic, batch)
            trips.append((now() - started) * 1e6)
    trips.sort()
    return {
        "p50_us": trips[len(trips) // 2],
        "p99_us": trips[len(trips) * 99 // 100],
        "p999_us": trips[len(trips) * 999 // 1000],
    }


WORKLOADS: dict[str, Callable[[BrokerProcess, int], dict[str, float]]] = {
    work.__name__: work
    for work in (
        produce_large_batches,
        produce_six_partitions,
        produce_tiny_batches,
        produce_flush_each,
        fetch_warm,
        one_at_a_time,
    )
}
