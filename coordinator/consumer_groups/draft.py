"""A draft of a decision about a consumer group."""

import logging

from odradek.coordinator.modern_groups.draft import Draft
from odradek.coordinator.timers import Now

from .group import ConsumerGroup
from .records import epoch_record

logger = logging.getLogger("odradek.groups")


class ConsumerDraft(Draft):
    """The decision so far about one consumer group, at one point in time."""

    __slots__ = ("group", "needs_new_target")

    def __init__(self, group: ConsumerGroup, now: Now) -> None:
        super().__init__(group.group_id, group.epoch, now)
        self.group = group
        self.needs_new_target = False
        """Whether the group was converted during a rebalance, so its targets must be recomputed."""

    def bump_epoch(self, metadata_hash: int, reason: str) -> None:
        """Raise the group epoch by one, which makes the targets out of date."""
        self.epoch += 1
        self.records.append(epoch_record(self.group_id, self.epoch, metadata_hash))
        logger.info("group %s: epoch %d, %s", self.group_id, self.epoch, reason)
