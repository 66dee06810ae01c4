"""What becomes of a group when one of its members has changed: its epoch, the targets, the member.

    change    write what the member asks for, if that is news
    look      compare what the group is subscribed to with the topics that there are; where that, or
              a subscription, has changed, the group's epoch rises
    assign    make targets for a group whose epoch has risen, but not more often than the
              assignment interval says: until then the old ones count
    go on     bring the member a step inputs its target

Heartbeats and joins of classic members go through the same steps. Kafka: the methods of
GroupMetadataManager that consumerGroupHeartbeat and classicGroupJoinToConsumerGroup share.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from odradek.coordinator.assignors import Assignor, AssignorError
from odradek.coordinator.assignors.assignment import NOTHING, Assignment
from odradek.coordinator.timers import Now

from .deadlines import MemberDeadlines, MemberKey
from .draft import Draft
from .group import ConsumerGroup
from .group_configs import ConsumerGroupConfigs
from .member import ConsumerMember, MemberState
from .reconciliation import ReconcileInputs, reconcile
from .records import (
    current_assignment_record,
    subscription_metadata_tombstone,
    subscription_record,
)
from .target_assignment import compute_targets
from .topics_view import ClusterTopics

logger = logging.getLogger("odradek.groups")


class Target(NamedTuple):
    """What a member shall have, and for which epoch of the group that was made."""

    epoch: int
    assignment: Assignment


def write_subscription(draft: Draft, member: ConsumerMember, updated: ConsumerMember) -> bool:
    """Write what a member asks for, if that is news; whether it names other topics."""
    if updated is member or updated == member:
        return False
    draft.records.append(subscription_record(draft.group_id, updated))
    return updated.subscribed_topics != member.subscribed_topics


class Rebalance:
    """The steps, for all groups."""

    def __init__(
        self,
        *,
        topics: ClusterTopics,
        configs: ConsumerGroupConfigs,
        assignors: Mapping[str, Assignor],
        deadlines: MemberDeadlines,
    ) -> None:
        """`assignors`: by name, the default one first."""
        self._topics = topics
        self._configs = configs
        self._assignors = assignors
        self._deadlines = deadlines

    # -- the epoch ---------------------------------------------------------------------------------

    def bump_epoch(
        self, draft: Draft, member: ConsumerMember, updated: ConsumerMember, *, changed: bool
    ) -> None:
        """Raise the epoch if a subscription has `changed`, or the topics have."""
        group = draft.group
        changed = changed or draft.needs_new_target
        if not changed and self.has_seen_topics(group):
            return
        draft.topics_seen_offset = self._topics.last_change_offset
        before = group.subscriptions.topics
        if not changed and not self._topics.may_have_changed(before, group.topics_seen_offset):
            return
        topics = group.subscriptions.topics_if(member, updated)
        metadata_hash = self._topics.group_hash(topics)
        if changed or metadata_hash != group.metadata_hash:
            why = f"{updated.member_id} subscribes anew" if changed else "its topics have changed"
            draft.bump_epoch(metadata_hash, why)
        if group.has_partition_metadata:
            draft.records.append(subscription_metadata_tombstone(group.group_id))

    def has_seen_topics(self, group: ConsumerGroup) -> bool:
        """Whether the group has looked at its topics since any has changed."""
        return group.topics_seen_offset == self._topics.last_change_offset

    # -- the targets -------------------------------------------------------------------------------

    def update_target(
        self, draft: Draft, member: ConsumerMember, updated: ConsumerMember
    ) -> Target:
        """The member's target: of new ones, if the group's epoch has risen and it is time.

        Raises ApiError UNKNOWN_SERVER_ERROR when the assignor fails.
        """
        group = draft.group
        if not self.is_due(group, draft.epoch, draft.now):
            target = group.target(updated.member_id, updated.instance_id)
            return Target(group.assignment_epoch, target)
        name = group.preferred_assignor_if(member, updated)
        try:
            made = compute_targets(
                group,
                updated,
                self._assignor(name),
                self._topics,
                epoch=draft.epoch,
                # Kafka asks the group as it was, if nothing has changed. Somebody may have left
                # since the last targets; a newcomer that subscribes to nothing must count.
                is_homogeneous=group.is_homogeneous_if(member, updated),
                now_ms=draft.now.wall_ms,
            )
        except AssignorError as error:
            logger.error("group %s, epoch %d: no targets: %s", group.group_id, draft.epoch, error)
            raise
        draft.records += made.records
        return Target(draft.epoch, made.targets.get(updated.member_id, NOTHING))

    def _assignor(self, name: str | None) -> Assignor:
        """The one asked for, else the default: also where members asked, in an earlier life, for
        one that is not configured any more (Kafka refuses their heartbeats then, for ever).
        """
        default = next(iter(self._assignors.values()))
        return default if name is None else self._assignors.get(name, default)

    def is_due(self, group: ConsumerGroup, epoch: int, now: Now) -> bool:
        """Whether targets are to be made for a group at that epoch: it is newer than they are, and
        they are old enough; with no interval set, however old they are.
        """
        if group.assignment_epoch >= epoch:
            return False
        interval_ms = self._configs.assignment_interval_ms(group.group_id)
        return not interval_ms or now.timer_ms >= group.assigned_at.timer_ms + interval_ms

    # -- the member --------------------------------------------------------------------------------

    def reconcile(
        self,
        draft: Draft,
        member: ConsumerMember,
        target: Target,
        *,
        changed: bool,
        owned: Assignment | None,
    ) -> ConsumerMember:
        """The member after a step inputs its target; written, if there is one to take.

        `changed`: whether its subscription has, just now; `owned`: what it says it has. One that
        must give up partitions has its rebalance timeout to do so.
        Raises ApiError FENCED_MEMBER_EPOCH.
        """
        inputs = ReconcileInputs(
            target=target.assignment,
            epoch=target.epoch,
            owner_epoch=draft.group.ownership.epoch,
            subscribed_ids=partial(self._subscribed_ids, draft),
            subscription_changed=changed,
            owned=owned,
        )
        moved = reconcile(member, inputs)
        if moved is member or moved == member:
            return member
        draft.records.append(current_assignment_record(draft.group_id, moved))
        if not moved.uses_classic_protocol:
            draft.then.append(partial(self._update_rebalance_deadline, draft, moved))
        return moved

    def _subscribed_ids(self, draft: Draft, member: ConsumerMember) -> frozenset[bytes]:
        return self._topics.ids_of(draft.group.subscriptions.topics_of(member))

    def _update_rebalance_deadline(self, draft: Draft, member: ConsumerMember) -> None:
        """Set the end of a revocation, or take it back."""
        key = MemberKey(draft.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            at_ms = draft.now.timer_ms + member.rebalance_timeout_ms
            self._deadlines.schedule_rebalance(key, at_ms, member.member_epoch)
        else:
            self._deadlines.cancel_rebalance(key)
