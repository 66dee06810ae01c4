"""The partitions that members of a group own, each with its owner's member epoch.

A member owns a partition while it is assigned to the member, and while its revocation is pending.
No other member may get it in that time, so reconciliation asks here whether a partition is free.

The epoch identifies the owner. A change of a member removes only entries with that member's epoch:
replay may see the record of the next owner first, if the log cleaner has removed the record in
which the old owner gave the partition up.

Kafka: ConsumerGroup.currentPartitionEpoch.
"""

import logging

from odradek.coordinator.modern_groups.partition_sets import each_partition
from odradek.coordinator.runtime.copies import Copyable
from odradek.coordinator.runtime.steps import Step, no_step

from .member import ConsumerMember, OwnedPartitions

logger = logging.getLogger("odradek.groups")

FREE = -1


class Ownership(Copyable):
    """Owner epochs of one group's partitions."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._epochs: dict[tuple[bytes, int], int] = {}  # by topic id and partition

    def epoch(self, topic_id: bytes, partition: int) -> int:
        """Return the member epoch of the partition's owner; FREE (-1) if it has none.

        -2 is the epoch of a static member that left temporarily and still owns the partition.
        """
        return self._epochs.get((topic_id, partition), FREE)

    def replace_member(
        self, old: ConsumerMember | None, new: ConsumerMember | None, step: Step = no_step
    ) -> None:
        """Add (`old` is None), change, or remove (`new` is None) a member."""
        if old is not None and new is not None and _has_same_ownership(old, new):
            return
        if old is not None:
            self._remove(old.assigned, old.member_epoch, step)
            self._remove(old.pending_revocation, old.member_epoch, step)
        if new is not None:
            self._add(new.assigned, new.member_epoch, step)
            self._add(new.pending_revocation, new.member_epoch, step)

    def _remove(self, owned: OwnedPartitions, epoch: int, step: Step) -> None:
        for place in each_partition(owned, step):
            if self._epochs.get(place) == epoch:
                del self._epochs[place]

    def _add(self, owned: OwnedPartitions, epoch: int, step: Step) -> None:
        for place in each_partition(owned, step):
            present = self._epochs.get(place)
            if present is not None and present >= epoch:
                # Kafka throws an exception here. The record is in the log already, so it is
                # applied. The next reconciliation of either member resolves the conflict.
                topic_id, partition = place
                logger.error(
                    "group %s: partition %d of topic %s has two owners, at epochs %d and %d",
                    self._group_id, partition, topic_id.hex(), present, epoch,
                )  # fmt: skip
                continue
            self._epochs[place] = epoch


def _has_same_ownership(old: ConsumerMember, new: ConsumerMember) -> bool:
    return (
        old.member_epoch == new.member_epoch
        and old.assigned is new.assigned
        and old.pending_revocation is new.pending_revocation
    )
