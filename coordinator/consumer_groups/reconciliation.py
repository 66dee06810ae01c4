"""Reconciliation: moves a member one step from the partitions it owns towards its target.

The old owner must give a partition up before the new owner gets it. No member waits for the whole
group: each advances at its own heartbeats, as soon as it can.

    STABLE, at its target      nothing to do
    STABLE, a newer target     if it owns partitions outside the target: UNREVOKED_PARTITIONS;
                               else it advances
    UNREVOKED_PARTITIONS       it stays at its epoch until its heartbeat no longer reports the
                               partitions to give up; then it advances to the newest target
    advance                    it takes the target's epoch and the free partitions of the target;
                               if it has all of them: STABLE, else UNRELEASED_PARTITIONS
    UNRELEASED_PARTITIONS      it advances again at each heartbeat

Targets are computed at intervals, so a target may be older than the member's subscription. Topics
that the member no longer subscribes to are revoked without waiting for a new target, and none of
their partitions are granted.

Kafka: CurrentAssignmentBuilder.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.modern_groups.partition_sets import partition_sets, split
from odradek.coordinator.runtime.steps import Step, no_step, stepping, stepping_if_many
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatTopicPartitions

from .member import NOTHING, ConsumerMember, OwnedPartitions
from .ownership import FREE


class ReconcileInputs(Struct, frozen=True, kw_only=True):
    """The inputs of one reconciliation step."""

    target: Assignment
    epoch: int
    """The group epoch for which the target was computed."""
    owner_epoch: Callable[[bytes, int], int]
    """Returns the epoch of a partition's owner, or FREE; the group's Ownership.epoch."""
    subscribed_ids: Callable[[ConsumerMember], frozenset[bytes]]
    """Returns the ids of a member's subscribed topics; called only when needed."""
    subscription_changed: bool = False
    """Whether the current heartbeat has changed the subscription."""
    owned: Assignment | None = None
    """The partitions that the member reports as owned; None if it does not report them."""
    step: Step = no_step


def partitions_by_topic(
    topics: Sequence[ConsumerGroupHeartbeatTopicPartitions] | None, step: Step = no_step
) -> Assignment | None:
    """Return the partitions of a heartbeat by topic id; None if it does not report them."""
    if topics is None:
        return None
    named = ((topic.topic_id, topic.partitions) for topic in stepping_if_many(topics, step))
    return partition_sets(named, step)


def reconcile(member: ConsumerMember, inputs: ReconcileInputs) -> ConsumerMember:
    """Return the member after one step; the same object if there is nothing to do.

    Raises ApiError FENCED_MEMBER_EPOCH for a member in a state of a newer Kafka that still owns
    partitions: it must give them up and join again.
    """
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != inputs.epoch:
                return _advance(member, inputs, member.member_epoch)
            return _revoke_unsubscribed(member, inputs)
        case MemberState.UNREVOKED_PARTITIONS:
            if _may_still_own(inputs, member.pending_revocation):
                return _revoke_unsubscribed(member, inputs)
            return _advance(member, inputs, member.member_epoch)
        case MemberState.UNRELEASED_PARTITIONS:
            return _advance(member, inputs, member.member_epoch)
        case MemberState.UNKNOWN:
            if inputs.owned is None or inputs.owned:
                raise ApiError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The member's state is not known here. It must give up all its partitions "
                    "and join again.",
                )
            return _advance(member, inputs, inputs.epoch)


def _may_still_own(inputs: ReconcileInputs, revoked: OwnedPartitions) -> bool:
    """Whether the member reports a partition that it must give up, or does not report at all."""
    if inputs.owned is None:
        return True
    return any(
        not inputs.owned.get(topic_id, frozenset()).isdisjoint(partitions)
        for topic_id, partitions in stepping_if_many(revoked.items(), inputs.step)
    )


# -- at the same epoch: topics no longer subscribed to ---------------------------------------------


def _revoke_unsubscribed(member: ConsumerMember, inputs: ReconcileInputs) -> ConsumerMember:
    """Revoke topics that the current heartbeat has unsubscribed from."""
    if not inputs.subscription_changed:
        return member
    subscribed = inputs.subscribed_ids(member)
    unsubscribed = {id_: owned for id_, owned in member.assigned.items() if id_ not in subscribed}
    if not unsubscribed and not _subscribes_to_nothing(member, subscribed):
        return member
    kept = {id_: owned for id_, owned in member.assigned.items() if id_ not in unsubscribed}
    pending = dict(member.pending_revocation)
    for topic_id, partitions in unsubscribed.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
    if pending and _may_still_own(inputs, pending):
        state = MemberState.UNREVOKED_PARTITIONS
        return _with_ownership(member, state, member.member_epoch, kept, pending)
    # The member has given them up already, so it keeps its state.
    return _with_ownership(
        member, member.state, member.member_epoch, kept, member.pending_revocation
    )


def _subscribes_to_nothing(member: ConsumerMember, subscribed: frozenset[bytes]) -> bool:
    """Whether the member subscribes to no topic; then Kafka writes its record in any case."""
    return not (member.subscribed_topics or subscribed or member.pending_revocation)


# -- to the next epoch -----------------------------------------------------------------------------


class _Difference:
    """The partitions that a member keeps, gives up and gets to reach a target, by topic id.

    Those that it has are with the epochs at which it got them. `waits_for_release`: whether others
    still own partitions of the target.
    """

    def __init__(self, member: ConsumerMember, inputs: ReconcileInputs) -> None:
        self.kept: dict[bytes, Mapping[int, int]] = {}
        self.revoked: dict[bytes, Mapping[int, int]] = {}
        self.granted: dict[bytes, set[int]] = {}
        self.waits_for_release = False
        subscribed = inputs.subscribed_ids(member)
        for topic_id in stepping({*inputs.target, *member.assigned}, inputs.step):
            target = inputs.target.get(topic_id, frozenset())
            self._compare(
                member, inputs, topic_id, target if topic_id in subscribed else frozenset()
            )

    def _compare(
        self,
        member: ConsumerMember,
        inputs: ReconcileInputs,
        topic_id: bytes,
        target: frozenset[int],
    ) -> None:
        has = member.assigned.get(topic_id, {})
        if has and has.keys() == target:
            self.kept[topic_id] = has  # the usual case: only the epoch changes
            return
        kept, revoked = split(has, target, inputs.step)
        # A partition that this member itself is giving up may be granted to it again.
        pending = member.pending_revocation.get(topic_id, {})
        lacking = target.difference(has)
        granted = {
            partition
            for partition in stepping(lacking, inputs.step)
            if partition in pending or inputs.owner_epoch(topic_id, partition) == FREE
        }
        if len(granted) < len(lacking):
            self.waits_for_release = True
        if kept:
            self.kept[topic_id] = kept
        if revoked:
            self.revoked[topic_id] = revoked
        if granted:
            self.granted[topic_id] = granted

    def reached(self, epoch: int, step: Step) -> dict[bytes, Mapping[int, int]]:
        """Return the partitions kept, and those granted at `epoch`."""
        reached = dict(self.kept)
        for topic_id, partitions in stepping_if_many(self.granted.items(), step):
            reached[topic_id] = {
                **self.kept.get(topic_id, {}),
                **dict.fromkeys(sorted(partitions), epoch),
            }
        return reached


def _advance(
    member: ConsumerMember, inputs: ReconcileInputs, epoch_if_revoking: int
) -> ConsumerMember:
    """Advance the member to the target; or make it give up partitions at `epoch_if_revoking`."""
    difference = _Difference(member, inputs)
    if difference.revoked and _may_still_own(inputs, difference.revoked):
        state = MemberState.UNREVOKED_PARTITIONS
        return _with_ownership(
            member, state, epoch_if_revoking, difference.kept, difference.revoked
        )
    state = MemberState.STABLE
    if difference.waits_for_release:
        state = MemberState.UNRELEASED_PARTITIONS
    reached = difference.reached(inputs.epoch, inputs.step)
    return _with_ownership(member, state, inputs.epoch, reached, NOTHING)


def _with_ownership(
    member: ConsumerMember,
    state: MemberState,
    epoch: int,
    assigned: OwnedPartitions,
    pending_revocation: OwnedPartitions,
) -> ConsumerMember:
    """Return the member in a new state. Its epoch so far becomes its previous epoch.

    Kafka: updateMemberEpoch.
    """
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )
