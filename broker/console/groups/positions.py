"""The logs in which groups have committed offsets, kept while somebody watches all lags.

Most of the time for the lags of 15,000 groups would be to find the log of each committed offset. So
a group's logs and offsets are kept until it commits again. The logs' ends are read for each list.

Everything is dropped KEPT_S after the last list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from odradek.broker.turns.slices import SliceRunner, Slices
from odradek.coordinator.any_group.group_offsets import GroupOffsets
from odradek.coordinator.runtime.steps import free
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.log import PartitionLog

KEPT_S = 10.0
# Groups with more partitions are not kept: what is done for one group is done in one turn.
MAX_PARTITIONS = 1000


class Position(Struct, gc=False):
    """The partitions of a group: for each its log, and the committed offset.

    `changes` and `last_record` are those of `offsets` when it was made.
    """

    offsets: GroupOffsets
    changes: int
    last_record: int
    places: tuple[tuple[PartitionLog, int], ...]

    def is_of(self, offsets: GroupOffsets) -> bool:
        """Whether the group has committed nothing since, nor lost any offset."""
        return (
            self.offsets is offsets
            and self.last_record == offsets.last_record
            and self.changes == offsets.changes
        )


def find_position(
    offsets: GroupOffsets, logs_of: Callable[[str], Mapping[int, PartitionLog]]
) -> Position | None:
    """Find the logs of a group's offsets; None if one has no log, or there are too many.

    `logs_of` returns the logs of a topic by partition.
    """
    places: list[tuple[PartitionLog, int]] = []
    for topic, partitions in offsets.committed.items():
        if len(places) + len(partitions) > MAX_PARTITIONS:
            return None
        logs = logs_of(topic)
        for partition, committed in partitions.items():
            log = logs.get(partition)
            if log is None:
                return None
            # The first comparison is a quick one that mostly holds.
            if committed.topic_id != log.topic_id and not committed.is_of(
                log.topic_id or ZERO_UUID
            ):
                return None
            places.append((log, committed.offset))
    return Position(offsets, offsets.changes, offsets.last_record, tuple(places))


class Positions:
    """What is kept, by group id."""

    def __init__(self, loop: asyncio.AbstractEventLoop, slices: SliceRunner) -> None:
        self._loop = loop
        self._slices = slices
        self._kept: dict[str, Position] = {}
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Set no timer any longer."""
        if self._timer is not None:
            self._timer.cancel()

    def use(self, group_count: int) -> dict[str, Position]:
        """What is kept, to read and to add to. `group_count` is the number of groups now."""
        if len(self._kept) > 2 * group_count:  # most of them were deleted
            self._drop()
        self.close()
        self._timer = self._loop.call_later(KEPT_S, self._drop)
        return self._kept

    def _drop(self) -> None:
        dropped, self._kept = self._kept, {}
        self._slices.run(partial(_free, dropped))


async def _free(kept: dict[str, Position], slices: Slices) -> None:
    free(slices.step, kept)
