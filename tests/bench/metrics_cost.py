"""What metrics cost: a broker that counts requests and serves /metrics, beside one that does not.

Both get the same requests, several in flight, in short turns: of one record, which is the most that
counting can weigh, and of the Java producer's default batch. Their CPU times are compared turn by
turn. Each round has new processes, because a process is one or two per cent faster or slower than
another for its whole life.
"""

import shutil
import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from tests.bench.figures import Figures
from tests.bench.over_the_wire import batch_of, pipelined
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import PRODUCE_VERSION, produce_request
from tests.support.stored_batches import FETCH_VERSION, fetch_request
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

TURNS = 40


class Load(NamedTuple):
    """The records of a batch, one batch a request, and the requests of a turn."""

    size_bytes: int
    records: int
    requests: int


LOADS = {"one_record": Load(100, 1, 10_000), "16_KiB": Load(16_000, 16, 2_000)}


def metrics_cost(scratch: Path, rounds: int, share: int) -> Figures:
    """Per cent of the broker's CPU time, for requests of one record and of 16 KiB."""
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        with ExitStack() as stack:
            brokers = {}
            for name, http in (("plain", ""), ("counting", "127.0.0.1:0")):
                directory = scratch / f"metrics-cost-{name}-{number}"
                stack.callback(shutil.rmtree, directory)
                broker = BrokerProcess(directory, {"odradek.http.listener": http})
                stack.callback(broker.stop)
                broker.start()
                for topic in LOADS:
                    create_topic(broker.bootstrap, topic)
                brokers[name] = broker
            for topic, load in LOADS.items():
                for name, frame in _frames(topic, load).items():
                    ratios = _ratios(brokers, frame, load.requests // share)
                    found.setdefault(f"{name}_{topic}_percent", []).extend(ratios)
    return {name: 100 * (statistics.median(each) - 1) for name, each in found.items()}


def _frames(topic: str, load: Load) -> dict[str, bytes]:
    """A Produce of one batch, and a Fetch of the first one."""
    produce = produce_request(topic, batch_of(load.size_bytes, load.records), acks=1)
    return {
        "produce": request_frame(produce, PRODUCE_VERSION, 1, "bench"),
        "fetch": request_frame(fetch_request(topic, 0, 0, 1), FETCH_VERSION, 1, "bench"),
    }


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
