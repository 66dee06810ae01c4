"""Workloads of transactional producers: odradek, and Apache Kafka beside it where Java is at hand.

The brokers are measured in turns. CPU is that of the broker's process. A commit is one EndTxn, from
its request to its answer; a transaction begins with its first request. Kafka answers EndTxn before
the markers are written, and the next transaction waits for them.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.bench.figures import ODRADEK, Figures, Results, at
from tests.bench.over_the_wire import GB
from tests.bench.swarm import Swarm, now
from tests.bench.transactional_producers import TIMEOUT_MS, TransactionalProducer, Work
from tests.bench.two_brokers import in_turns, running
from tests.support.broker_process import BrokerProcess
from tests.support.stored_batches import FETCH_VERSION, fetched, next_offset
from tests.support.wire import WireClient, request_frame

TOPIC = "bench-of-transactions"
PARTITIONS = 6
READ_TOPIC = "bench-of-committed-reads"
MEASURED_S = 5.0
WARMING_S = 12.0
WARMING_PRODUCERS = 50
PRODUCERS = 200
IDS = 10_000
IDS_IN_FLIGHT = 50
INIT_VERSION = 5
METADATA_VERSION = 12
FILLING_PRODUCERS = 20
FILLED_TRANSACTIONS = 6000
ABORTS_EVERY = 10
READ_BYTES = 8 * GB
FETCH_BYTES = 1 << 20  # max.partition.fetch.bytes of a Java consumer
_names = (f"producer-{number}" for number in itertools.count())


def work_on(broker: BrokerProcess, partitions: Sequence[int], **changes: object) -> Work:
    """Transactions on these partitions of the topic."""
    return Work(
        topic=TOPIC,
        topic_id=topic_id(broker, TOPIC),
        partitions=partitions,
        **changes,  # type: ignore[arg-type]
    )


def topic_id(broker: BrokerProcess, topic: str) -> bytes:
    """The id by which a Produce names the topic."""
    with WireClient(broker.port) as client:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        answer = client.ask(request, MetadataResponse, METADATA_VERSION)
    return bytes(answer.topics[0].topic_id)


def measured(scratch: Path, rounds: int, measure: Callable[[BrokerProcess], Figures]) -> Results:
    """The figures of both brokers, in turns."""
    with running(scratch, {}, {TOPIC: PARTITIONS}) as brokers:
        warm_up(brokers)
        return in_turns(brokers, rounds, measure, warm_rounds=1)


def warm_up(brokers: Mapping[str, BrokerProcess]) -> None:
    """Have Kafka's code compiled: one producer alone makes too few transactions for that."""
    for broker in brokers.values():
        work = work_on(broker, range(PARTITIONS), group_id="warm")
        run(broker, [work], WARMING_PRODUCERS, WARMING_S)


# -- producing -------------------------------------------------------------------------------------


def transactions_one_partition(scratch: Path, rounds: int, share: int) -> Results:
    """One producer; 100 records in one partition."""
    return measured(scratch, rounds, partial(by_one_producer, share=share, partitions=[0]))


def transactions_with_offsets(scratch: Path, rounds: int, share: int) -> Results:
    """One producer; 96 records in six partitions, and the offsets of a group."""
    measure = partial(by_one_producer, share=share, partitions=range(PARTITIONS), group_id="group")
    return measured(scratch, rounds, measure)


def transactions_of_version_1(scratch: Path, rounds: int, share: int) -> Results:
    """The same by a producer of transaction version 1."""
    measure = partial(
        by_one_producer,
        share=share,
        partitions=range(PARTITIONS),
        group_id="group",
        is_v2=False,
    )
    return measured(scratch, rounds, measure)


def transactions_of_200(scratch: Path, rounds: int, share: int) -> Results:
    """200 producers at once; 100 records in one partition each."""

    def measure(broker: BrokerProcess) -> Figures:
        works = [work_on(broker, [number]) for number in range(PARTITIONS)]
        return run(broker, works, PRODUCERS, MEASURED_S / share)

    return measured(scratch, rounds, measure)


def transactions_of_10000_ids(scratch: Path, rounds: int, share: int) -> Results:
    """One producer; 10,000 other transactional ids are known.

    The memory is only odradek's: Kafka's heap has its full size from the start.
    """
    with running(scratch, {}, {TOPIC: PARTITIONS}) as brokers:
        warm_up(brokers)
        before = brokers[ODRADEK].memory_bytes()
        for broker in brokers.values():
            add_ids(broker, IDS // share)
        added = brokers[ODRADEK].memory_bytes() - before
        measure = partial(by_one_producer, share=share, partitions=[0])
        results = in_turns(brokers, rounds, measure, warm_rounds=1)
    results[ODRADEK]["bytes_per_id"] = added / (IDS // share)
    return results


def add_ids(broker: BrokerProcess, count: int) -> None:
    """Get a producer id for each of so many transactional ids."""
    with WireClient(broker.port) as client:
        for number in range(count + IDS_IN_FLIGHT):
            if number < count:
                request = InitProducerIdRequest(
                    transactional_id=next(_names), transaction_timeout_ms=TIMEOUT_MS
                )
                client.send(request_frame(request, INIT_VERSION, 1, "bench"))
            if number >= IDS_IN_FLIGHT:
                frame = client.read_frame()
                answer = InitProducerIdResponse.decode(frame[5:], INIT_VERSION)
                assert answer.error_code == 0, f"error {answer.error_code}"


def by_one_producer(
    broker: BrokerProcess, *, share: int, partitions: Sequence[int], **changes: object
) -> Figures:
    """The transactions of one producer."""
    return run(broker, [work_on(broker, partitions, **changes)], 1, MEASURED_S / share)


def run(broker: BrokerProcess, works: Sequence[Work], count: int, seconds: float) -> Figures:
    """So many producers at once; the works are dealt out to them in turn."""
    with Swarm() as swarm:
        producers = started(swarm, broker, works, count)
        began, cpu = now(), broker.cpu_seconds()
        for producer in producers:
            producer.start()
        swarm.run_for(seconds)
        took, cpu = now() - began, broker.cpu_seconds() - cpu
        ended = [each for producer in producers for each in producer.ended]
        retries = sum(producer.retries for producer in producers)
        stop(swarm, producers)
    commits = sorted((each.ended_s - each.ending_s) * 1e6 for each in ended)
    transactions = sorted((each.ended_s - each.began_s) * 1e6 for each in ended)
    return {
        "transactions_per_s": len(ended) / took,
        "cpu_us_per_transaction": cpu / len(ended) * 1e6,
        "commit_p50_us": at(commits, 0.50),
        "commit_p99_us": at(commits, 0.99),
        "transaction_p50_us": at(transactions, 0.50),
        "transaction_p99_us": at(transactions, 0.99),
        "retries_per_transaction": retries / len(ended),
    }


def started(
    swarm: Swarm, broker: BrokerProcess, works: Sequence[Work], count: int
) -> list[TransactionalProducer]:
    """So many producers that have their ids."""
    producers = [
        TransactionalProducer(swarm, broker.port, next(_names), works[number % len(works)])
        for number in range(count)
    ]
    swarm.await_greetings()
    for producer in producers:
        producer.initialize()
    swarm.run_until(lambda: all(producer.is_ready for producer in producers))
    return producers


def stop(swarm: Swarm, producers: Sequence[TransactionalProducer]) -> None:
    """Let the open transactions end."""
    for producer in producers:
        producer.stop()
    swarm.run_until(lambda: all(producer.is_idle for producer in producers))


# -- reading ---------------------------------------------------------------------------------------


def transactions_read(scratch: Path, rounds: int, share: int) -> Results:
    """Fetches of a log of small transactions, one in ten aborted, by isolation level."""
    with running(scratch, {}, {READ_TOPIC: 1}) as brokers:
        for broker in brokers.values():
            fill(broker, FILLED_TRANSACTIONS // share)
        return in_turns(brokers, rounds, partial(read_both_ways, share=share), warm_rounds=1)


def fill(broker: BrokerProcess, count: int) -> None:
    """Write at least so many transactions."""
    work = Work(topic=READ_TOPIC, topic_id=topic_id(broker, READ_TOPIC), partitions=[0])
    with Swarm() as swarm:
        producers = started(swarm, broker, [work], FILLING_PRODUCERS)
        for producer in producers:
            producer.aborts_every = ABORTS_EVERY
            producer.start()
        swarm.run_until(lambda: sum(len(each.ended) for each in producers) >= count)
        stop(swarm, producers)


def read_both_ways(broker: BrokerProcess, share: int) -> Figures:
    """The broker's CPU seconds per GB, and the committed reads' as a part of the others'."""
    plain, committed = (read(broker, READ_BYTES // share, level) for level in (0, 1))
    return {
        "plain_cpu_s_per_GB": plain,
        "committed_cpu_s_per_GB": committed,
        "committed_by_plain": committed / plain,
    }


def read(broker: BrokerProcess, wanted_bytes: int, isolation_level: int) -> float:
    """Fetch from the beginning to the end and again; CPU seconds per GB."""
    moved, offset = 0, 0
    room = memoryview(bytearray(2 * FETCH_BYTES))
    cpu = broker.cpu_seconds()
    with WireClient(broker.port) as client:
        while moved < wanted_bytes:
            wanted = FetchPartition(
                partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
            )
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                isolation_level=isolation_level,
                topics=[FetchTopic(topic=READ_TOPIC, partitions=[wanted])],
            )
            client.send(client.frame_of(request, FETCH_VERSION))
            data = fetched(client.read_answer(FetchResponse, FETCH_VERSION, room))
            moved += len(data)
            offset = next_offset(data)
    return (broker.cpu_seconds() - cpu) / (moved / GB)


WORKLOADS: dict[str, Callable[[Path, int, int], Results]] = {
    work.__name__: work
    for work in (
        transactions_one_partition,
        transactions_with_offsets,
        transactions_of_version_1,
        transactions_of_200,
        transactions_of_10000_ids,
        transactions_read,
    )
}
