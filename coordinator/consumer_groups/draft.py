"""A draft of a decision about a consumer group."""

from odradek.coordinator.modern_groups.draft import Draft
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Now

from .group import ConsumerGroup
from .records import epoch_record


class ConsumerDraft(Draft[ConsumerGroup]):
    """The decision so far about one consumer group, at one point in time.

    `step`: see Draft.
    """

    __slots__ = ("needs_new_target",)

    def __init__(self, group: ConsumerGroup, now: Now, step: Step = no_step) -> None:
        super().__init__(group, now, epoch_record, step)
        self.needs_new_target = False
        """Whether new targets must be computed, because the group was converted from a classic one
        whose assignment cannot stay (upgrade.py)."""
