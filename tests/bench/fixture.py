"""The broker of tests beside Apache Kafka, as a test would start and empty each.

first_record    from a new Python process to its first acknowledged record
reset           20 topics and 5 groups removed, and the topics there again
later_brokers   a second broker of a session, beside the first
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.broker.testing import Broker
from tests.bench.figures import KAFKA, ODRADEK, Figures, Results, compared
from tests.bench.swarm import now
from tests.support.broker_process import WarmedKafkaProcess
from tests.support.java_tools import why_no_java

TOPICS = [f"topic-{number}" for number in range(20)]
GROUPS = [f"group-{number}" for number in range(5)]
LIMIT_S = 60.0

# Each program starts a broker and ends it after the first acknowledged record.
_PRODUCE = """
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "log_level": 0})
producer.produce("orders", b"first")
assert producer.flush(60) == 0
"""
_ODRADEK = f"""
from odradek.broker.testing import Broker
broker = Broker().start()
address = broker.bootstrap_servers
{_PRODUCE}
broker.stop()
"""
_KAFKA = f"""
import sys
from pathlib import Path
from tests.support.broker_process import WarmedKafkaProcess
broker = WarmedKafkaProcess(Path(sys.argv[1])).start()
address = broker.bootstrap
{_PRODUCE}
broker.kill()
"""

# Prints the milliseconds of each start, and those of CPU time that the broker's process has used.
_STARTS = """
import json, sys, time
from pathlib import Path
from odradek.broker.testing import Broker

def start(directory):
    with Broker(directory) as broker:
        took_ms = (time.perf_counter() - began) * 1000
        threads = Path(f"/proc/{broker._process.pid}/task").iterdir()
        cpu_ns = sum(int((each / "schedstat").read_text().split()[0]) for each in threads)
        return took_ms, cpu_ns / 1e6

found = []
for number in range(int(sys.argv[2])):
    began = time.perf_counter()
    found.append(start(Path(sys.argv[1]) / str(number)))
print(json.dumps(found))
"""
LATER = 20


def first_record(scratch: Path, rounds: int, share: int) -> Results:
    """Seconds from the start of a Python process to its end after one acknowledged record."""
    programs = {ODRADEK: _ODRADEK} | ({} if why_no_java() else {KAFKA: _KAFKA})
    # pip compiles what it installs; without the variable the first program compiles it here.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    found: dict[str, list[Figures]] = {name: [] for name in programs}
    for number in range(rounds):
        for name, program in programs.items():
            began = now()
            directory = scratch / f"first-record-{name}-{number}"
            command = [sys.executable, "-c", program, str(directory)]
            subprocess.run(command, check=True, env=environment)
            found[name].append({"s": now() - began})
    return compared(found)


def reset(scratch: Path, rounds: int, share: int) -> Results:
    """Milliseconds to remove 20 topics and 5 groups; Kafka's as an administrator does it."""
    found: dict[str, list[Figures]] = {ODRADEK: []}
    with Broker(scratch / "reset") as broker:
        for _ in range(rounds):
            _fill(broker.bootstrap_servers)
            began = now()
            broker.reset()
            found[ODRADEK].append({"ms": (now() - began) * 1000})
    if why_no_java() is None:
        kafka = WarmedKafkaProcess(scratch / "reset-kafka").start()
        try:
            found[KAFKA] = _as_administrator(kafka.bootstrap, rounds)
        finally:
            kafka.kill()
    return compared(found)


def later_brokers(scratch: Path, rounds: int, share: int) -> Results:
    """Start of the first broker of a Python process, and the median of 20 later ones."""
    found = []
    for number in range(rounds):
        arguments = [str(scratch / f"later-{number}"), str(1 + LATER)]
        command = [sys.executable, "-c", _STARTS, *arguments]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        (first_ms, _), *later = json.loads(printed)
        later_ms = statistics.median(took_ms for took_ms, _ in later)
        found.append(
            {
                "first_ms": first_ms,
                "later_ms": later_ms,
                "later_cpu_ms": statistics.median(cpu_ms for _, cpu_ms in later),
                "later_to_first_ratio": later_ms / first_ms,
            }
        )
    return compared({ODRADEK: found})


def _as_administrator(bootstrap: str, rounds: int) -> list[Figures]:
    """Milliseconds to delete the groups and topics, and to create the topics again."""
    admin = AdminClient(_client(bootstrap))
    found = []
    for _ in range(rounds):
        _fill(bootstrap)
        began = now()
        _wait(admin.delete_consumer_groups(GROUPS))
        _wait(admin.delete_topics(TOPICS))
        _create(admin)
        found.append({"ms": (now() - began) * 1000})
    return found


def _fill(bootstrap: str) -> None:
    """Create what is missing of the topics and groups, with a record and an offset each."""
    admin = AdminClient(_client(bootstrap))
    missing = set(TOPICS) - set(admin.list_topics(timeout=LIMIT_S).topics)
    if missing:  # or created already: Kafka's brokers hear of a topic later than its controller
        for future in admin.create_topics([NewTopic(name, 1, 1) for name in missing]).values():
            error = future.exception(LIMIT_S)
            assert error is None or error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, error
    producer = Producer(_client(bootstrap))
    for topic in TOPICS:
        producer.produce(topic, b"record")
    assert producer.flush(LIMIT_S) == 0
    for group in GROUPS:
        _commit(Consumer({**_client(bootstrap), "group.id": group}))


def _client(bootstrap: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "log_level": 0}


def _commit(consumer: Consumer) -> None:
    """Commit an offset; Kafka needs a moment until it has a coordinator."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(TOPICS[0], 0, 1)], asynchronous=False)
            break
        except KafkaException:
            assert time.monotonic() < deadline, "there is no coordinator"
    consumer.close()


def _create(admin: AdminClient) -> None:
    """Create the topics; Kafka needs a moment until those of the same names are gone."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        futures = admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS])
        if all(future.exception(LIMIT_S) is None for future in futures.values()):
            return
        assert time.monotonic() < deadline, "the topics cannot be created again"


def _wait(futures: Mapping[str, Future[Any]]) -> None:
    for future in futures.values():
        future.result(LIMIT_S)


WORKLOADS: dict[str, Callable[[Path, int, int], Results]] = {
    work.__name__: work for work in (first_record, reset)
}
ON_DEMAND: dict[str, Callable[[Path, int, int], Results]] = {later_brokers.__name__: later_brokers}
