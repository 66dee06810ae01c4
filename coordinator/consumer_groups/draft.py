"""A decision in the making: the records it will write, and what is left to do once they are.

A heartbeat is decided in steps (who speaks, what it subscribes to, what everybody shall have, what
it has by now), and each adds to what the step before has found out. A Draft carries that from step
to step. It reads the group and never changes it. What is soft (deadlines, a resolution to begin)
waits in `then`, which names the group: a draft about one that does not exist yet reads an empty
group, which is thrown away, and replay makes another.
"""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from odradek.coordinator.outcome import JournalRecord, Outcome
from odradek.coordinator.timers import Now

from .group import ConsumerGroup
from .records import epoch_record

logger = logging.getLogger("odradek.groups")

R = TypeVar("R")


class Decided(Struct, Generic[R], frozen=True):
    """What to answer about a group, and what the group is to remember."""

    group_id: str
    answer: R
    topics_seen_at: int | None = None
    """When the group has looked at its topics; None: it has not."""


class Draft:
    """What has been decided so far about one group, at one moment."""

    __slots__ = (
        "epoch",
        "group",
        "group_id",
        "is_stale",
        "now",
        "records",
        "then",
        "topics_seen_at",
    )

    def __init__(self, group: ConsumerGroup, now: Now) -> None:
        self.group = group
        self.group_id = group.group_id
        self.now = now
        self.epoch = group.epoch
        """The group's epoch, as it will be."""
        self.records: list[JournalRecord] = []
        self.then: list[Callable[[], None]] = []
        self.is_stale = False
        """The group was converted in the midst of a rebalance: its targets are not to be kept."""
        self.topics_seen_at: int | None = None
        """Set when its subscription has been compared with the topics that there are."""

    def raise_epoch(self, metadata_hash: int, why: str) -> None:
        """Something has changed that the targets depend on: they are out of date."""
        self.epoch += 1
        self.records.append(epoch_record(self.group_id, self.epoch, metadata_hash))
        logger.info("group %s: epoch %d, %s", self.group_id, self.epoch, why)

    def outcome(self, answer: R) -> Outcome[Decided[R]]:
        """The decision, made."""
        decided = Decided(self.group_id, answer, self.topics_seen_at)
        return Outcome(reply=decided, records=tuple(self.records), then=tuple(self.then))
