"""Producers that go on while their broker dies and returns; each keeps a ledger.

They write about a thousand records a second, so that reading everything back stays cheap, with the
clients' own retries: they are told nothing of the crashes.
"""

import json
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from tests.crash import pace
from tests.crash.ledger import Ledger

ROOT = Path(__file__).parents[2]


class Writer(ABC):
    """Writes `name-0`, `name-1`, ... into the partitions of a topic of its own."""

    is_idempotent = True

    def __init__(self, bootstrap: str, name: str) -> None:
        self.name = name
        self.topic = f"written-by-{name}"
        self.ledger = Ledger()
        self.errors: list[str] = []
        self.written = 0
        self._bootstrap = bootstrap
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more, and wait until all is acknowledged. May be called twice."""
        self._ask_to_stop()
        self._thread.join(pace.DELIVERY_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} does not get rid of its records"

    @abstractmethod
    def _ask_to_stop(self) -> None:
        """Make `_run` come to its end."""

    @abstractmethod
    def _run(self) -> None:
        """Write, or listen to who writes, until asked to stop."""


class ConfluentWriter(Writer):
    """librdkafka, idempotent or with acks=all alone."""

    def __init__(self, bootstrap: str, name: str, *, idempotent: bool) -> None:
        super().__init__(bootstrap, name)
        self.is_idempotent = idempotent
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": idempotent,
                "acks": "all",
                "linger.ms": 5,
                "delivery.timeout.ms": pace.DELIVERY_SECONDS * 1000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def _ask_to_stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(pace.PAUSE_SECONDS):
            self._producer.poll(0)
            if self.written - len(self.ledger) > pace.UNANSWERED:
                continue
            for _ in range(pace.BURST):
                value = f"{self.name}-{self.written}".encode()
                partition = self.written % pace.PARTITIONS
                self._producer.produce(
                    self.topic, value, partition=partition, on_delivery=self._delivered
                )
                self.written += 1
        self._producer.flush(pace.DELIVERY_SECONDS)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.ledger.acknowledge(partition, offset, value)


class KafkaPythonWriter(Writer):
    """kafka-python with its defaults, which are idempotent; it runs in a process of its own."""

    def __init__(self, bootstrap: str, name: str = "kafka-python") -> None:
        super().__init__(bootstrap, name)
        self._process = subprocess.Popen(
            # It leaves the sockets of refused connections to the garbage collector, which warns.
            [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "tests.crash.kafka_python_writer",
                bootstrap,
                self.topic,
                name,
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _ask_to_stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _run(self) -> None:
        assert self._process.stdout is not None
        with self._process, self._process.stdout as lines:
            for line in lines:
                event = json.loads(line)
                if "error" in event:
                    self.errors.append(event["error"])
                elif "written" in event:
                    self.written = event["written"]
                else:
                    value = event["value"].encode()
                    self.ledger.acknowledge(event["partition"], event["offset"], value)
