"""Whole conversations, drawn or by a script, in two acts; one that failed is made short.

Between the acts both brokers are started anew. Conversations that are drawn have their first acts
one after the other, and share the restart.
"""

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.conformance.conversation import Conversation
from tests.conformance.random_groups.chooser import Chooser
from tests.conformance.random_groups.duet import DifferenceError, Duet
from tests.conformance.random_groups.excuses import TieError, forget_leader
from tests.conformance.random_groups.offsets_log import OffsetsLog
from tests.conformance.random_groups.participants import Participants
from tests.conformance.random_groups.side import Side
from tests.conformance.random_groups.steps import Restart, Step
from tests.conformance.transcript import differences
from tests.support.broker_process import BrokerProcess

# Expressions are resolved again after ten seconds: an act is over before, a restart is not.
LONGEST_ACT_S, RESOLVED_AGAIN_S = 6.0, 10.5
# The brokers do some things in their own time: what does not come up again was that.
TIMES_TO_DIFFER = 3
ACT_STEPS = (10, 50)
# Before the logs are compared, and how long they may differ on a slow machine.
SETTLING_S, SETTLED_S = 0.05, 2.0


@dataclass(slots=True)
class Played:
    """A conversation, as far as it has come: what was said, and how it differed, if it did."""

    chooser: Chooser
    duet: Duet
    logs_since: tuple[int, int]
    steps: list[Step] = field(default_factory=list)
    difference: str | None = None
    tie: str | None = None

    @property
    def is_over(self) -> bool:
        return bool(self.difference or self.tie)


class ComparedBrokers:
    """Where conversations take place: the reference, and the broker that is held to it."""

    def __init__(self, kafka: BrokerProcess, ours: BrokerProcess) -> None:
        """Both are ready."""
        self.brokers = kafka, ours
        self._logs = tuple(OffsetsLog(broker.data) for broker in self.brokers)
        self._tags = (f"t{number:05}" for number in itertools.count())

    # -- how they come about -----------------------------------------------------------------------

    def play_at_random(self, seeds: Sequence[int]) -> list[Played]:
        """Conversations at random, one for each seed."""
        talks = [(self._begin(Chooser(random)), random) for random in map(Random, seeds)]
        for played, random in talks:
            first = played.chooser.first()
            self._act(played, itertools.chain(first, drawn(played, random)))
        self._restart(Restart())
        for played, random in talks:
            if not played.is_over:
                played.steps.append(Restart())
                self._act(played, drawn(played, random))
        return [played for played, _ in talks]

    def play(self, chooser: Chooser, script: Sequence[Step]) -> Played:
        """The same steps once more."""
        played = self._begin(chooser)
        self._act(played, script)
        return played

    def differs_again(self, played: Played) -> bool:
        """Whether it differs whenever it is held."""
        return all(
            self.play(played.chooser, played.steps).difference for _ in range(TIMES_TO_DIFFER - 1)
        )

    def shortened(self, played: Played, within_s: float) -> Played:
        """The conversation without those steps that do not matter, as far as there is time."""
        found = played
        size = max(1, len(played.steps) // 2)
        end = time.monotonic() + within_s
        while size:
            start = len(found.steps) - size
            while start > -size and time.monotonic() < end:
                fewer = found.steps[: max(0, start)] + found.steps[start + size :]
                tried = self.play(played.chooser, fewer)
                if tried.difference and self.differs_again(tried):
                    found = tried
                    start = min(start, len(found.steps))
                start -= size
            size //= 2
        return found

    # -- how they go -------------------------------------------------------------------------------

    def _begin(self, chooser: Chooser) -> Played:
        tag = next(self._tags)
        kafka, ours = (
            Side(broker.port, Participants(tag, chooser.groups, chooser.seats))
            for broker in self.brokers
        )
        since = self._logs[0].end(), self._logs[1].end()
        return Played(chooser, Duet(kafka, ours), since)

    def _act(self, played: Played, steps: Iterable[Step], *, compares: bool = True) -> None:
        """Say it, and compare what stands in the logs then."""
        end = time.monotonic() + LONGEST_ACT_S
        try:
            for step in steps:
                played.steps.append(step)
                if isinstance(step, Restart):
                    played.duet.close()
                    self._restart(step)
                    self._resume(played)
                    end = time.monotonic() + LONGEST_ACT_S
                else:
                    played.duet.say(step)
                if time.monotonic() > end:
                    break
            if compares:
                self._compare_logs(played)
        except DifferenceError as difference:
            played.difference = str(difference)
        except TieError as tie:
            played.tie = str(tie)
        finally:
            played.duet.close()

    def _restart(self, step: Restart) -> None:
        over = time.monotonic() + RESOLVED_AGAIN_S
        start_anew(self.brokers, step)
        time.sleep(max(0.0, over - time.monotonic()))

    def _resume(self, played: Played) -> None:
        """Go on after a restart."""

    def _left_in_logs(self, played: Played) -> tuple[dict[str, Any], dict[str, Any]]:
        kafka, ours = (
            log.left(start, side.participants, side.plain)
            for log, start, side in zip(
                self._logs, played.logs_since, played.duet.sides, strict=True
            )
        )
        return kafka, ours

    def _compare_logs(self, played: Played) -> None:
        deadline = time.monotonic() + SETTLED_S
        while True:
            time.sleep(SETTLING_S)
            lines = list(_log_differences(*self._left_in_logs(played)))
            if not lines or time.monotonic() > deadline:
                break
        if lines:
            played.duet.excuses.excuse_assignment()
            raise DifferenceError("\n  ".join(["in the log:", *lines]))


def start_anew(brokers: Iterable[BrokerProcess], step: Restart) -> None:
    """End both brokers, start them, and wait until their groups are loaded."""
    for broker in brokers:
        if step.kills:
            broker.kill()
        else:
            broker.terminate()
    for broker in brokers:
        broker.start_without_waiting()
    for broker in brokers:
        wait_for_groups(broker)


def wait_for_groups(broker: BrokerProcess) -> None:
    """Until it is ready, and its groups are loaded."""
    broker.wait_until_ready()
    talk = Conversation(broker.port, {})
    talk.wait_for_coordinator("anybody")
    talk.close()


def drawn(played: Played, random: Random) -> Iterator[Step]:
    for _ in range(random.randint(*ACT_STEPS)):
        yield played.chooser.next(played.duet.participants)


def _log_differences(kafka: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    for key in kafka.keys() | ours.keys():
        if key not in ours:
            yield f"{key}: only Kafka has {kafka[key]}"
        elif key not in kafka:
            yield f"{key}: only odradek has {ours[key]}"
        else:
            forget_leader(kafka[key], ours[key])
            yield from differences(kafka[key], ours[key], f"{key}: ")


def script_of(steps: Iterable[Step]) -> str:
    """The steps as one would write them down."""
    return "\n".join(f"    {step}," for step in steps)


__all__ = ["ComparedBrokers", "Played", "drawn", "script_of", "start_anew", "wait_for_groups"]
