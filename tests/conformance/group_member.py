"""A member of a group: a process that can be killed, and what it has said so far."""

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 180.0
ROOT = Path(__file__).parents[2]

Partition = tuple[str, int]  # topic, partition
Place = tuple[str, int, int]  # topic, partition, offset


class Member:
    """A process of a group; its events are VerifiableConsumer's, `timestamp` is in ms."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self.noise: list[str] = []
        self.killed_at_ms: float | None = None
        self._may_end = False
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

    # -- its life ----------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL: it leaves nothing, and its group must find out."""
        self._may_end = True
        self._process.kill()
        self.wait()
        self.killed_at_ms = time.time() * 1000

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
        self._may_end = True
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

    @property
    def fell(self) -> bool:
        """Whether the process ended by itself."""
        return not self._may_end and not self.is_running

    # -- what it said ------------------------------------------------------------------------------

    def heard(self, name: str) -> list[dict[str, Any]]:
        """Its events of one kind."""
        return [event for event in list(self.events) if event["name"] == name]

    @property
    def partitions(self) -> set[Partition]:
        """What it owns, as far as it has said."""
        owned: set[Partition] = set()
        for event in list(self.events):
            if event["name"] == "partitions_assigned":
                owned |= partitions_of(event)
            elif event["name"] == "partitions_revoked":
                owned -= partitions_of(event)
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
                moved = partitions_of(event)
                pending = {place for place in pending if place[:2] not in moved}
            elif event["name"] == "offsets_committed" and event["success"]:
                ends = commits_of(event)
                done = {place for place in pending if place[2] < ends.get(place[:2], 0)}
                settled.update(done)
                pending -= done
        return settled

    def story(self) -> str:
        """What to print when something is wrong with it."""
        last = "\n".join(json.dumps(event) for event in self.events[-15:])
        return f"{self.name}: owns {self.partitions}\n{last}\n{''.join(self.noise[-30:])}"


def partitions_of(event: dict[str, Any]) -> set[Partition]:
    """The partitions of an event that gives or takes some."""
    return {(place["topic"], place["partition"]) for place in event["partitions"]}


def commits_of(event: dict[str, Any]) -> dict[Partition, int]:
    """The offsets of a commit."""
    return {(each["topic"], each["partition"]): each["offset"] for each in event["offsets"]}


def batches_of(event: dict[str, Any]) -> list[tuple[Partition, int, int]]:
    """What a poll gave: partition, first offset, last offset; there is no gap between the two."""
    found = []
    for summary in event["partitions"]:
        first, last = summary["minOffset"], summary["maxOffset"]
        assert summary["count"] == last - first + 1, f"a gap in {summary}"
        found.append(((summary["topic"], summary["partition"]), first, last))
    return found


def _places_of(event: dict[str, Any]) -> list[Place]:
    return [
        (topic, partition, offset)
        for (topic, partition), first, last in batches_of(event)
        for offset in range(first, last + 1)
    ]
