"""The clients that copy, and how the program of each is started."""

import sys
from collections.abc import Callable
from typing import NamedTuple

from tests.support.java_program import compiled_program
from tests.support.kafka_jars import (
    BROKER_VERSION,
    TRANSACTIONAL_CLIENTS,
    kafka_jars,
    old_clients_jars,
)
from tests.support.lengths import by_length

V28, V39 = TRANSACTIONAL_CLIENTS
NEW = BROKER_VERSION  # the broker's jars have the clients of transaction version 2


class Client(NamedTuple):
    """A client and the protocol of its group. `command` raises LookupError where it cannot run."""

    library: str
    protocol: str
    command: Callable[[], list[str]]
    fenced: str  # what it says to a producer that another has replaced

    @property
    def name(self) -> str:
        """Of its group, its transactional id and its topic."""
        return f"{self.library}-{self.protocol}"


def _python(module: str) -> Callable[[], list[str]]:
    # kafka-python leaves sockets of refused connections to the garbage collector, which warns.
    return lambda: [sys.executable, "-W", "ignore", "-m", f"tests.crash.copiers.{module}"]


def _java(version: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        jars = kafka_jars() if version == NEW else old_clients_jars(version)
        if jars is None:
            raise LookupError(f"no jars of the clients of {version}")
        return compiled_program(jars, "Copier.java")

    return command


PYTHON = (
    Client("confluent", "classic", _python("confluent"), "_FENCED"),
    Client("confluent", "consumer", _python("confluent"), "_FENCED"),
    Client("aiokafka", "classic", _python("aio"), "ProducerFenced"),
    Client("kafka-python", "classic", _python("kafka_python"), "ProducerFencedError"),
)
# Not 3.9 with the consumer protocol, which was a preview there. It reads a partition from its first
# offset if it was assigned while committed offsets were looked up (KAFKA-17674, mended in 4.0).
_JAVA_FEW = ((NEW, "consumer"), (V28, "classic"))
_JAVA_ALL = (*_JAVA_FEW, (V39, "classic"), (NEW, "classic"))
# A JVM takes more than a second of a processor to start.
JAVA = tuple(
    Client(f"java-{version}", protocol, _java(version), "ProducerFencedException")
    for version, protocol in by_length(_JAVA_FEW, _JAVA_ALL)
)
