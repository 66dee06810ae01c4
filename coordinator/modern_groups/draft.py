"""A draft of a decision: the records to write, and what to do after they are written.

A heartbeat is decided in steps: find the member, update its subscription, compute the targets,
reconcile the member. The draft is passed from step to step and collects records. The steps read the
group and never change it. What changes soft state (state that is not journaled, for example
deadlines) is a callback in `then`. It refers to the group by its id: a draft about a group that
does not exist yet reads an empty group, which is dropped, and replay creates the real one.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from odradek.coordinator.outcome import JournalRecord, Outcome
from odradek.coordinator.timers import Now

R = TypeVar("R")


class DraftResult(Struct, Generic[R], frozen=True):
    """The reply to a request, and the soft state that the group keeps after the write."""

    group_id: str
    reply: R
    topics_checked_offset: int | None = None
    """Metadata offset at which the group's topics were checked; None if they were not."""


class Draft:
    """The decision so far about one group, at one point in time."""

    __slots__ = ("epoch", "group_id", "now", "records", "then", "topics_checked_offset")

    def __init__(self, group_id: str, epoch: int, now: Now) -> None:
        """`epoch`: the group epoch before this decision."""
        self.group_id = group_id
        self.now = now
        self.epoch = epoch
        """The group epoch after this decision."""
        self.records: list[JournalRecord] = []
        self.then: list[Callable[[], None]] = []
        self.topics_checked_offset: int | None = None
        """Metadata offset at which the group's topics were checked; None if they were not."""

    def outcome(self, reply: R) -> Outcome[DraftResult[R]]:
        """Return the outcome of the finished draft, with its reply."""
        result = DraftResult(self.group_id, reply, self.topics_checked_offset)
        return Outcome(reply=result, records=tuple(self.records), then=tuple(self.then))
