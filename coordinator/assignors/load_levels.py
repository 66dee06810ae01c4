"""Finds the next member to take or give a partition, without sorting again after each move.

The partitions are those of one topic, the members its subscribers, each known by a number. The load
of a member counts its partitions of all topics.

The members are in a row, the least loaded first. The takers are a range at the left end whose
members all have the same load, the level. Each takes one partition in turn. After the last of them
the level is one higher, and the range grows to the right over the members already at that level.
The givers are a range at the right end, whose level falls and which grows to the left in the same
way.

      load |            #  <- givers' level        load |
           |          ###                               |  takers full: level + 1,
           | ..>      ###                     ->        | ......  ###   range grown
           | ############ <- takers' level              | ###########
           +-------------                               +-------------

The loads are balanced when the levels differ by at most one, not when the ranges meet. A giver
without partitions of the topic is swapped to the right, out of the range (`exclude`). Both classes
read the same row and the current loads, which the caller updates with each move.

Kafka: UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer.
"""


class LeastLoadedFirst:
    """The takers.

    `row` has the members by ascending load, and at least one. `loads` has the load of each member.
    """

    __slots__ = ("_end", "_loads", "_next", "_row", "level")

    def __init__(self, row: list[int], loads: list[int]) -> None:
        self._row = row
        self._loads = loads
        self._end = 0
        self._next = 0
        self.level = loads[row[0]] - 1  # the first call to `take` forms the first range

    def take(self) -> int:
        """Return the member that takes the next partition; the caller must assign it."""
        if self._next >= self._end:
            self._rise()
        taker = self._row[self._next]
        self._next += 1
        return taker

    def _rise(self) -> None:
        self.level += 1
        row, loads, end = self._row, self._loads, self._end
        while end < len(row) and loads[row[end]] == self.level:
            end += 1
        self._end = end
        self._next = 0


class MostLoadedFirst:
    """The givers. `row` and `loads` are the same objects as for the takers."""

    __slots__ = ("_end", "_loads", "_next", "_row", "_start", "level")

    def __init__(self, row: list[int], loads: list[int]) -> None:
        self._row = row
        self._loads = loads
        self._start = len(row)
        self._end = len(row)
        self._next = len(row) - 1
        self.level = loads[row[-1]] + 1  # the first call to `give` forms the first range

    def give(self) -> int | None:
        """Return the member that gives the next partition away; None once all are excluded."""
        if self._next < self._start:
            self._sink()
        if self._next < 0:
            return None
        giver = self._row[self._next]
        self._next -= 1
        return giver

    def _sink(self) -> None:
        row, loads, start = self._row, self._loads, self._start
        if self._end <= start and start > 0:
            # The whole range was excluded: the next members may be several levels below.
            self.level = loads[row[start - 1]]
        else:
            self.level -= 1
        while start > 0 and loads[row[start - 1]] == self.level:
            start -= 1
        self._start = start
        self._next = self._end - 1

    def exclude(self) -> None:
        """Remove the last giver, which has no partition to give."""
        last = self._end - 1
        row, at = self._row, self._next + 1
        row[at], row[last] = row[last], row[at]
        self._end = last
