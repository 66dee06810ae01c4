"""Who has what: the epoch of each partition that a member of the group owns.

A partition belongs to a member while it is assigned to it, and until it has given it up: what is
pending revocation counts. Nobody else may be given it meanwhile, so the member that shall have it
next asks here whether it is free. The epoch is the owner's member epoch, and says whose entry it
is: a member takes away only what still bears its own epoch, because its successor's record may be
met before the record in which it gave the partition up (the cleaner may have taken that one).

Kafka: ConsumerGroup.currentPartitionEpoch.
"""

import logging

from .member import ConsumerMember, OwnedPartitions

logger = logging.getLogger("odradek.groups")

FREE = -1


class Ownership:
    """The partitions that members of one group own, each with its owner's epoch."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._epochs: dict[bytes, dict[int, int]] = {}

    def epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that owns the partition; FREE (-1) where nobody does.

        -2 is an epoch too: that of a static member which is away for a while.
        """
        return self._epochs.get(topic_id, {}).get(partition, FREE)

    def member_became(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """A member came (`old` is None), changed, or went (`new` is None)."""
        if old is not None and new is not None and _owns_the_same(old, new):
            return
        if old is not None:
            self._remove(old.assigned, old.member_epoch)
            self._remove(old.pending_revocation, old.member_epoch)
        if new is not None:
            self._add(new.assigned, new.member_epoch)
            self._add(new.pending_revocation, new.member_epoch)

    def _remove(self, owned: OwnedPartitions, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            epochs = self._epochs.get(topic_id)
            if epochs is None:
                continue
            for partition in partitions:
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                del self._epochs[topic_id]

    def _add(self, owned: OwnedPartitions, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            epochs = self._epochs.setdefault(topic_id, {})
            for partition in partitions:
                present = epochs.get(partition)
                if present is not None and present >= epoch:
                    # Kafka refuses to go on. What is in the log has happened; the next
                    # reconciliation of either member will take the partition from one of them.
                    logger.error(
                        "group %s: partition %d of topic %s has two owners, at epochs %d and %d",
                        self._group_id, partition, topic_id.hex(), present, epoch,
                    )  # fmt: skip
                    continue
                epochs[partition] = epoch


def _owns_the_same(old: ConsumerMember, new: ConsumerMember) -> bool:
    return (
        old.member_epoch == new.member_epoch
        and old.assigned is new.assigned
        and old.pending_revocation is new.pending_revocation
    )
