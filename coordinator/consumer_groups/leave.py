"""Removes members: they leave, or are fenced after a missed deadline.

    epoch -1   the member is removed; its partitions are free, and the group epoch rises
    epoch -2   a static member leaves temporarily: it keeps its partitions until its session ends,
               so that it may come back under another member id without a rebalance

Kafka: GroupMetadataManager.consumerGroupLeave, consumerGroupFenceMembers.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from odradek.coordinator.classic_groups.sync import MAX_LOGGED_NAMES, first_names
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.member import LEAVING_STATIC_EPOCH
from odradek.coordinator.modern_groups.target_assignment import NEVER_COMPUTED_MS
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, no_step, stepping, stepping_if_many
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

from .deadlines import ConsumerDeadlines
from .draft import ConsumerDraft
from .group import ConsumerGroup
from .member import NOTHING, ConsumerMember
from .records import (
    current_assignment_record,
    member_tombstones,
    regex_tombstone,
    target_epoch_record,
)

R = TypeVar("R")

Answer = Outcome[DraftResult[ConsumerGroupHeartbeatResponse]]

# Converts the group to a classic group if only classic members remain after these have left.
# Returns whether it did.
Downgrade = Callable[[ConsumerDraft, Sequence[ConsumerMember]], bool]


class Departures:
    """Removes members of all consumer groups."""

    def __init__(
        self, topics: ClusterTopics, deadlines: ConsumerDeadlines, downgrade: Downgrade
    ) -> None:
        self._topics = topics
        self._deadlines = deadlines
        self._downgrade = downgrade

    def leave(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, now: Now, step: Step
    ) -> Answer:
        """Serve a heartbeat with epoch -1 or -2.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        member_id, instance_id = request.member_id, request.instance_id
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id, member_epoch=request.member_epoch
        )
        member = group.requesting_member(member_id, instance_id)
        if instance_id is not None and request.member_epoch == LEAVING_STATIC_EPOCH:
            draft = ConsumerDraft(group, now, step)
            away = _away(member, step)
            draft.records.append(current_assignment_record(group.group_id, away, step))
            return draft.outcome(response)
        return self.remove(group, [member], now, response, step)

    def remove(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        now: Now,
        reply: R,
        step: Step = no_step,
    ) -> Outcome[DraftResult[R]]:
        """Remove members that left or were fenced. `reply` is the reply of the decision."""
        draft = ConsumerDraft(group, now, step)
        if not members:
            return draft.outcome(reply)
        if not self._downgrade(draft, members):
            self._remove(draft, members)
        return draft.outcome(reply)

    def _remove(self, draft: ConsumerDraft, members: Sequence[ConsumerMember]) -> None:
        group = draft.group
        for member in stepping(members, draft.step):
            draft.records += member_tombstones(group.group_id, member.member_id)
            key = group.key_of(member.member_id)
            draft.then.append(partial(self._deadlines.cancel_all, key))
        orphans = _regexes_used_only_by(group, members)
        draft.records += (regex_tombstone(group.group_id, regex) for regex in orphans)
        topics = group.subscriptions.topics_without(members, draft.step, orphans)
        some = [member.member_id for member in members[:MAX_LOGGED_NAMES]]
        names = first_names(some, len(members))
        draft.bump_epoch(self._topics.group_hash(topics, draft.step), f"removed {names}")
        if len(members) == len(group.members):  # a member that joins later need not wait
            draft.records.append(
                target_epoch_record(group.group_id, draft.epoch, NEVER_COMPUTED_MS)
            )


def _away(member: ConsumerMember, step: Step) -> ConsumerMember:
    """Return a static member after it has left temporarily. It keeps its partitions.

    The epochs at which they were assigned become 0, so that they are valid for the member that
    replaces it.
    """
    return replace(
        member,
        member_epoch=LEAVING_STATIC_EPOCH,
        assigned={
            topic_id: dict.fromkeys(stepping_if_many(partitions, step), 0)
            for topic_id, partitions in stepping_if_many(member.assigned.items(), step)
        },
        pending_revocation=NOTHING,
    )


def _regexes_used_only_by(group: ConsumerGroup, members: Sequence[ConsumerMember]) -> list[str]:
    """The regular expressions that only these members subscribe to."""
    if not group.subscriptions.regex_subscribers:
        return []
    counts = Counter(member.subscribed_regex for member in members if member.subscribed_regex)
    subscribers = group.subscriptions.regex_subscribers
    return [regex for regex, count in counts.items() if subscribers[regex] == count]
