"""Workloads of raw requests, which cost the client next to nothing."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import repeat

from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.bench.figures import Figures, Results, latencies
from tests.bench.swarm import now
from tests.bench.two_brokers import LIMIT_S, Brokers, Meter, in_turns, new_topic
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import PRODUCE_VERSION, produce, produce_request
from tests.support.stored_batches import FETCH_VERSION, fetch_request, fetched, next_offset
from tests.support.wire import WireClient, request_frame

GB = 2**30
IN_FLIGHT = 5
FLUSHING_CLIENTS = 100
FLUSHED_PARTITIONS = 4
NOW_MS = 1_700_000_000_000
FILLED_BATCHES = 4096
PARTITIONS = 2000
WAIT_MS = 30_000
WAITING_CONSUMERS = 100


def batch_of(size_bytes: int, count: int) -> bytes:
    """One batch of `count` records with so many bytes of values in all."""
    value = bytes(size_bytes // count)
    return bytes(build_batch([Record(key=None, value=value, timestamp_ms=NOW_MS)] * count))


def produce_frame(topic: str, partitions: int, batch: bytes, acks: int) -> bytes:
    """A Produce of the same batch to each of the first partitions."""
    request = produce_request(topic, batch, partitions=partitions, acks=acks)
    return request_frame(request, PRODUCE_VERSION, 1, "bench")


def partition_frame(topic: str, partition: int, batch: bytes) -> bytes:
    """A Produce of a batch to one partition, acks=all."""
    data = [ProducePartitionData(index=partition, records=batch)]
    topics = [ProduceTopicData(name=topic, partition_data=data)]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
    return request_frame(request, PRODUCE_VERSION, 1, "bench")


def pipelined(client: WireClient, frames: Iterable[bytes], in_flight: int = IN_FLIGHT) -> None:
    """Send requests with a few answers outstanding, as clients do.

    Nothing is read while a request is sent: outstanding answers must fit the socket's buffers.
    """
    outstanding = 0
    for frame in frames:
        if outstanding < in_flight:
            outstanding += 1
        else:
            client.read_frame()
        client.send(frame)
    for _ in range(outstanding):
        client.read_frame()


# -- Produce ---------------------------------------------------------------------------------------


def produce_large_batches(broker: BrokerProcess, share: int) -> Figures:
    """Produce of 64 KiB in one partition, five requests in flight, acks=1."""
    size = 65536
    with new_topic(broker) as topic, WireClient(broker.port) as client:
        frame = produce_frame(topic, 1, batch_of(size, 64), 1)
        meter = Meter(broker)
        pipelined(client, repeat(frame, GB // share // size))
        return meter.moved(GB // share)


def produce_tiny_batches(broker: BrokerProcess, share: int) -> Figures:
    """Produce of one record of 100 bytes, five requests in flight, acks=1."""
    count = 50_000 // share
    with new_topic(broker) as topic, WireClient(broker.port) as client:
        frame = produce_frame(topic, 1, batch_of(100, 1), 1)
        meter = Meter(broker)
        pipelined(client, repeat(frame, count))
        return meter.done(count)


def produce_2000_partitions(brokers: Brokers, rounds: int, share: int) -> Results:
    """Requests with a record of 100 bytes for each of 2,000 partitions, acks=1; each record."""
    requests = 200 // share

    def measure(broker: BrokerProcess) -> Figures:
        frame = produce_frame(topics[broker.name], PARTITIONS, batch_of(100, 1), 1)
        with WireClient(broker.port, timeout_s=LIMIT_S) as client:
            meter = Meter(broker)
            pipelined(client, repeat(frame, requests), in_flight=1)
            return meter.done(requests * PARTITIONS)

    with ExitStack() as stack:
        topics = {
            name: stack.enter_context(new_topic(broker, PARTITIONS))
            for name, broker in brokers.items()
        }
        return in_turns(brokers, rounds, measure, warm_rounds=1)


def one_at_a_time(broker: BrokerProcess, share: int) -> Figures:
    """A record of 100 bytes at a time, acks=all; a request when the last one is acknowledged."""
    batch, trips = batch_of(100, 1), []
    with new_topic(broker) as topic, WireClient(broker.port) as client:
        produce(client, topic, batch)  # fails on an error
        frame = produce_frame(topic, 1, batch, -1)
        meter = Meter(broker)
        for _ in range(10_000 // share):
            started = now()
            client.send(frame)
            client.read_frame()
            trips.append((now() - started) * 1e6)
        return meter.done(len(trips)) | latencies(trips)


def produce_flush_each(broker: BrokerProcess, share: int) -> Figures:
    """flush.messages=1: one record a request, each answered after its fsync, by many clients."""
    batch = batch_of(1024, 1)
    figures = {}
    with new_topic(broker, FLUSHED_PARTITIONS, {"flush.messages": "1"}) as topic:
        for clients in (1, FLUSHING_CLIENTS):
            rounds = max(20, 400 // share)
            seconds, trips = _together(broker, topic, batch, clients, rounds)
            figures[f"{clients}_requests_per_s"] = clients * rounds / seconds
            found = latencies(trips).items()
            figures |= {f"{clients}_{name}": value for name, value in found}
    return figures


def _together(
    broker: BrokerProcess, topic: str, batch: bytes, count: int, rounds: int
) -> tuple[float, list[float]]:
    """Each of `count` connections sends a record, waits for all answers, and again; with the time
    of it all, and of each round trip.
    """
    clients = [WireClient(broker.port) for _ in range(count)]
    frames = [partition_frame(topic, n % FLUSHED_PARTITIONS, batch) for n in range(count)]
    trips = []
    began = now()
    for _ in range(rounds):
        started = now()
        for client, frame in zip(clients, frames, strict=True):
            client.send(frame)
        for client in clients:
            client.read_frame()
            trips.append((now() - started) * 1e6)
    seconds = now() - began
    for client in clients:
        client.close()
    return seconds, trips


# -- Fetch -----------------------------------------------------------------------------------------


def fetch_warm(broker: BrokerProcess, share: int) -> Figures:
    """Fetch of 2 MiB an answer, from a partition that is in the page cache."""
    with new_topic(broker) as topic, WireClient(broker.port) as client:
        frame = produce_frame(topic, 1, batch_of(65536, 64), 1)
        pipelined(client, repeat(frame, FILLED_BATCHES))
        meter = Meter(broker)
        return meter.moved(fetch_around(client, topic, 4 * GB // share))


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


def tail(broker: BrokerProcess, share: int) -> Figures:
    """From a Produce of one record to the end of a Fetch that waited for it."""
    return _delivered(broker, 1, 10_000 // share)


def tail_of_100(broker: BrokerProcess, share: int) -> Figures:
    """The same with 100 consumers, which all wait for the record; each delivery."""
    return _delivered(broker, WAITING_CONSUMERS, 500 // share)


def _delivered(broker: BrokerProcess, consumers: int, records: int) -> Figures:
    batch, trips = batch_of(100, 1), []
    with new_topic(broker) as topic, WireClient(broker.port) as producer:
        record = produce_frame(topic, 1, batch, 1)
        readers = [WireClient(broker.port) for _ in range(consumers)]
        meter = Meter(broker)
        for offset in range(records):
            request = fetch_request(topic, 0, offset, 1 << 20, max_wait_ms=WAIT_MS)
            wanted = request_frame(request, FETCH_VERSION, 1, "bench")
            for reader in readers:
                reader.send(wanted)
            started = now()
            producer.send(record)
            for reader in readers:
                answer = reader.read_frame()
                trips.append((now() - started) * 1e6)
                assert len(answer) > len(batch), "a Fetch has brought nothing"
            producer.read_frame()
        figures = meter.done(len(trips)) | latencies(trips)
        for reader in readers:
            reader.close()
    return figures


WORKLOADS: dict[str, Callable[[BrokerProcess, int], Figures]] = {
    work.__name__: work
    for work in (
        tail,
        tail_of_100,
        produce_tiny_batches,
        produce_flush_each,
    )
}
COMPARED: dict[str, Callable[[Brokers, int, int], Results]] = {
    work.__name__: work for work in (produce_2000_partitions,)
}
BESIDE_BARE: dict[str, Callable[[BrokerProcess, int], Figures]] = {
    work.__name__: work for work in (one_at_a_time, produce_large_batches, fetch_warm)
}
