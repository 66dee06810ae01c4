"""Upgrade: converts a classic group with members to a consumer group, when a consumer joins it.

A member that joins by ConsumerGroupHeartbeat starts the upgrade. The members of the classic group
remain as classic members of the new group. The generation becomes the group epoch, the assignment
epoch and the epoch of each member. The assignment of the leader becomes both the partitions that
the members own and their targets. Members that wait for a rebalance of the classic group are
answered REBALANCE_IN_PROGRESS and join again.

A new member causes new targets. A member that replaces a static member does not. Therefore a draft
asks for new targets itself (`ConsumerDraft.needs_new_target`) in three cases: a rebalance was in
progress; a member had partitions that do not exist; or a partition has no owner, because the broker
ended during a rebalance, which is not in the log. Kafka does not: then partitions stay unassigned,
or those that do not exist are assigned.

A `step` is called again and again while a large group is converted, so that others are served
(group_decisions.py).

Conditions:

    policy             group.consumer.migration.policy allows the upgrade
    protocol type      the type is "consumer"; Connect's workers, for example, have no topics
    size               the group has at most group.consumer.max.size members
    assignments        they contain no user data of a custom assignor, which would be lost

An empty classic group is not converted: its tombstone is written, and a new group is created.
Kafka: GroupMetadataManager.convertToConsumerGroup, ConsumerGroup.fromClassicGroup.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from odradek.coordinator.classic_groups.group import ClassicGroup, ClassicState
from odradek.coordinator.classic_groups.member import ClassicMember
from odradek.coordinator.classic_groups.protocols import Protocols, metadata_of
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs
from odradek.coordinator.modern_groups.member import MemberKey
from odradek.coordinator.modern_groups.target_assignment import NEVER_COMPUTED_MS
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.in_turns import InTurns
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, stepping, stepping_if_many
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_group import ClassicMemberMetadata, ClassicProtocol
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE
from odradek.protocol.schema import DecodeError

from .client_protocol import CustomAssignorError, assignment_of, subscription_of
from .deadlines import ConsumerDeadlines
from .draft import ConsumerDraft
from .group import ConsumerGroup
from .member import ConsumerMember
from .records import (
    current_assignment_record,
    epoch_record,
    subscription_record,
    target_epoch_record,
    target_record,
)
from .replay import replay

logger = logging.getLogger("odradek.groups")

REJOIN = ErrorCode.REBALANCE_IN_PROGRESS


class Upgrades:
    """Converts classic groups to consumer groups."""

    def __init__(
        self,
        *,
        topics: ClusterTopics,
        configs: ConsumerGroupConfigs,
        deadlines: ConsumerDeadlines,
        has_member: Callable[[MemberKey], bool],
        in_turns: InTurns,
    ) -> None:
        """`has_member`: whether there is a consumer group with this member."""
        self._topics = topics
        self._configs = configs
        self._deadlines = deadlines
        self._has_member = has_member
        self._in_turns = in_turns

    def convert(self, group: ClassicGroup, now: Now, step: Step) -> ConsumerDraft:
        """Return a draft about the new consumer group, with the records that create it.

        Raises ApiError: GROUP_ID_NOT_FOUND if the group cannot be upgraded; UNKNOWN_SERVER_ERROR
        if a partition is assigned to two members.
        """
        self._check(group)
        try:
            assigned = self._members(group, step)
        except DecodeError as error:
            raise _refusal(group, f"the metadata of a member cannot be decoded: {error}") from error
        except CustomAssignorError as error:
            raise _refusal(
                group, f"an unsupported custom assignor is in use ({error}); use a default one"
            ) from error
        members = [self._with_existing(member, step) for member in stepping(assigned, step)]
        _check_owners(group, members, step)
        records = list(stepping(self._records(group, members, step), step))
        draft = ConsumerDraft(_replay_records(group, records, step), now, step)
        draft.needs_new_target = (
            group.state is not ClassicState.STABLE
            or members != assigned
            or self._leaves_unassigned(members, step)
        )
        draft.records += (*group.tombstones(), *records)
        draft.then.append(partial(self._after_conversion, group, now))
        return draft

    def _check(self, group: ClassicGroup) -> None:
        broker = self._configs.broker
        if not broker.migration_policy.allows_upgrade:
            raise _refusal(group, "online upgrade is disabled")
        if group.protocol_type != PROTOCOL_TYPE:
            raise _refusal(group, f"its protocol type is {group.protocol_type!r}")
        if len(group.members) > broker.max_size:
            raise _refusal(
                group, f"its {len(group.members)} members are more than group.consumer.max.size"
            )

    # -- the new group -----------------------------------------------------------------------------

    def _members(self, group: ClassicGroup, step: Step) -> list[ConsumerMember]:
        """Return the members as members of the new group, with the partitions that they own.

        Raises DecodeError, CustomAssignorError.
        """
        if not group.members:
            return []
        name = _common_protocol(group)
        members = stepping(group.members.values(), step)
        return [self._member(group, member, name, step) for member in members]

    def _member(
        self, group: ClassicGroup, member: ClassicMember, name: str, step: Step
    ) -> ConsumerMember:
        epoch = group.generation_id
        subscription = subscription_of(metadata_of(member.protocols, name), step)
        owned = assignment_of(member.assignment, self._topics, step)
        return ConsumerMember(
            member_id=member.member_id,
            member_epoch=epoch,
            previous_member_epoch=epoch,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topics=frozenset(subscription.topics),
            assigned={
                topic_id: dict.fromkeys(sorted(partitions), epoch)
                for topic_id, partitions in stepping_if_many(owned.items(), step)
            },
            classic=classic_metadata(member.session_timeout_ms, member.protocols),
        )

    def _with_existing(self, member: ConsumerMember, step: Step) -> ConsumerMember:
        """Return the member without partitions that do not exist; the same if all of them do.

        A topic that was deleted and created again may have fewer.
        """
        assigned: dict[bytes, dict[int, int]] = {}
        for topic_id, epochs in stepping(member.assigned.items(), step):
            count = self._topics.partition_count(topic_id)
            existing = {index: epoch for index, epoch in epochs.items() if 0 <= index < count}
            if existing:
                assigned[topic_id] = existing
        return member if assigned == member.assigned else replace(member, assigned=assigned)

    def _leaves_unassigned(self, members: Sequence[ConsumerMember], step: Step) -> bool:
        """Return whether a partition of a subscribed topic has no owner."""
        owned: Counter[bytes] = Counter()
        for member in stepping(members, step):
            for topic_id, epochs in stepping_if_many(member.assigned.items(), step):
                owned[topic_id] += len(epochs)
        names = frozenset[str]().union(*{member.subscribed_topics for member in members})
        ids = (self._topics.id_of(name) for name in stepping(names, step))
        return any(
            topic_id is not None and owned[topic_id] < self._topics.partition_count(topic_id)
            for topic_id in ids
        )

    def _records(
        self, group: ClassicGroup, members: Sequence[ConsumerMember], step: Step
    ) -> Iterator[JournalRecord]:
        """The records of the new group, in Kafka's order."""
        group_id, epoch = group.group_id, group.generation_id
        topics = frozenset[str]().union(*{member.subscribed_topics for member in members})
        yield from (subscription_record(group_id, member, step) for member in members)
        yield epoch_record(group_id, epoch, self._topics.group_hash(topics, step))
        for member in members:
            owned = stepping_if_many(member.assigned.items(), step)
            target = {topic_id: frozenset(epochs) for topic_id, epochs in owned}
            yield target_record(group_id, member.member_id, target, step)
        yield target_epoch_record(group_id, epoch, NEVER_COMPUTED_MS)
        yield from (current_assignment_record(group_id, member, step) for member in members)

    # -- after the records are written -------------------------------------------------------------

    def _after_conversion(self, group: ClassicGroup, now: Now) -> None:
        """Answer the waiting requests of members, and start the sessions of all members."""
        logger.info(
            "group %s: the classic group of generation %d is now a consumer group",
            group.group_id, group.generation_id,
        )  # fmt: skip
        self._in_turns.run(self._move_members(group, now))

    def _move_members(self, group: ClassicGroup, now: Now) -> Iterator[None]:
        for member in list(group.members.values()):
            group.roster.refuse(member, REJOIN)
            key = MemberKey(group.partition, group.group_id, member.member_id)
            if self._has_member(key):
                at_ms = now.timer_ms + member.session_timeout_ms
                self._deadlines.sessions.schedule_if_absent(key, at_ms)
            yield


def classic_metadata(session_timeout_ms: int, protocols: Protocols) -> ClassicMemberMetadata:
    """The stored session timeout and protocols of a classic member of a consumer group."""
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols
        ],
    )


def _common_protocol(group: ClassicGroup) -> str:
    """Return the group's protocol, or during an election the protocol it would elect.

    Kafka answers UNKNOWN_SERVER_ERROR during the first rebalance, when there is no protocol yet.
    """
    name = group.protocol_name
    if name is not None and group.roster.support_one_of([name]):
        return name
    return group.roster.elected_protocol()


def _check_owners(group: ClassicGroup, members: Sequence[ConsumerMember], step: Step) -> None:
    """Check that each partition has one owner, which a classic leader does not guarantee.

    Raises ApiError UNKNOWN_SERVER_ERROR.
    """
    owners: dict[tuple[bytes, int], str] = {}
    for member in stepping(members, step):
        for topic_id, partitions in stepping_if_many(member.assigned.items(), step):
            for partition in partitions:
                other = owners.setdefault((topic_id, partition), member.member_id)
                if other != member.member_id:
                    raise ApiError(
                        ErrorCode.UNKNOWN_SERVER_ERROR,
                        f"group {group.group_id} cannot become a consumer group: a partition is "
                        f"assigned to {other} and to {member.member_id}",
                    )


def _replay_records(
    group: ClassicGroup, records: Sequence[JournalRecord], step: Step
) -> ConsumerGroup:
    """Return the group that the records create. The draft reads it; it is then dropped."""
    groups: dict[str, ConsumerGroup] = {}
    for record in stepping(records, step):
        replay(groups, record.key, record.value, partition=group.partition, step=step)
    return groups[group.group_id]


def _refusal(group: ClassicGroup, obstacle: str) -> ApiError:
    logger.info("group %s cannot become a consumer group: %s", group.group_id, obstacle)
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group: {obstacle}.",
    )
