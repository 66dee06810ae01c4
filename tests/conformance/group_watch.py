"""Watches the members of a group from outside, and judges what they did with its records.

A member is a process that writes events as Kafka's VerifiableConsumer does. The verdict rests on
one notion: a member has *settled* an offset when it read it and then, in the same assignment, had
a commit behind it accepted. In a sound group every offset is read, and none is settled twice: what
is read again must be what nobody had committed.
"""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.java_tools import JAVA_TOOLS

PATIENCE_SECONDS = 60.0
ROOT = Path(__file__).parents[2]

Place = tuple[int, int]  # partition, offset


class Member:
    """A process of a group, and what it has said so far."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self.noise: list[str] = []
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    event = json.loads(line)
                except json.JSONDecodeError:
                    self.noise.append(line)
                else:
                    self.events.append(event)

    def kill(self) -> None:
        """SIGKILL: it leaves nothing, and its group must find out."""
        self._process.kill()
        self.wait()

    def leave(self) -> None:
        """SIGTERM: it leaves its group and ends."""
        self.ask_to_leave()
        self.assert_left()

    def assert_left(self) -> None:
        """It was asked to leave: wait until it has said that it did."""
        self.wait()
        assert self.heard("shutdown_complete"), self.story()

    def ask_to_leave(self) -> None:
        """SIGTERM, without waiting for the end."""
        self._process.terminate()

    def end(self) -> None:
        """End it, however it is."""
        if self._process.poll() is None:
            self.kill()

    def wait(self) -> None:
        """Wait for its end, and until all that it said has been heard."""
        self._process.wait(PATIENCE_SECONDS)
        self._listener.join(PATIENCE_SECONDS)

    @property
    def is_running(self) -> bool:
        """Whether the process still lives."""
        return self._process.poll() is None

    def heard(self, name: str) -> list[dict[str, Any]]:
        """Its events of one kind."""
        return [event for event in list(self.events) if event["name"] == name]

    @property
    def partitions(self) -> set[int]:
        """What it owns, as far as it has said."""
        owned: set[int] = set()
        for event in list(self.events):
            if event["name"] == "partitions_assigned":
                owned |= {place["partition"] for place in event["partitions"]}
            elif event["name"] == "partitions_revoked":
                owned -= {place["partition"] for place in event["partitions"]}
        return owned

    @property
    def records_read(self) -> int:
        """How many records it read, those twice that it read twice."""
        return sum(event["count"] for event in self.heard("records_consumed"))

    def read(self) -> Counter[Place]:
        """How often it read each offset."""
        return Counter(
            place for event in self.heard("records_consumed") for place in _places_of(event)
        )

    def settled(self) -> Counter[Place]:
        """How often it read an offset and then committed behind it, in one assignment."""
        settled: Counter[Place] = Counter()
        pending: set[Place] = set()
        for event in list(self.events):
            if event["name"] == "records_consumed":
                pending.update(_places_of(event))
            elif event["name"] in {"partitions_assigned", "partitions_revoked"}:
                pending.clear()
            elif event["name"] == "offsets_committed" and event["success"]:
                for commit in event["offsets"]:
                    done = {
                        place
                        for place in pending
                        if place[0] == commit["partition"] and place[1] < commit["offset"]
                    }
                    settled.update(done)
                    pending -= done
        return settled

    def story(self) -> str:
        """What to print when something is wrong with it."""
        last = "\n".join(json.dumps(event) for event in self.events[-15:])
        return f"{self.name}: owns {self.partitions}\n{last}\n{''.join(self.noise[-30:])}"


def _places_of(event: dict[str, Any]) -> list[Place]:
    places: list[Place] = []
    for summary in event["partitions"]:
        first, last = summary["minOffset"], summary["maxOffset"]
        assert summary["count"] == last - first + 1, f"a gap in {summary}"
        places += [(summary["partition"], offset) for offset in range(first, last + 1)]
    return places


class Group:
    """The members of one group on one topic, dead ones included."""

    def __init__(self, kind: str, bootstrap: str, topic: str, name: str, scratch: Path) -> None:
        self._make = _MAKERS[kind]
        self._arguments = (bootstrap, topic, name)
        self._scratch = scratch
        self.members: list[Member] = []

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.end()

    def add(self, instance: str | None = None) -> Member:
        """Start one more member."""
        name = f"member {len(self.members)}"
        command = self._make(*self._arguments, instance, self._scratch)
        self.members.append(Member(name, command))
        return self.members[-1]

    def leave(self) -> None:
        """All members leave, and end."""
        living = [member for member in self.members if member.is_running]
        for member in living:
            member.ask_to_leave()
        for member in living:
            member.assert_left()

    def wait_until_shared(self, *sizes: int) -> None:
        """Wait until the living members own disjoint parts of these sizes, in any order."""

        def shared() -> bool:
            owned = [member.partitions for member in self.members if member.is_running]
            disjoint = len(set().union(*owned)) == sum(map(len, owned))
            return disjoint and sorted(map(len, owned)) == sorted(sizes)

        self.wait_until(shared, f"shares of {sizes}")

    def wait_until(
        self, condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_SECONDS
    ) -> None:
        """Wait; fails with the members' stories."""
        deadline = time.monotonic() + patience_s
        while not condition():
            stories = "\n".join(member.story() for member in self.members)
            assert time.monotonic() < deadline, f"no {what}:\n{stories}"
            time.sleep(0.05)

    def read(self) -> Counter[Place]:
        """How often each offset was read."""
        return sum((member.read() for member in self.members), Counter())

    def settled(self) -> Counter[Place]:
        """How often each offset was settled."""
        return sum((member.settled() for member in self.members), Counter())

    def assert_sound(self, ends: dict[int, int]) -> None:
        """Every offset below the partitions' ends was read, none was settled twice."""
        wanted = {(partition, offset) for partition, end in ends.items() for offset in range(end)}
        assert set(self.read()) == wanted
        twice = [place for place, times in self.settled().items() if times > 1]
        assert twice == [], f"committed, and read again: {sorted(twice)[:10]}"


def _python_member(module: str) -> Callable[..., list[str]]:
    def command(
        bootstrap: str, topic: str, group: str, instance: str | None, scratch: Path
    ) -> list[str]:
        name = f"tests.conformance.members.{module}"
        options = ["--instance", instance] if instance else []
        return [sys.executable, "-W", "ignore", "-m", name, bootstrap, topic, group, *options]

    return command


def _java_member(
    bootstrap: str, topic: str, group: str, instance: str | None, scratch: Path
) -> list[str]:
    settings = scratch / "verifiable-consumer.properties"
    settings.write_text("heartbeat.interval.ms=300\n")
    options = ["--group-instance-id", instance] if instance else []
    return JAVA_TOOLS.command(
        "VerifiableConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group),
        *("--session-timeout", "3000", "--command-config", str(settings)),
        *("--reset-policy", "earliest"),
        *options,
    )


_MAKERS: dict[str, Callable[..., list[str]]] = {
    "kafka-python": _python_member("kafka_python_member"),
    "aiokafka": _python_member("aiokafka_member"),
    "confluent-kafka": _python_member("confluent_member"),
    "java": _java_member,
}
