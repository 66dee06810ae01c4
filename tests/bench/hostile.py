"""What a producer feels of clients whose batches or requests take long: its latency beside each.

The hostile clients live in a process of their own, and send again as soon as they are answered.
The same number of clients whose requests are short keeps the broker as busy, for comparison: a
process that never rests is interrupted by the system more often than one that is idle.
"""

import multiprocessing
import os
import shutil
import time
from multiprocessing.connection import Connection
from pathlib import Path

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.bench.compaction import round_trips
from tests.bench.figures import at
from tests.bench.swarm import now
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.bystander import produce_request
from tests.support.hostile_batches import KINDS
from tests.support.hostile_requests import REQUESTS
from tests.support.topics import create_topic
from tests.support.wire import WireClient

CLIENTS = 4
SECONDS = 10.0
ANSWER_SECONDS = 120.0
JOIN_SECONDS = 10.0


def hostile_batches(scratch: Path, share: int) -> dict[str, float]:
    """p50, p99 and the longest round trip of one record a millisecond, acks=1, by kind."""
    figures: dict[str, float] = {}
    for kind in KINDS:
        # Each has a broker of its own: what was received is worked off after the clients are gone.
        with running_broker(scratch / kind) as broker:
            frame = _produce_frame(broker, kind)
            figures |= {f"{kind}_{name}": each for name, each in _of(broker, frame, share).items()}
        shutil.rmtree(scratch / kind)
    return figures


def hostile_requests(scratch: Path, share: int) -> dict[str, float]:
    """p50, p99 and the longest of one record a millisecond, beside requests of many entries."""
    figures: dict[str, float] = {}
    for kind, request in REQUESTS.items():
        with running_broker(scratch / kind) as broker:
            with WireClient(broker.port) as client:
                frame = client.frame_of(request.make(), request.version)
                if request.first is not None:
                    client.send(client.frame_of(request.first, request.version))
                    client.read_frame()
            figures |= {f"{kind}_{name}": each for name, each in _of(broker, frame, share).items()}
        shutil.rmtree(scratch / kind)
    return figures


def _produce_frame(broker: BrokerProcess, kind: str) -> bytes:
    """A Produce of a batch of a kind, to a new topic."""
    topic = f"{kind.replace('_', '-')}-{time.time_ns()}"
    create_topic(broker.bootstrap, topic, config=dict(KINDS[kind].topic_config))
    with WireClient(broker.port) as client:
        request = produce_request(topic, KINDS[kind].make(), acks=1)
        return client.frame_of(request, KINDS[kind].version)


def _of(broker: BrokerProcess, frame: bytes, share: int) -> dict[str, float]:
    create_topic(broker.bootstrap, "honest")
    with WireClient(broker.port) as client:
        short = client.frame_of(ApiVersionsRequest(), 0)
    alone = _round_trips(broker, SECONDS / share)
    busy = _beside(broker, short, SECONDS / share)
    beside = _beside(broker, frame, SECONDS / share)
    return {
        "p50_us_alone": at(alone, 0.50),
        "p50_us_busy": at(busy, 0.50),
        "p50_us": at(beside, 0.50),
        "p99_us_alone": at(alone, 0.99),
        "p99_us_busy": at(busy, 0.99),
        "p99_us": at(beside, 0.99),
        "max_us_busy": busy[-1],
        "max_us": beside[-1],
        "p99_ratio": at(beside, 0.99) / at(alone, 0.99),
        "p99_ratio_to_busy": at(beside, 0.99) / at(busy, 0.99),
        "broker_MB": broker.memory_bytes() / 2**20,
    }


def _round_trips(broker: BrokerProcess, seconds: float) -> list[float]:
    until = now() + seconds
    return round_trips(broker, "honest", lambda: now() < until)


def _beside(broker: BrokerProcess, frame: bytes, seconds: float) -> list[float]:
    """Round trips while hostile clients are at work; what they were sent before is not counted."""
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe()
    clients = context.Process(target=_harass, args=(its, broker.port, frame))
    clients.start()
    try:
        assert mine.recv() == "sent"
        return _round_trips(broker, seconds)
    finally:
        clients.kill()
        clients.join(JOIN_SECONDS)


def _harass(orders: Connection, port: int, frame: bytes) -> None:
    # The producer must not wait for these clients themselves. With a lower priority alone (nice) it
    # would, for 3 ms: Linux lets a process that runs finish its slice.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    clients = [WireClient(port, timeout_s=ANSWER_SECONDS) for _ in range(CLIENTS)]
    for client in clients:
        client.send(frame)
    orders.send("sent")
    while True:
        for client in clients:
            client.read_frame()
            client.send(frame)


WORKLOADS = {"hostile_batches": hostile_batches, "hostile_requests": hostile_requests}
