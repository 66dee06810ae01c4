"""TLS 1.3 beside Apache Kafka: produce, fetch and handshakes, and what handshakes cost others."""

import multiprocessing
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa

from tests.bench.figures import KAFKA, ODRADEK, Figures, Results, at
from tests.bench.over_the_wire import GB, batch_of, fetch_around, pipelined, produce_frame
from tests.bench.swarm import now
from tests.bench.two_brokers import Meter, in_turns, running
from tests.support.broker_process import BrokerProcess, free_ports
from tests.support.bystander import produce
from tests.support.certificates import TlsFiles
from tests.support.wire import WireClient

TOPIC = "encrypted"
BATCH_BYTES = 65536
HANDSHAKES = 500
HANDSHAKES_PER_S = 500
ROUND_TRIPS = 2_000
PAUSE_S = 0.001


def tls(scratch: Path, rounds: int, share: int) -> Results:
    """One partition, 64 KiB a batch; fetches of 2 MiB; handshakes one after another, RSA 2048."""
    files = TlsFiles(scratch / "certificates")
    key = rsa.generate_private_key(65537, 2048)
    files.write_pem("server.pem", files.authority.sign("localhost", key=key))
    context = ssl.create_default_context(cafile=str(files.ca))
    ports = dict(zip((ODRADEK, KAFKA), free_ports(2), strict=True))
    settings = {**files.broker_settings(), "log.retention.bytes": "-1"}

    def measure(broker: BrokerProcess) -> Figures:
        port = ports[broker.name]
        figures: Figures = {}
        with WireClient(broker.port) as plain, WireClient(port, tls=context) as encrypted:
            for name, client in (("plain", plain), ("tls", encrypted)):
                for work, figure in _moved(broker, client, GB // share).items():
                    figures[f"{name}_{work}"] = figure
        figures |= _handshakes(broker, port, context, HANDSHAKES // share)
        figures["quiet_p99_us"] = _p99_us(broker, ROUND_TRIPS // share)
        with _handshaking(port, files):
            figures["handshakes_p99_us_beside"] = _p99_us(broker, ROUND_TRIPS // share)
        return figures

    with running(scratch, settings, {TOPIC: 1}, tls_ports=ports) as brokers:
        return in_turns(brokers, rounds, measure)


def _moved(broker: BrokerProcess, client: WireClient, size_bytes: int) -> Figures:
    frame = produce_frame(TOPIC, 1, batch_of(BATCH_BYTES, 64), 1)
    meter = Meter(broker)
    pipelined(client, repeat(frame, size_bytes // BATCH_BYTES))
    figures = {f"produce_{name}": value for name, value in meter.moved(size_bytes).items()}
    meter = Meter(broker)
    moved = fetch_around(client, TOPIC, size_bytes)
    return figures | {f"fetch_{name}": value for name, value in meter.moved(moved).items()}


def _handshakes(broker: BrokerProcess, port: int, context: ssl.SSLContext, count: int) -> Figures:
    cpu, began = broker.cpu_seconds(), now()
    for _ in range(count):
        WireClient(port, tls=context).close()
    seconds = now() - began
    return {
        "handshakes_per_s": count / seconds,
        "handshake_cpu_ms_each": (broker.cpu_seconds() - cpu) / count * 1000,
    }


def _p99_us(broker: BrokerProcess, count: int) -> float:
    """The round trip of a small record without TLS."""
    batch, trips = batch_of(100, 1), []
    with WireClient(broker.port) as client:
        for _ in range(count):
            began = now()
            produce(client, TOPIC, batch)
            trips.append((now() - began) * 1e6)
            time.sleep(PAUSE_S)
    return at(sorted(trips), 0.99)


@contextmanager
def _handshaking(port: int, files: TlsFiles) -> Iterator[None]:
    """A process that makes HANDSHAKES_PER_S."""
    process = multiprocessing.get_context("spawn").Process(target=shake, args=(port, str(files.ca)))
    process.start()
    time.sleep(1.0)  # until it has started
    try:
        yield
    finally:
        process.kill()
        process.join()


def shake(port: int, ca: str) -> None:
    """Make handshakes at a steady rate, for ever."""
    context = ssl.create_default_context(cafile=ca)
    due = now()
    while True:
        due += 1 / HANDSHAKES_PER_S
        time.sleep(max(due - now(), 0))
        WireClient(port, tls=context).close()


WORKLOADS = {"tls": tls}
