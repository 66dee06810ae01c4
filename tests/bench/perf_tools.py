"""Workloads of Apache Kafka's own kafka-producer-perf-test and kafka-consumer-perf-test."""

import re
import subprocess
from collections.abc import Callable
from functools import partial
from itertools import repeat

from tests.bench.figures import KAFKA, ODRADEK, Figures, Results
from tests.bench.over_the_wire import GB, batch_of, pipelined, produce_frame
from tests.bench.two_brokers import Brokers, Meter, in_turns, new_topic
from tests.conformance.share_reader import joined, prepare_group
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import JAVA_TOOLS, TOOLS
from tests.support.wire import WireClient

RECORD_BYTES = 1024
RECORDS = 1_000_000
PACED_SECONDS = 10
LIMIT_S = 600
# acks=1, batches of 64 KiB that wait 5 ms at most.
LARGE_BATCHES = ("acks=1", "batch.size=65536", "linger.ms=5")
_PRODUCED = re.compile(r"sent, ([\d.]+) records/sec .* ([\d.]+) ms 50th, .* ([\d.]+) ms 99th")


def producer_perf(brokers: Brokers, rounds: int, share: int) -> Results:
    """kafka-producer-perf-test, records of 1 KiB, acks=1, batches of 64 KiB.

    The latency is measured at half of the rate that Kafka has reached.
    """
    return _throughput_and_latency(brokers, rounds, share, LARGE_BATCHES)


def java_defaults(brokers: Brokers, rounds: int, share: int) -> Results:
    """The same with the Java producer's defaults: idempotent, acks=all, batches of 16 KiB."""
    return _throughput_and_latency(brokers, rounds, share, ())


def _throughput_and_latency(
    brokers: Brokers, rounds: int, share: int, properties: tuple[str, ...]
) -> Results:
    """Throughput and CPU from one run, latency from a second one."""

    def work(broker: BrokerProcess, *, count: int, rate: int) -> Figures:
        return _produced(broker, count, rate, properties)

    results = in_turns(
        brokers, rounds, partial(work, count=RECORDS // share, rate=-1), warm_rounds=1
    )
    reached = results.get(KAFKA, results[ODRADEK])
    rate = int(reached["MB_per_s"] * 2**20 / RECORD_BYTES / 2)
    paced = partial(work, count=rate * PACED_SECONDS // share, rate=rate)
    for name, figures in in_turns(brokers, rounds, paced, warm_rounds=0).items():
        results[name] |= {"p50_ms": figures["p50_ms"], "p99_ms": figures["p99_ms"]}
    return results


def _produced(broker: BrokerProcess, count: int, rate: int, properties: tuple[str, ...]) -> Figures:
    """Rate and latency are those after the tool's own warm-up, a quarter of the records."""
    with new_topic(broker) as topic:
        meter = Meter(broker)
        output = _run(
            "ProducerPerformance",
            *("--bootstrap-server", broker.bootstrap, "--topic", topic),
            *("--num-records", str(count), "--warmup-records", str(count // 4)),
            *("--record-size", str(RECORD_BYTES), "--throughput", str(rate)),
            *(("--command-property", *properties) if properties else ()),
        )
        figures = meter.moved(count * RECORD_BYTES)
    found = _PRODUCED.findall(output)
    assert found, output
    per_s, p50_ms, p99_ms = map(float, found[-1])
    figures["MB_per_s"] = per_s * RECORD_BYTES / 2**20
    return figures | {"p50_ms": p50_ms, "p99_ms": p99_ms}


def consumer_perf(broker: BrokerProcess, share: int) -> Figures:
    """kafka-consumer-perf-test, records of 1 KiB in batches of 64 KiB."""
    batches = GB // share // 65536
    records = batches * 64
    with new_topic(broker) as topic:
        with WireClient(broker.port) as client:
            frame = produce_frame(topic, 1, batch_of(65536, 64), 1)
            pipelined(client, repeat(frame, batches))
        meter = Meter(broker)
        output = _run(
            "ConsumerPerformance",
            *("--bootstrap-server", broker.bootstrap, "--topic", topic),
            *("--num-records", str(records), "--timeout", "60000"),
        )
        figures = meter.moved(records * RECORD_BYTES)
    read = output.strip().splitlines()[-1].split(", ")
    assert int(read[4]) >= records, output
    figures["MB_per_s"] = float(read[8])  # without the time until the group has formed
    return figures


def share_consumer_perf(broker: BrokerProcess, share: int) -> Figures:
    """kafka-share-consumer-perf-test: one share consumer, records of 1 KiB."""
    return _shared(broker, share, consumers=1)


def share_consumers_of_10(broker: BrokerProcess, share: int) -> Figures:
    """The same with ten share consumers of one partition."""
    return _shared(broker, share, consumers=10)


def _shared(broker: BrokerProcess, share: int, consumers: int) -> Figures:
    """The rate is that of the tool, from before its consumers join."""
    batches = GB // 4 // share // 65536
    records = batches * 64
    with new_topic(broker) as topic:
        with WireClient(broker.port) as client:
            frame = produce_frame(topic, 1, batch_of(65536, 64), 1)
            pipelined(client, repeat(frame, batches))
            # The state is there when the tool begins: its members get the partition at once.
            joined(client, topic, "first", topic, prepare_group(client, topic, topic))
        meter = Meter(broker)
        output = _run(
            "ShareConsumerPerformance",
            *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", topic),
            *("--num-records", str(records), "--threads", str(consumers)),
            *("--timeout", "60000"),
        )
        figures = meter.moved(records * RECORD_BYTES)
    read = output.strip().splitlines()[-1].split(", ")
    assert int(read[5]) >= records, output
    figures["MB_per_s"] = float(read[3])
    return figures


def _run(tool: str, *arguments: str) -> str:
    """What a tool has written; its JVM has all compilers, unlike that of `JavaTools.run`."""
    command = [*JAVA_TOOLS.java("-Xmx1G", lives_long=True), f"{TOOLS}.{tool}", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)
    return done.stdout


COMPARED: dict[str, Callable[[Brokers, int, int], Results]] = {
    work.__name__: work for work in (producer_perf, java_defaults)
}
WORKLOADS: dict[str, Callable[[BrokerProcess, int], Figures]] = {"consumer_perf": consumer_perf}
ON_DEMAND: dict[str, Callable[[BrokerProcess, int], Figures]] = {
    work.__name__: work for work in (share_consumer_perf, share_consumers_of_10)
}
