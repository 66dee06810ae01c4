"""Quotas beside Apache Kafka: the same traffic gets the same rate, and kafka-configs says the same.

The brokers run at the same time and get the same requests. A client sends as fast as it can, which
is many times its quota.
"""

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import ProduceResponse
from tests.conformance.conversation import advertised_versions
from tests.conformance.requests import batch_of
from tests.support.broker_in_loop import produce_to
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess
from tests.support.lengths import only_long
from tests.support.quotas import alter_quota
from tests.support.stored_batches import FETCH_VERSION, fetch_request, fetched
from tests.support.topics import create_topic
from tests.support.warm_tools import WarmTools
from tests.support.wire import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow, only_long("quotas are kept in broker/quotas")]

KIB = 1024
WINDOW_S = 1
SETTINGS = {"quota.window.num": "2", "controller.quota.window.num": "3"}
PRODUCE_VERSION = 9
RATE = 500 * KIB
MEASURED_S = 12.0
BATCH = batch_of("x" * 40 * KIB)


class Brokers(NamedTuple):
    kafka: BrokerProcess
    odradek: BrokerProcess

    def both(self, work: Callable[[BrokerProcess], Any]) -> tuple[Any, Any]:
        """Do something with both brokers at the same time."""
        with ThreadPoolExecutor(2) as threads:
            kafka, odradek = threads.map(work, self)
        return kafka, odradek


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    kafka = ApacheKafkaProcess(tmp_path_factory.mktemp("kafka"), SETTINGS)
    odradek = BrokerProcess(tmp_path_factory.mktemp("odradek"), SETTINGS)
    try:
        kafka.start()
        odradek.start()
        for broker in (kafka, odradek):
            for topic in ("t", "produced", "fetched"):
                create_topic(broker.bootstrap, topic)
        yield Brokers(kafka, odradek)
    finally:
        odradek.stop()
        kafka.stop()


def rate_of(ask: Callable[[], int]) -> float:
    """Bytes per second after the burst that a quota allows at first. `ask` returns bytes.

    Bursts and pauses of the length of the window alternate, so many of them are measured.
    """
    until_steady = time.monotonic() + 2 * WINDOW_S
    while time.monotonic() < until_steady:
        ask()
    began = time.monotonic()
    total = 0
    while time.monotonic() < began + MEASURED_S:
        total += ask()
    return total / (time.monotonic() - began)


def rate_of_producer(broker: BrokerProcess) -> float:
    alter_quota(broker.port, {"client-id": "greedy"}, producer_byte_rate=RATE)
    request = produce_to("produced", BATCH, acks=1)
    with WireClient(broker.port, client_id="greedy") as client:
        frame = client.frame_of(request, PRODUCE_VERSION)

        def produce() -> int:
            client.send(frame)
            client.read_answer(ProduceResponse, PRODUCE_VERSION)
            return len(frame)

        return rate_of(produce)


def rate_of_consumer(broker: BrokerProcess) -> float:
    alter_quota(broker.port, {"user": None, "client-id": "thirsty"}, consumer_byte_rate=RATE)
    request = fetch_request("fetched", 0, 0, 50 * KIB)
    with WireClient(broker.port, client_id="thirsty") as client:
        client.ask(produce_to("fetched", BATCH, acks=1), ProduceResponse, PRODUCE_VERSION)

        def fetch() -> int:
            answer = client.ask(request, FetchResponse, FETCH_VERSION)
            return len(fetched(answer)) if answer.responses else 0

        return rate_of(fetch)


def test_a_client_gets_its_quota_and_no_more(brokers: Brokers) -> None:
    kinds = {"producer": rate_of_producer, "consumer": rate_of_consumer}
    with ThreadPoolExecutor(4) as threads:
        pending = {
            kind: [threads.submit(rate, broker) for broker in brokers]
            for kind, rate in kinds.items()
        }
    rates = {kind: [each.result() for each in both] for kind, both in pending.items()}
    for kind, (kafka, odradek) in rates.items():
        assert odradek == pytest.approx(kafka, rel=0.1), kind
        assert odradek == pytest.approx(RATE, rel=0.1), kind


def test_a_throttled_client_delays_no_other_one(brokers: Brokers) -> None:
    for broker in brokers:  # both, so that kafka-configs lists the same
        alter_quota(broker.port, {"client-id": "stopped"}, producer_byte_rate=1)
    request = produce_to("t", batch_of("x"), acks=1)
    with (
        WireClient(brokers.odradek.port, client_id="stopped") as stopped,
        WireClient(brokers.odradek.port, client_id="other") as other,
    ):
        answer = stopped.ask(request, ProduceResponse, PRODUCE_VERSION)
        assert answer.throttle_time_ms > 0
        began = time.monotonic()
        for _ in range(200):
            assert other.ask(request, ProduceResponse, PRODUCE_VERSION).throttle_time_ms == 0
        assert time.monotonic() - began < 2


def test_topics_are_refused_for_the_same_time(brokers: Brokers) -> None:
    def created(client: WireClient, name: str, partitions: int) -> tuple[int, int]:
        topic = CreateTopicsTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
        )
        answer = client.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
        return answer.topics[0].error_code, answer.throttle_time_ms

    def of(broker: BrokerProcess) -> tuple[tuple[int, int], tuple[int, int]]:
        alter_quota(broker.port, {"client-id": "maker"}, controller_mutation_rate=1)
        with WireClient(broker.port, client_id="maker") as client:
            return created(client, "many", 9), created(client, "more", 1)

    kafka, odradek = brokers.both(of)
    for first, second in (kafka, odradek):
        assert first == (ErrorCode.NONE, 0)
        error, throttle_ms = second
        assert error == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        # 9 of the 3 permits were taken: 6 seconds, less the time that creating them took.
        assert 4000 < throttle_ms <= 6000


COMMANDS = [
    "--alter --add-config producer_byte_rate=1024,consumer_byte_rate=2048 --entity-type users"
    " --entity-name alice",
    "--alter --add-config request_percentage=12.5 --entity-type users --entity-name alice"
    " --entity-type clients --entity-name one",
    "--alter --add-config controller_mutation_rate=3 --entity-type users --entity-default"
    " --entity-type clients --entity-default",
    "--alter --add-config consumer_byte_rate=9 --entity-type clients --entity-name=two",
    "--alter --add-config connection_creation_rate=77 --entity-type ips --entity-name 192.0.2.1",
    "--alter --add-config connection_creation_rate=78 --entity-type ips --entity-default",
    "--alter --add-config connection_creation_rate=1.5 --entity-type ips --entity-default",
    "--alter --add-config producer_byte_rate=0 --entity-type users --entity-name alice",
    "--alter --add-config no_such_rate=1 --entity-type users --entity-name alice",
    "--alter --add-config connection_creation_rate=1 --entity-type ips --entity-name no.such.host",
    "--describe --entity-type users",
    "--describe --entity-type users --entity-name alice",
    "--describe --entity-type users --entity-default --entity-type clients --entity-default",
    "--describe --entity-type users --entity-type clients",
    "--describe --entity-type clients",
    "--describe --entity-type clients --entity-name two",
    "--describe --entity-type ips",
    "--describe --entity-type ips --entity-default",
    "--alter --delete-config producer_byte_rate --entity-type users --entity-name alice",
    "--alter --delete-config connection_creation_rate --entity-type ips --entity-default",
    "--alter --delete-config connection_creation_rate --entity-type ips --entity-default",
    "--describe --entity-type users --entity-name alice",
    "--describe --entity-type ips",
]

DESCRIBES_USERS = re.compile(r"--describe --entity-type users(?!.*clients)")


def test_kafka_configs_says_the_same(brokers: Brokers) -> None:
    said: list[list[tuple[int, list[str]]]] = []
    served = advertised_versions(brokers.odradek.port)
    # The tool describes a user's SCRAM credentials, too.
    has_scram = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS in served
    commands = [each for each in COMMANDS if has_scram or not DESCRIBES_USERS.match(each)]
    with WarmTools() as tools:
        for broker in brokers:
            told = []
            for command in commands:
                words = ["--bootstrap-server", broker.bootstrap, *command.split()]
                code, text = tools.run("ConfigCommand", *words)
                told.append((code, lines_of(text.replace(broker.bootstrap, "BROKER"))))
                if "--alter" in command:
                    time.sleep(0.2)  # Kafka's broker learns it a little later
            said.append(told)
    for command, kafka, odradek in zip(commands, *said, strict=True):
        assert odradek == kafka, command


def lines_of(text: str) -> list[str]:
    """The lines without stack frames and numbers of clients; a hash table orders them."""
    lines = [line for line in text.splitlines() if not re.match(r"\s+(at|\.\.\. \d+ more)", line)]
    return sorted(re.sub(r"(?<=adminclient-)\d+", "N", line) for line in lines)
