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


class Settled:
    """The records that are done, and those that may be."""

    def __init__(self, lock_s: float) -> None:
        self.life = 0  # of the broker: raised while it does not run
        self.faults: list[str] = []
        self.deliveries: Counter[int] = Counter()  # by delivery count
        self.errors: Counter[int] = Counter()  # of partitions in answers, by error code
        self.refused: Counter[int] = Counter()  # acknowledgements, by error code
        self._lock_s = lock_s
        self._mutex = threading.Lock()
        self._done: dict[Place, tuple[int, int]] = {}
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
            if done is not None and (life, count) > done:
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
        """Others may get the records from now on. Returns until when their locks lasted."""
        until_s = float("inf")
        with self._mutex:
            for place, last in self._of_newest(life, counts):
                until_s = min(until_s, last.locked_until_s)
                self._newest[place] = last._replace(locked_until_s=0.0)
        return until_s

    def _of_newest(self, life: int, counts: Counts) -> Iterator[tuple[Place, Delivery]]:
        for place, count in counts:
            last = self._newest[place]
            if (last.life, last.delivery_count) == (life, count):
                yield place, last

    def settling(self, places: Iterable[Place]) -> None:
        """A member is about to accept or reject records."""
        with self._mutex:
            self._unanswered.update(places)

    def settled(self, life: int, counts: Counts, *, is_done: bool) -> None:
        """The broker has answered; not `is_done`: it has refused."""
        with self._mutex:
            for place, count in counts:
                self._unanswered[place] -= 1
                if is_done and place in self._done:
                    self.blame(f"{place} is done twice: {self._done[place]}, {(life, count)}")
                if is_done:
                    self._done[place] = life, count

    def missing(self, ends: Iterable[int]) -> list[Place]:
        """The records that nobody has settled, of partitions that end there."""
        maybe = +self._unanswered
        return [
            (partition, offset)
            for partition, end in enumerate(ends)
            for offset in range(end)
            if (partition, offset) not in self._done and (partition, offset) not in maybe
        ]
