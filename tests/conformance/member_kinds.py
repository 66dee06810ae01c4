"""The clients that can be a member of a group, each with what it offers."""

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.members.events import (
    HEARTBEAT_INTERVAL_MS,
    METADATA_MAX_AGE_MS,
    SESSION_TIMEOUT_MS,
)
from tests.support.java_tools import JAVA_TOOLS

CLASSIC, CONSUMER = "classic", "consumer"
PATIENT_SESSION_TIMEOUT_MS = 60_000

_MODULES = {
    "kafka-python": "kafka_python_member",
    "aiokafka": "aiokafka_member",
    "confluent-kafka": "confluent_member",
}
_JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
_PATTERN_MEMBER = Path(__file__).with_name("members") / "PatternMember.java"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberKind:
    """A client, the protocol of its group, and who assigns: a client, or the broker.

    The assignor is a classic one's name, or that of the broker's; without one each chooses its own.
    """

    client: str
    protocol: str = CLASSIC
    assignor: str | None = None
    session_timeout_ms: int = SESSION_TIMEOUT_MS

    def __str__(self) -> str:
        said = [self.client]
        if self.protocol != CLASSIC:
            said.append(f"{self.protocol} protocol")
        return ", ".join([*said, *([self.assignor] if self.assignor else [])])

    @property
    def is_java(self) -> bool:
        """Whether it needs Java."""
        return self.client == "java"

    def by(self, assignor: str) -> "MemberKind":
        """The same client with another assignor."""
        return dataclasses.replace(self, assignor=assignor)

    def patient(self) -> "MemberKind":
        """The same client, which comes back in time however long it takes to start."""
        return dataclasses.replace(self, session_timeout_ms=PATIENT_SESSION_TIMEOUT_MS)

    def command(
        self, bootstrap: str, topic: str, group: str, instance: str | None, scratch: Path
    ) -> list[str]:
        """The command line of one member; a topic that begins with ^ is an expression."""
        make = _java_member if self.is_java else _python_member
        return make(self, bootstrap, topic, group, instance, scratch)


def _python_member(
    kind: MemberKind, bootstrap: str, topic: str, group: str, instance: str | None, _scratch: Path
) -> list[str]:
    module = f"tests.conformance.members.{_MODULES[kind.client]}"
    command = [sys.executable, "-W", "ignore", "-m", module, bootstrap, topic, group]
    command += ["--protocol", kind.protocol]
    command += ["--session-timeout-ms", str(kind.session_timeout_ms)]
    command += ["--assignor", kind.assignor] if kind.assignor else []
    return [*command, "--instance", instance] if instance else command


def _java_member(
    kind: MemberKind, bootstrap: str, topic: str, group: str, instance: str | None, scratch: Path
) -> list[str]:
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group]
    arguments += ["--reset-policy", "earliest", "--group-protocol", kind.protocol]
    arguments += ["--group-instance-id", instance] if instance else []
    settings = {"metadata.max.age.ms": METADATA_MAX_AGE_MS}
    if kind.protocol == CLASSIC:
        settings["heartbeat.interval.ms"] = HEARTBEAT_INTERVAL_MS
        strategy = f"org.apache.kafka.clients.consumer.{_JAVA_ASSIGNORS[kind.assignor or 'range']}"
        arguments += ["--session-timeout", str(kind.session_timeout_ms)]
        arguments += ["--assignment-strategy", strategy]
    elif kind.assignor:
        arguments += ["--group-remote-assignor", kind.assignor]
    file = scratch / f"{kind.protocol}-consumer.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    arguments += ["--command-config", str(file)]
    if topic.startswith("^"):
        return [*JAVA_TOOLS.java(), str(_PATTERN_MEMBER), *arguments]
    return JAVA_TOOLS.command("VerifiableConsumer", *arguments)


KAFKA_PYTHON = MemberKind(client="kafka-python")
AIOKAFKA = MemberKind(client="aiokafka")
CONFLUENT = MemberKind(client="confluent-kafka")
JAVA = MemberKind(client="java")
CONFLUENT_CONSUMER = MemberKind(client="confluent-kafka", protocol=CONSUMER)
JAVA_CONSUMER = MemberKind(client="java", protocol=CONSUMER)

# What each client offers in a classic group. Nothing here is the broker's work but the vote.
ASSIGNORS = {
    KAFKA_PYTHON: ("range", "roundrobin", "sticky", "cooperative-sticky"),
    AIOKAFKA: ("range", "roundrobin", "sticky"),
    CONFLUENT: ("range", "roundrobin", "cooperative-sticky"),
    JAVA: ("range", "roundrobin", "sticky", "cooperative-sticky"),
}
