"""Says each step to both brokers, and compares their answers, those that come later too.

What waits for others (JoinGroup, SyncGroup) is parked if neither broker has answered after a while.
After each further step it is seen which answers have come; in the end it must be the same ones.
What brokers go on with behind an answer (topics become known to groups, expressions are resolved)
is waited for, so that both are at the same point when the next step comes.
"""

import time
from collections.abc import Callable, Iterable, Iterator

from tests.conformance.random_groups.admin_steps import TopicStep
from tests.conformance.random_groups.excuses import Excuses, TieError
from tests.conformance.random_groups.participants import Participants
from tests.conformance.random_groups.side import Sent, Side
from tests.conformance.random_groups.steps import Beat, Step
from tests.conformance.transcript import differences

# Answers take a few milliseconds; when one broker has answered, the other is given its time.
PARKED_AFTER_S, PATIENCE_S = 0.025, 2.0
# Expressions are resolved within this; and offsets of deleted topics are gone.
RESOLVED_S, DELETED_S = 0.03, 0.02
NOT_YET = "no answer yet"
Both = tuple[Sent, Sent]


class DifferenceError(AssertionError):
    """The brokers do not say the same."""


class Duet:
    """A conversation with both. Kafka's side comes first."""

    def __init__(self, kafka: Side, ours: Side) -> None:
        self.sides = kafka, ours
        self.excuses = Excuses(kafka, ours)
        self._parked: list[tuple[Step, Both]] = []
        # Groups whose expressions are resolved from time to time, and those that are not sought.
        self._with_regexes: set[str] = set()
        self._to_be_resolved: set[str] = set()

    def close(self) -> None:
        """Hang up: whoever waited will hear nothing. More may be said, after a restart."""
        self._parked.clear()
        self._to_be_resolved |= self._with_regexes
        for side in self.sides:
            side.close()

    @property
    def participants(self) -> Participants:
        """What clients know; both brokers have told the same, or there was an error."""
        return self.sides[0].participants

    def say(self, step: Step) -> None:
        """Raises DifferenceError, TieError."""
        self.excuses.look_before(step)
        sent = self.sides[0].send(step), self.sides[1].send(step)
        if step.may_park:
            for side in self.sides:
                side.participants.seat(step.group, step.who).parked += 1
            self._parked.append((step, sent))
        else:
            for one in sent:
                one.has_come(PATIENCE_S)
            self._compare(step, sent)
        self._settle(step, sent)
        self._gather()

    # -- answers that come later -------------------------------------------------------------------

    def _gather(self) -> None:
        """Take the answers that have come by now, the same from both."""
        deadline = time.monotonic() + PARKED_AFTER_S
        while self._parked and time.monotonic() < deadline:
            come = list(self._come())
            if come:
                self._take(come)
                deadline = time.monotonic() + PARKED_AFTER_S
            time.sleep(0.002)

    def _come(self) -> Iterator[tuple[Step, Both]]:
        """Parked requests that one broker has answered, and the other has had its time."""
        for step, sent in self._parked:
            if any(one.has_come() for one in sent):
                for one in sent:
                    one.has_come(PATIENCE_S)
                yield step, sent

    def _take(self, come: list[tuple[Step, Both]]) -> None:
        """All are compared before a tie ends the conversation."""
        ties: list[TieError] = []
        for step, sent in come:
            self._parked.remove((step, sent))
            for side in self.sides:
                side.participants.seat(step.group, step.who).parked -= 1
        for step, sent in come:
            try:
                self._compare(step, sent)
            except TieError as tie:
                ties.append(tie)
        if ties:
            raise ties[0]

    def _compare(self, step: Step, sent: Both) -> None:
        if any(one.answer is None for one in sent):
            self.excuses.excuse_silence(step, sent[0].answer, sent[1].answer)
            said = [NOT_YET if one.answer is None else one.answer for one in sent]
            raise DifferenceError(f"{step}\n  Kafka: {said[0]}\n  odradek: {said[1]}")
        kafka, ours = (side.done(step, one) for side, one in zip(self.sides, sent, strict=True))
        self.excuses.look_behind(step, kafka)
        lines = differences(kafka, ours)
        if lines:
            self.excuses.excuse(step, kafka, ours)
            text = "\n".join(f"  {line}" for line in lines)
            raise DifferenceError(f"{step}\n{text}\n  Kafka: {kafka}\n  odradek: {ours}")

    # -- what brokers do in their own time ---------------------------------------------------------

    def _settle(self, step: Step, sent: Both) -> None:
        if isinstance(step, TopicStep):
            self._wait_for_topics(step, (one.answer for one in sent))
            self._to_be_resolved |= self._with_regexes
        if isinstance(step, Beat):
            self._wait_for_regexes(step)

    def _wait_for_topics(self, step: TopicStep, answers: Iterable[object]) -> None:
        for side, answer in zip(self.sides, answers, strict=True):
            changed = step.changed(answer)
            if changed:
                expected = {
                    side.participants.topic_id(name): count for name, count in changed.items()
                }
                expected = {topic_id: count for topic_id, count in expected.items() if count}
                names = tuple(changed)
                _wait(
                    lambda side=side, names=names, expected=expected: (  # type: ignore[misc] # of each turn
                        side.known_partitions(names) == expected
                    )
                )
        time.sleep(DELETED_S)

    def _wait_for_regexes(self, step: Beat) -> None:
        if step.regex:
            self._with_regexes.add(step.group)
        if step.group not in self._with_regexes:
            return
        if step.regex or step.group in self._to_be_resolved:
            self._to_be_resolved.discard(step.group)
            time.sleep(RESOLVED_S)
        kafka, ours = self.sides
        _wait(lambda: kafka.epochs(step.group) == ours.epochs(step.group))


def _wait(holds: Callable[[], bool]) -> None:
    """Until it does; if never, then what is said next will differ."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.005)
