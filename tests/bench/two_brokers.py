"""odradek and Apache Kafka, measured in one run: what one is must be seen beside the other.

Both live through the whole workload and are measured in turns, Kafka warmed up by rounds that do
not count; it takes part where its jars and Java are at hand.
"""

import math
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tests.bench.swarm import now
from tests.support.broker_process import BrokerProcess, WarmedKafkaProcess
from tests.support.java_tools import why_no_java
from tests.support.topics import create_topic, topic_partitions
from tests.support.wire import WireClient

WARM_ROUNDS = 3
SETTLE_S = 2.0
COMPARED = (
    *("_cpu_s", "join_s", "one_more_s", "_cpu_s_per_s", "_p99_us", "_p99_us_beside"),
    *("_logins_per_s", "_cpu_us_per_login"),
    *("_transactions_per_s", "_cpu_us_per_transaction", "_p50_us", "_cpu_s_per_GB"),
    *("_MB_per_s", "_per_s", "_cpu_ms_each"),
)
FIND_COORDINATOR_VERSION = 4
GROUPS, TRANSACTIONS = 0, 1  # key types of FindCoordinator
CONNECTIONS = 4000
Figures = dict[str, float]


@contextmanager
def running(
    scratch: Path,
    settings: Mapping[str, str],
    topics: Mapping[str, int],
    *,
    tls_ports: Mapping[str, int] | None = None,
) -> Iterator[dict[str, BrokerProcess]]:
    """odradek, and Apache Kafka where it can run; coordinators at work, `topics` made.

    `topics`: their numbers of partitions. `tls_ports`: the port of a TLS listener for each broker.
    """
    directory = scratch / f"two-brokers-{time.time_ns()}"
    brokers: dict[str, BrokerProcess] = {"odradek": BrokerProcess(directory / "o", settings)}
    if why_no_java() is None:
        brokers["kafka"] = WarmedKafkaProcess(directory / "k", settings)
    with ExitStack() as stack:
        for name, broker in brokers.items():
            if tls_ports is not None:
                _add_tls(broker, tls_ports[name])
            stack.callback(broker.stop)
            broker.start()
            await_coordinator(broker, GROUPS)
            await_coordinator(broker, TRANSACTIONS)
            for topic, partitions in topics.items():
                create_topic(broker.bootstrap, topic, partitions)
                await_topic(broker, topic)
        yield brokers


def _add_tls(broker: BrokerProcess, port: int) -> None:
    """Give a broker that is not started yet a TLS listener."""
    for key in ("listeners", "advertised.listeners"):
        broker.settings[key] += f",SSL://127.0.0.1:{port}"
    protocols = "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"
    broker.settings["listener.security.protocol.map"] = protocols


def await_coordinator(broker: BrokerProcess, key_type: int) -> None:
    """Have the coordinator's topic made, and wait until the broker says who coordinates."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
    with WireClient(broker.port) as client:
        while True:
            answer = client.ask(request, FindCoordinatorResponse, FIND_COORDINATOR_VERSION)
            if answer.coordinators[0].error_code == ErrorCode.NONE:
                return
            time.sleep(0.1)


def await_topic(broker: BrokerProcess, topic: str) -> None:
    """Wait until the topic has a leader everywhere: in Kafka that comes after the answer."""
    while topic_partitions(broker.bootstrap).get(topic, 0) == 0:
        time.sleep(0.1)
    time.sleep(0.3)


def in_turns(
    brokers: Mapping[str, BrokerProcess],
    rounds: int,
    measure: Callable[[BrokerProcess], Figures],
    warm_rounds: int = WARM_ROUNDS,
) -> Figures:
    """Medians of each broker, and of odradek's part of Kafka's; the first rounds do not count.

    The ratios are those of two measurements that follow each other, so that what else the machine
    does counts less.
    """
    found: list[Figures] = []
    allow_files(CONNECTIONS)
    for number in range(rounds + warm_rounds):
        figures: Figures = {}
        for name, broker in brokers.items():
            time.sleep(SETTLE_S)  # what the other one still does must not count
            measured = measure(broker)
            figures |= {f"{name}_{figure}": value for figure, value in measured.items()}
        if number >= warm_rounds:
            found.append(with_ratios(figures))
    return medians(found)


@contextmanager
def timed(broker: BrokerProcess, figures: Figures, name: str) -> Iterator[None]:
    """Note the seconds, and the broker's CPU seconds, of what happens inside the `with`."""
    cpu = broker.cpu_seconds()
    began = now()
    yield
    figures[f"{name}_s"] = now() - began
    figures[f"{name}_cpu_s"] = broker.cpu_seconds() - cpu


def medians(rounds: list[Figures]) -> Figures:
    """Of each figure, the median of all rounds."""
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def with_ratios(figures: Figures) -> Figures:
    """The same, and odradek's CPU, times and rates as a part of Kafka's, where both are there."""
    ratios = {}
    for name, value in figures.items():
        other = figures.get(f"kafka_{name.removeprefix('odradek_')}")
        if name.startswith("odradek_") and name.endswith(COMPARED) and other is not None:
            ratios[f"ratio_{name.removeprefix('odradek_')}"] = value / other if other else math.inf
    return figures | ratios


def allow_files(count: int) -> None:
    """Let this process open so many files. Raises OSError where the machine forbids it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        raise OSError(f"{count} connections need as many open files; the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
