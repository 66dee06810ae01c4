"""odradek and Apache Kafka, measured in one run: what one is must be seen beside the other.

Both live through the whole workload and are measured in turns, Kafka warmed up by rounds that do
not count; it takes part where its jars and Java are at hand.
"""

import itertools
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.bench.bare_loop import BareLoop
from tests.bench.figures import BARE, KAFKA, ODRADEK, Figures, Results, compared
from tests.bench.swarm import now
from tests.support.broker_process import BrokerProcess, WarmedKafkaProcess
from tests.support.java_tools import why_no_java
from tests.support.topics import create_topic, delete_topic
from tests.support.wire import ConnectionEndedError, WireClient

WARM_ROUNDS = 3
SETTLE_S = 2.0
FIND_COORDINATOR_VERSION = 4
LIST_OFFSETS_VERSION = 5
LATEST = -1
GROUPS, TRANSACTIONS = 0, 1  # key types of FindCoordinator
OPEN_FILES = 12_000
LIMIT_S = 600.0
_names = (f"bench-{number}" for number in itertools.count())
Brokers = Mapping[str, BrokerProcess]


def both(directory: Path, settings: Mapping[str, str]) -> dict[str, BrokerProcess]:
    """odradek, and Apache Kafka where it can run; not started yet."""
    brokers: dict[str, BrokerProcess] = {ODRADEK: BrokerProcess(directory / "o", settings)}
    if why_no_java() is None:
        brokers[KAFKA] = WarmedKafkaProcess(directory / "k", settings)
    return brokers


@contextmanager
def running(
    scratch: Path,
    settings: Mapping[str, str],
    topics: Mapping[str, int],
    *,
    tls_ports: Mapping[str, int] | None = None,
) -> Iterator[dict[str, BrokerProcess]]:
    """Both brokers, with their coordinators at work and `topics` made.

    `topics`: their numbers of partitions. `tls_ports`: the port of a TLS listener for each broker.
    """
    allow_files(OPEN_FILES)
    directory = scratch / f"two-brokers-{time.time_ns()}"
    brokers = both(directory, settings)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory)
        for name, broker in brokers.items():
            if tls_ports is not None:
                _add_tls(broker, tls_ports[name])
            stack.callback(broker.stop)
            broker.start()
            await_coordinator(broker, GROUPS)
            await_coordinator(broker, TRANSACTIONS)
            for topic, partitions in topics.items():
                create_topic(broker.bootstrap, topic, partitions)
                await_topic(broker, topic, partitions)
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


def await_topic(broker: BrokerProcess, topic: str, partitions: int = 1) -> None:
    """Wait until each partition says where it ends. Raises TimeoutError."""
    wanted = [
        ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(partitions)
    ]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]
    )
    deadline = now() + LIMIT_S
    while now() < deadline:
        try:
            with WireClient(broker.port) as client:
                while now() < deadline:
                    answer = client.ask(request, ListOffsetsResponse, LIST_OFFSETS_VERSION)
                    if all(each.error_code == 0 for each in answer.topics[0].partitions):
                        return
                    time.sleep(0.01)
        except ConnectionEndedError:
            continue
    raise TimeoutError(f"{broker.name} does not serve all partitions of {topic}")


@contextmanager
def new_topic(
    broker: BrokerProcess, partitions: int = 1, config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The name of a topic that is deleted after the `with`; a bare loop needs none."""
    topic = next(_names)
    if isinstance(broker, BareLoop):
        yield topic
        return
    create_topic(broker.bootstrap, topic, partitions, config)
    await_topic(broker, topic, partitions)
    yield topic
    delete_topic(broker.bootstrap, topic)


def in_turns(
    brokers: Brokers,
    rounds: int,
    measure: Callable[[BrokerProcess], Figures],
    warm_rounds: int = WARM_ROUNDS,
) -> Results:
    """Measure each broker once a round; the first rounds do not count."""
    found: dict[str, list[Figures]] = {name: [] for name in brokers}
    allow_files(OPEN_FILES)
    for number in range(rounds + warm_rounds):
        for name, broker in brokers.items():
            time.sleep(SETTLE_S)  # what the other one still does must not count
            measured = measure(broker)
            if number >= warm_rounds:
                found[name].append(measured)
    return compared(found)


def beside_bare(
    brokers: Brokers, rounds: int, measure: Callable[[BrokerProcess], Figures]
) -> Results:
    """The same with the bare loop as a third broker."""
    bare = BareLoop(brokers[ODRADEK].directory.with_name(BARE))
    try:
        return in_turns({**brokers, BARE: bare.start()}, rounds, measure, warm_rounds=1)
    finally:
        bare.stop()


class Meter:
    """Wall clock, and CPU time of the broker, since it was made."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._cpu = broker.cpu_seconds()
        self._started = now()

    def moved(self, size_bytes: int) -> Figures:
        """The figures of a workload that moved so many bytes."""
        seconds = now() - self._started
        cpu = self._broker.cpu_seconds() - self._cpu
        return {
            "MB_per_s": size_bytes / 2**20 / seconds,
            "cpu_s_per_GB": cpu / (size_bytes / 2**30),
        }

    def done(self, count: int) -> Figures:
        """The figures of a workload of so many requests, records or deliveries."""
        seconds = now() - self._started
        cpu = self._broker.cpu_seconds() - self._cpu
        return {"per_s": count / seconds, "cpu_us_each": cpu / count * 1e6}


@contextmanager
def timed(broker: BrokerProcess, figures: Figures, name: str) -> Iterator[None]:
    """Note the seconds, and the broker's CPU seconds, of what happens inside the `with`."""
    cpu = broker.cpu_seconds()
    began = now()
    yield
    figures[f"{name}_s"] = now() - began
    figures[f"{name}_cpu_s"] = broker.cpu_seconds() - cpu


def allow_files(count: int) -> None:
    """Let this process open so many files. Raises OSError where the machine forbids it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        raise OSError(f"{count} connections need as many open files; the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
