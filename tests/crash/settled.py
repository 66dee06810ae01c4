"""What members of a share group have been told of each record, and what contradicts it.

Each delivery has a life of the broker and a delivery count, which only rises in a life. So a
delivery that a slow member reports late is known to be older than what was reported before.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

Place = tuple[int, int]  # partition and offset
Counts = Iterable[tuple[Place, int]]  # records, and at which delivery of each


class Delivery(NamedTuple):
    """The newest delivery of a record, by life and count.

    `locked_until_s`: the lock does not end before, unless its member gives it up.
    """

    life: int
    delivery_count: int
    locked_until_s: float


class Done(NamedTuple):
    """The delivery whose acknowledgement the broker has taken; `is_late`: or that of another one.

    The broker takes an acknowledgement of records that lie before the group's start offset, and
    does nothing. Its member may be late: the lock has ended, and another has settled the record.
    """

    life: int
    delivery_count: int
    is_late: bool


class Settled:
    """The records that are done, and those that may be."""

    def __init__(self, lock_s: float) -> None:
        self.life = 0  # of the broker: raised while it does not run
        self.faults: list[str] = []
        self.deliveries: Counter[int] = Counter()  # by delivery count
        self.errors: Counter[int] = Counter()  # of partitions in answers, by error code
        self.refused: Counter[int] = Counter()  # acknowledgements, by error code
        self.rejected: set[Place] = set()  # the broker has confirmed that, in time
        self._lock_s = lock_s
        self._mutex = threading.Lock()
        self._done: dict[Place, Done] = {}
        self._unanswered: Counter[Place] = Counter()
        self._newest: dict[Place, Delivery] = {}

    def __len__(self) -> int:
        return len(self._done)

    def blame(self, fault: str) -> None:
        """Note what must not be."""
        self.faults.append(fault)

    def delivered(self, life: int, place: Place, count: int, asked_s: float) -> None:
        """A member got a record for the `count`th time; it asked for it at `asked_s`."""
        with self._mutex:
            self.deliveries[count] += 1
            done = self._done.get(place)
            if done is not None and (life, count) > (done.life, done.delivery_count):
                self.blame(f"{place} is done at {done} and comes again at {(life, count)}")
            last = self._newest.get(place)
            if last is not None and (life, count) <= (last.life, last.delivery_count):
                return
            if last is not None and last.life == life and time.monotonic() < last.locked_until_s:
                self.blame(f"{place} is locked by delivery {last} and comes again, count {count}")
            self._newest[place] = Delivery(life, count, asked_s + self._lock_s)

    def renewed(self, life: int, counts: Counts, asked_s: float) -> None:
        """The member of a delivery has renewed its locks."""
        with self._mutex:
            for place, _ in self._of_newest(life, counts):
                until_s = asked_s + self._lock_s
                self._newest[place] = self._newest[place]._replace(locked_until_s=until_s)

    def give_up(self, life: int, counts: Counts) -> float:
        """Others may get the records from now on. Returns until when all their locks last."""
        counts = list(counts)
        with self._mutex:
            newest = list(self._of_newest(life, counts))
            for place, last in newest:
                self._newest[place] = last._replace(locked_until_s=0.0)
        if len(newest) < len(counts):
            return 0.0
        return min(last.locked_until_s for _, last in newest)

    def _of_newest(self, life: int, counts: Counts) -> Iterator[tuple[Place, Delivery]]:
        for place, count in counts:
            last = self._newest[place]
            if (last.life, last.delivery_count) == (life, count):
                yield place, last

    def settling(self, places: Iterable[Place]) -> None:
        """A member is about to accept or reject records."""
        with self._mutex:
            self._unanswered.update(places)

    def settled(self, life: int, counts: Counts, *, is_done: bool, is_late: bool) -> None:
        """The broker has answered; it has refused, or the locks may have ended meanwhile."""
        with self._mutex:
            for place, count in counts:
                self._unanswered[place] -= 1
                if not is_done:
                    continue
                done = self._done.get(place)
                if done is None or done.is_late:
                    self._done[place] = Done(life, count, is_late)
                elif not is_late:
                    self.blame(f"{place} is done twice: {done}, {(life, count)}")

    def missing(self, ends: Iterable[int]) -> list[Place]:
        """The records that nobody has settled, of partitions that end there."""
        maybe = +self._unanswered
        return [
            (partition, offset)
            for partition, end in enumerate(ends)
            for offset in range(end)
            if (partition, offset) not in self._done and (partition, offset) not in maybe
        ]
