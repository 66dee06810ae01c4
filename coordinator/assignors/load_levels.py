"""Who takes and who gives the next partition, without sorting anew after each.

The members stand in a row, the least loaded first. The takers are a range at its left end, all of
one load, the level: each takes one partition in turn; after the last of them the level is one
higher, and the range grows over those to its right who are at that level already. The givers are a
range at the right end that sinks and grows to the left in the same way.

      load |            #  <- givers' level        load |
           |          ###                               |  takers full: level + 1,
           | ..>      ###                     ->        | ......  ###   range grown
           | ############ <- takers' level              | ###########
           +-------------                               +-------------

Balanced is reached when the levels differ by no more than one, not when the ranges meet. A giver
that has nothing to give is swapped out to the right of the range. Both look at the same row and at
the loads as they are now, changed by the moves in between.

Kafka: UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer.
"""


class LeastLoadedFirst:
    """The takers. `row`: members by load, ascending, at least one; `loads`: by member."""

    __slots__ = ("_advance", "_end", "_loads", "_row", "level")

    def __init__(self, row: list[int], loads: list[int]) -> None:
        self._row = row
        self._loads = loads
        self._end = 0
        self._advance = 0
        self.level = loads[row[0]] - 1  # the first call to `take` forms the first range

    def take(self) -> int:
        """The member that takes the next partition; it is expected to take it."""
        if self._advance >= self._end:
            self._rise()
        taker = self._row[self._advance]
        self._advance += 1
        return taker

    def _rise(self) -> None:
        self.level += 1
        row, loads, end = self._row, self._loads, self._end
        while end < len(row) and loads[row[end]] == self.level:
            end += 1
        self._end = end
        self._advance = 0


class MostLoadedFirst:
    """The givers. `row` and `loads` are those of the takers."""

    __slots__ = ("_advance", "_end", "_loads", "_row", "_start", "level")

    def __init__(self, row: list[int], loads: list[int]) -> None:
        self._row = row
        self._loads = loads
        self._start = len(row)
        self._end = len(row)
        self._advance = len(row) - 1
        self.level = loads[row[-1]] + 1

    def give(self) -> int | None:
        """The member that gives the next partition away; None once all are left out."""
        if self._advance < self._start:
            self._sink()
        if self._advance < 0:
            return None
        giver = self._row[self._advance]
        self._advance -= 1
        return giver

    def _sink(self) -> None:
        row, loads, start = self._row, self._loads, self._start
        if self._end <= start and start > 0:
            # All of the range were left out: the next ones may be several levels below.
            self.level = loads[row[start - 1]]
        else:
            self.level -= 1
        while start > 0 and loads[row[start - 1]] == self.level:
            start -= 1
        self._start = start
        self._advance = self._end - 1

    def exclude(self) -> None:
        """The last giver has nothing to give: do not ask it again."""
        last = self._end - 1
        row, at = self._row, self._advance + 1
        row[at], row[last] = row[last], row[at]
        self._end = last
