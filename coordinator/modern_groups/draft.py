"""A draft of a decision: the records to write, and what to do after they are written.

A heartbeat is decided in steps: find the member, update its subscription, compute the targets,
reconcile the member. The draft is passed from step to step and collects records. The steps read the
group and never change it. What changes soft state (state that is not journaled, for example
deadlines), and what is logged, is a callback in `then`. It refers to the group by its id: a draft
about a group that does not exist yet reads an empty group, which is dropped, and replay creates the
real one.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from msgspec import Struct

from odradek.coordinator.any_group.group import Group
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Now

from .group import EpochGroup

G = TypeVar("G", bound=EpochGroup[Any, Any])
R = TypeVar("R")

logger = logging.getLogger("odradek.groups")


class DraftResult(Struct, Generic[R], frozen=True):
    """The reply to a request, and the soft state that the group keeps after the write."""

    group_id: str
    reply: R
    topics_checked_offset: int | None = None
    """Metadata offset at which the group's topics were checked; None if they were not."""
    new_group: Group | None = None
    """What replaces the group, with its soft state; None if that is not planned."""


class Draft(Generic[G]):
    """The decision so far about one group, at one point in time."""

    __slots__ = (
        "_epoch_record",
        "epoch",
        "group",
        "group_id",
        "new_group",
        "now",
        "records",
        "step",
        "then",
        "topics_checked_offset",
    )

    def __init__(
        self,
        group: G,
        now: Now,
        epoch_record: Callable[[str, int, int], JournalRecord],
        step: Step = no_step,
    ) -> None:
        """`epoch_record` makes the record of a group id, its epoch, and its metadata hash.

        `step`: what a decision that takes long calls again and again, see group_decisions.py.
        """
        self.group = group
        self.group_id = group.group_id
        self.now = now
        self.step = step
        self.epoch = group.epoch
        """The group epoch after this decision."""
        self.records: list[JournalRecord] = []
        self.then: list[Callable[[], None]] = []
        self.topics_checked_offset: int | None = None
        """Metadata offset at which the group's topics were checked; None if they were not."""
        self.new_group: Group | None = None
        """What replaces the group, with its soft state; None if that is not planned."""
        self._epoch_record = epoch_record

    def bump_epoch(self, metadata_hash: int, reason: str) -> None:
        """Raise the group epoch by one, which makes the targets out of date."""
        self.epoch += 1
        self.records.append(self._epoch_record(self.group_id, self.epoch, metadata_hash))
        self.log(logging.INFO, "group %s: epoch %d, %s", self.group_id, self.epoch, reason)

    def log(self, level: int, text: str, *args: object) -> None:
        """Log the line when the records are written. Until then the decision may be made again."""
        self.then.append(partial(logger.log, level, text, *args))

    def outcome(self, reply: R) -> Outcome[DraftResult[R]]:
        """Return the outcome of the finished draft, with its reply."""
        result = DraftResult(self.group_id, reply, self.topics_checked_offset, self.new_group)
        return Outcome(reply=result, records=tuple(self.records), then=tuple(self.then))
