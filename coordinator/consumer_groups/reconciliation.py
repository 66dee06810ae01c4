"""Reconciliation: one step of a member from what it has inputs what it shall have.

A partition must have left its old owner before its new one may have it, and nobody waits for the
whole group: each member goes on as soon as it can, at its own heartbeats.

    STABLE at its target         nothing to do
    STABLE, a newer target       has it partitions that it shall not have? then UNREVOKED; else on
    UNREVOKED_PARTITIONS         stays at its old epoch, until its heartbeat no longer names what it
                                 must give up; then on, inputs the newest target
    on to the target's epoch     it gets what is free at once, and is STABLE; where others still
                                 have some of it, UNRELEASED_PARTITIONS
    UNRELEASED_PARTITIONS        asks again at each heartbeat

A target may be older than the member's subscription, for targets are made at intervals. So topics
which it has left are taken from it without waiting for a new target, and none of them are given.

Kafka: CurrentAssignmentBuilder.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import Assignment
from odradek.protocol.errors import ApiError, ErrorCode

from .member import NOTHING, ConsumerMember, MemberState, OwnedPartitions
from .ownership import FREE


class ReconcileInputs(Struct, frozen=True, kw_only=True):
    """Where a member is to go, and what it may meet on the way."""

    target: Assignment
    epoch: int
    """For which the target was made."""
    owner_epoch: Callable[[bytes, int], int]
    """The epoch of a partition's owner, or FREE: Ownership.epoch of the group."""
    subscribed_ids: Callable[[ConsumerMember], frozenset[bytes]]
    """The ids of the topics that a member is subscribed to; asked for only where it matters."""
    subscription_changed: bool = False
    """Whether this very heartbeat has changed it."""
    owned: Assignment | None = None
    """What the member says it has; None: it does not say."""


class TopicPartitions(Protocol):
    """An entry of a heartbeat's list."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[int]: ...


def partitions_by_topic(topics: Iterable[TopicPartitions] | None) -> Assignment | None:
    """The partitions that a heartbeat says the member has; None: it does not say."""
    if topics is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()).union(topic.partitions)
    return owned


def reconcile(member: ConsumerMember, inputs: ReconcileInputs) -> ConsumerMember:
    """The member after one step; the same object where there is nothing to do.

    Raises ApiError FENCED_MEMBER_EPOCH for a member in a state that only a newer Kafka knows: it
    must give up everything and join again.
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
    """Whether the member has, or may have, any of the partitions that it must give up."""
    if inputs.owned is None:
        return True
    return any(
        partition in revoked.get(topic_id, ())
        for topic_id, partitions in inputs.owned.items()
        for partition in partitions
    )


# -- at the same epoch: topics that the member has left --------------------------------------------


def _revoke_unsubscribed(member: ConsumerMember, inputs: ReconcileInputs) -> ConsumerMember:
    """The member must give up the topics which this heartbeat has left."""
    if not inputs.subscription_changed:
        return member
    subscribed = inputs.subscribed_ids(member)
    left = {id_: owned for id_, owned in member.assigned.items() if id_ not in subscribed}
    if not left and not _subscribes_to_nothing(member, subscribed):
        return member
    kept = {id_: owned for id_, owned in member.assigned.items() if id_ not in left}
    pending = dict(member.pending_revocation)
    for topic_id, partitions in left.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
    if pending and _may_still_own(inputs, pending):
        return _with_ownership(
            member, MemberState.UNREVOKED_PARTITIONS, member.member_epoch, _Owned(kept, pending)
        )
    # It has given them up already: it stays in its state with less.
    return _with_ownership(
        member, member.state, member.member_epoch, _Owned(kept, member.pending_revocation)
    )


def _subscribes_to_nothing(member: ConsumerMember, subscribed: frozenset[bytes]) -> bool:
    """Whether it asks for no topic at all: Kafka writes the member anew then, whatever it has."""
    return not (member.subscribed_topics or subscribed or member.pending_revocation)


# -- to the next epoch -----------------------------------------------------------------------------


class _Owned(NamedTuple):
    assigned: OwnedPartitions
    pending_revocation: OwnedPartitions


class _Difference:
    """What a member keeps, gives up and gets on its way to a target."""

    def __init__(self, member: ConsumerMember, inputs: ReconcileInputs) -> None:
        self.kept: dict[bytes, Mapping[int, int]] = {}
        self.revoked: dict[bytes, Mapping[int, int]] = {}
        self.granted: dict[bytes, set[int]] = {}
        self.waits_for_release = False
        subscribed = inputs.subscribed_ids(member)
        for topic_id in {*inputs.target, *member.assigned}:
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
            self.kept[topic_id] = has  # the usual case: nothing is new but the epoch
            return
        kept = {partition: epoch for partition, epoch in has.items() if partition in target}
        revoked = {partition: epoch for partition, epoch in has.items() if partition not in target}
        # What the member itself is giving up is not somebody else's: it may have it back.
        pending = member.pending_revocation.get(topic_id, {})
        lacking = target.difference(has)
        granted = {
            partition
            for partition in lacking
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

    def reached(self, epoch: int) -> dict[bytes, Mapping[int, int]]:
        """What the member has once it has got what is free, at that epoch."""
        reached = dict(self.kept)
        for topic_id, partitions in self.granted.items():
            reached[topic_id] = {
                **self.kept.get(topic_id, {}),
                **dict.fromkeys(sorted(partitions), epoch),
            }
        return reached


def _advance(
    member: ConsumerMember, inputs: ReconcileInputs, revocation_epoch: int
) -> ConsumerMember:
    """The member on its way to the target, or at it."""
    difference = _Difference(member, inputs)
    if difference.revoked and _may_still_own(inputs, difference.revoked):
        owned = _Owned(difference.kept, difference.revoked)
        return _with_ownership(member, MemberState.UNREVOKED_PARTITIONS, revocation_epoch, owned)
    state = MemberState.STABLE
    if difference.waits_for_release:
        state = MemberState.UNRELEASED_PARTITIONS
    owned = _Owned(difference.reached(inputs.epoch), NOTHING)
    return _with_ownership(member, state, inputs.epoch, owned)


def _with_ownership(
    member: ConsumerMember, state: MemberState, epoch: int, owned: _Owned
) -> ConsumerMember:
    """Even if its epoch stays, the one before is now what it is: Kafka's updateMemberEpoch."""
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=owned.assigned,
        pending_revocation=owned.pending_revocation,
    )
