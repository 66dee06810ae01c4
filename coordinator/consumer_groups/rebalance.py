"""The steps of a rebalance after one member has changed.

    write_subscription   write the member's subscription if it has changed
    bump_epoch           raise the group epoch if a subscription or a subscribed topic has changed
    update_target        compute new targets if the group epoch has risen, at most once per
                         assignment interval; until then the old targets remain valid
    reconcile            move the member one step towards its target

Heartbeats and joins of classic members take the same steps. Kafka: the methods of
GroupMetadataManager that consumerGroupHeartbeat and classicGroupJoinToConsumerGroup share.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from odradek.coordinator.assignors.assignment import Assignment, Assignor, AssignorError
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs
from odradek.coordinator.modern_groups.target_assignment import (
    compute_targets,
    is_due,
    write_targets,
)
from odradek.coordinator.modern_groups.topic_checks import check_topics, has_checked_topics
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.steps import stepping
from odradek.coordinator.runtime.timers import Now

from .deadlines import ConsumerDeadlines
from .draft import ConsumerDraft
from .group import ConsumerGroup
from .member import ConsumerMember
from .reconciliation import ReconcileInputs, reconcile
from .records import (
    current_assignment_record,
    subscription_metadata_tombstone,
    subscription_record,
    target_epoch_record,
    target_record,
)

logger = logging.getLogger("odradek.groups")


class Target(NamedTuple):
    """A member's target, and the group epoch for which it was computed."""

    epoch: int
    assignment: Assignment


def write_subscription(
    draft: ConsumerDraft, member: ConsumerMember, updated: ConsumerMember
) -> bool:
    """Write a changed subscription. Return whether the subscribed topic names have changed."""
    if updated is member or updated == member:
        return False
    draft.records.append(subscription_record(draft.group_id, updated, draft.step))
    return updated.subscribed_topics != member.subscribed_topics


class Rebalance:
    """The steps for all consumer groups."""

    def __init__(
        self,
        *,
        topics: ClusterTopics,
        configs: ConsumerGroupConfigs,
        assignors: Mapping[str, Assignor],
        deadlines: ConsumerDeadlines,
    ) -> None:
        """`assignors` are by name; the first is the default."""
        self._topics = topics
        self._configs = configs
        self._assignors = assignors
        self._deadlines = deadlines

    # -- the epoch ---------------------------------------------------------------------------------

    def bump_epoch(
        self,
        draft: ConsumerDraft,
        member: ConsumerMember,
        updated: ConsumerMember,
        *,
        changed: bool,
    ) -> None:
        """Raise the group epoch if `changed`, or if the subscribed topics have changed.

        `changed`: whether the subscription has changed from `member` to `updated`. A group that was
        just converted may need new targets anyway.
        """
        changed = changed or draft.needs_new_target
        found = check_topics(draft, self._topics, member, updated, changed=changed)
        if found is None:
            return
        if changed or found.has_changed:
            reason = f"request of {updated.member_id}" if changed else "its topics have changed"
            draft.bump_epoch(found.metadata_hash, reason)
        if draft.group.has_partition_metadata:  # of Kafka 4.0; the epoch has a hash instead now
            draft.records.append(subscription_metadata_tombstone(draft.group_id))

    def changes_assignor(
        self, group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember
    ) -> bool:
        """Whether the heartbeat of a member changes which assignor the group uses.

        A join of a classic member does not count. Kafka: hasPreferredServerAssignorChanged.
        """
        if updated.uses_classic_protocol:
            return False
        default = next(iter(self._assignors))
        name = group.preferred_assignor_if(member, updated)
        return (group.preferred_assignor or default) != (name or default)

    def has_checked_topics(self, group: ConsumerGroup) -> bool:
        """Whether the group has checked its topics since the last change of any topic."""
        return has_checked_topics(group, self._topics)

    # -- the targets -------------------------------------------------------------------------------

    def update_target(
        self, draft: ConsumerDraft, member: ConsumerMember, updated: ConsumerMember
    ) -> Target:
        """Return the member's target; compute all targets first if they are due.

        Raises ApiError UNKNOWN_SERVER_ERROR if the assignor fails.
        """
        group = draft.group
        if not self.is_due(group, draft.epoch, draft.now):
            target = group.target(updated.member_id, updated.instance_id)
            return Target(group.assignment_epoch, target)
        name = group.preferred_assignor_if(member, updated)
        try:
            targets = compute_targets(
                draft,
                updated,
                self._assignor(name),
                self._topics,
                previous_id=group.previous_id(updated),
                topics_of=group.subscriptions.topics_of,
                # If no subscription has changed, Kafka uses the value before this heartbeat, which
                # is wrong after members have left, and for a new member without topics.
                is_homogeneous=group.is_homogeneous_if(member, updated, draft.step),
            )
        except AssignorError as error:
            logger.error("group %s, epoch %d: no targets: %s", group.group_id, draft.epoch, error)
            raise
        write_targets(draft, targets, target_record, target_epoch_record)
        return Target(draft.epoch, targets[updated.member_id])

    def _assignor(self, name: str | None) -> Assignor:
        """Return the assignor of that name, else the default.

        A member may have requested an assignor that is no longer configured since a restart. Kafka
        then refuses the heartbeats of the group permanently.
        """
        default = next(iter(self._assignors.values()))
        return default if name is None else self._assignors.get(name, default)

    def is_due(self, group: ConsumerGroup, epoch: int, now: Now) -> bool:
        """Whether new targets must be computed for the group at `epoch`."""
        return is_due(group, epoch, now, self._configs)

    # -- the member --------------------------------------------------------------------------------

    def reconcile(
        self,
        draft: ConsumerDraft,
        member: ConsumerMember,
        target: Target,
        *,
        changed: bool,
        owned: Assignment | None,
    ) -> ConsumerMember:
        """Move the member one step towards its target, and write it if it has changed.

        `changed`: whether its subscription has just changed; `owned`: the partitions it reports.
        A member that must give up partitions gets a deadline of its rebalance timeout.
        Raises ApiError FENCED_MEMBER_EPOCH.
        """
        inputs = ReconcileInputs(
            target=target.assignment,
            epoch=target.epoch,
            owner_epoch=draft.group.ownership.epoch,
            subscribed_ids=partial(self._subscribed_ids, draft),
            subscription_changed=changed,
            owned=owned,
            step=draft.step,
        )
        reconciled = reconcile(member, inputs)
        if reconciled is member or reconciled == member:
            return member
        record = current_assignment_record(draft.group_id, reconciled, draft.step)
        draft.records.append(record)
        if not reconciled.uses_classic_protocol:
            update, key = self._deadlines.update_rebalance, draft.group.key_of(member.member_id)
            timeout_ms = reconciled.rebalance_timeout_ms
            draft.then.append(partial(update, key, reconciled, timeout_ms, draft.now))
        return reconciled

    def _subscribed_ids(self, draft: ConsumerDraft, member: ConsumerMember) -> frozenset[bytes]:
        names = draft.group.subscriptions.topics_of(member)
        return self._topics.ids_of(stepping(iter(names), draft.step))
