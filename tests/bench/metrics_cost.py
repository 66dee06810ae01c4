"""What metrics cost: a broker that counts requests and serves /metrics, beside one that does not.

Both get the same requests of one record, several in flight, in short turns. Their CPU times are
compared turn by turn. Each round has new processes, because a process is a per cent faster or
slower than another for its whole life.
"""

import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path

from tests.bench.figures import Figures
from tests.bench.over_the_wire import batch_of, pipelined
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import PRODUCE_VERSION, produce_request
from tests.support.stored_batches import FETCH_VERSION, fetch_request
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

TOPIC = "bench"
TURNS = 40
REQUESTS = 10_000


def metrics_cost(scratch: Path, rounds: int, share: int) -> Figures:
    """Per cent of the broker's CPU time, for requests of one record of 100 bytes."""
    produce = produce_request(TOPIC, batch_of(100, 1), acks=1)
    frames = {
        "produce": request_frame(produce, PRODUCE_VERSION, 1, "bench"),
        "fetch": request_frame(fetch_request(TOPIC, 0, 0, 1), FETCH_VERSION, 1, "bench"),
    }
    found: dict[str, list[float]] = {name: [] for name in frames}
    for number in range(rounds):
        with ExitStack() as stack:
            brokers = {}
            for name, http in (("plain", ""), ("counting", "127.0.0.1:0")):
                directory = scratch / f"metrics-cost-{name}-{number}"
                broker = BrokerProcess(directory, {"odradek.http.listener": http})
                stack.callback(broker.stop)
                create_topic(broker.start().bootstrap, TOPIC)
                brokers[name] = broker
            for name, frame in frames.items():
                found[name] += _ratios(brokers, frame, REQUESTS // share)
    return {f"{name}_percent": 100 * (statistics.median(each) - 1) for name, each in found.items()}


def _ratios(brokers: Mapping[str, BrokerProcess], frame: bytes, requests: int) -> list[float]:
    """CPU time with metrics as a part of that without, turn by turn."""
    ratios = []
    for turn in range(TURNS):
        names = sorted(brokers, reverse=turn % 2 == 0)
        cpu = {name: _cpu_of(brokers[name], frame, requests) for name in names}
        ratios.append(cpu["counting"] / cpu["plain"])
    return ratios[1:]  # in the first turn both warm up


def _cpu_of(broker: BrokerProcess, frame: bytes, requests: int) -> float:
    """CPU seconds that the broker takes for the requests."""
    began = broker.cpu_seconds()
    with WireClient(broker.port) as client:
        pipelined(client, repeat(frame, requests))
    return broker.cpu_seconds() - began


WORKLOADS: dict[str, Callable[[Path, int, int], Figures]] = {"metrics_cost": metrics_cost}
