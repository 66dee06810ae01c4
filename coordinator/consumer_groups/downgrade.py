"""Downgrade: converts a consumer group to a classic group when only classic members remain.

    a departure     the last member of the consumer protocol leaves or is removed; the classic
                    group rebalances to reassign its partitions
    a replacement   the last member of the consumer protocol is static and comes back by JoinGroup
                    with a new member id; it inherits the target of its old member id, and no
                    rebalance follows unless the targets are out of date, or another member still
                    waits for partitions of its target

The group epoch becomes the generation. Target assignments become assignments of the classic group,
encoded in the version that each member uses. The members elect a protocol. The record stores only
the elected protocol; the other protocols that a member supports are kept in memory.

The group stays a consumer group if `group.consumer.migration.policy` or `group.max.size` forbids
the downgrade, if the members have no protocol in common, or if the metadata of a member cannot be
decoded. In the last case Kafka refuses every attempt to leave.

Kafka: GroupMetadataManager.convertToClassicGroup, validateOnlineDowngradeWith…,
ClassicGroup.fromConsumerGroup.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.classic_groups.member import ClassicMember
from odradek.coordinator.classic_groups.protocols import metadata_of, names_of
from odradek.coordinator.classic_groups.rebalance import ClassicRebalance
from odradek.coordinator.classic_groups.records import generation_value, group_record
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs
from odradek.coordinator.modern_groups.member import MemberKey
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.in_turns import InTurns
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE
from odradek.protocol.schema import DecodeError

from .client_protocol import assignment_bytes
from .deadlines import ConsumerDeadlines
from .draft import ConsumerDraft
from .group import ConsumerGroup
from .member import ConsumerMember
from .records import group_tombstones

logger = logging.getLogger("odradek.groups")


class NoCommonProtocolError(Exception):
    """The members of a group have no protocol in common, so they could not elect one."""


class Downgrades:
    """Converts consumer groups to classic groups."""

    def __init__(
        self,
        *,
        topics: ClusterTopics,
        configs: ConsumerGroupConfigs,
        deadlines: ConsumerDeadlines,
        classic_rebalance: ClassicRebalance,
        find: Callable[[int, str], ClassicGroup],
        in_turns: InTurns,
    ) -> None:
        """`find` returns a classic group by partition and id."""
        self._topics = topics
        self._configs = configs
        self._deadlines = deadlines
        self._classic_rebalance = classic_rebalance
        self._find = find
        self._in_turns = in_turns

    # -- a departure -------------------------------------------------------------------------------

    def convert_after_departure(
        self, draft: ConsumerDraft, leaving: Sequence[ConsumerMember]
    ) -> bool:
        """Convert the group if only classic members remain. Return whether it was converted."""
        group = draft.group
        if not group.classic_member_count or not group.only_classic_without(leaving):
            return False
        leaving_ids = {member.member_id for member in leaving}
        remaining = {id_: each for id_, each in group.members.items() if id_ not in leaving_ids}
        if not remaining or not self._is_allowed(draft, len(remaining)):
            return False
        reason = "the last member of the consumer protocol has left"
        return self._convert(draft, remaining, list(group.members), reason)

    # -- a replacement -----------------------------------------------------------------------------

    def can_convert_without(self, draft: ConsumerDraft, replaced: ConsumerMember) -> bool:
        """Whether the group may be converted when a classic member replaces `replaced`."""
        group = draft.group
        is_last = not replaced.uses_classic_protocol and group.only_classic_without([replaced])
        return is_last and self._is_allowed(draft, len(group.members))

    def convert_on_replacement(
        self,
        draft: ConsumerDraft,
        replaced: ConsumerMember,
        joining: ConsumerMember,
        *,
        rebalance: bool,
    ) -> bool:
        """Convert the group, with `joining` in place of `replaced`. Return whether it did.

        The draft already removes `replaced` and adds `joining`. So a tombstone is written for the
        id of `joining`, at the position of `replaced`.
        """
        members = draft.group.members
        remaining = {id_: each for id_, each in members.items() if id_ != replaced.member_id}
        # The first member leads the classic group. `joining` is last: it leads only if it is alone.
        remaining[replaced.member_id] = joining
        new_id = {replaced.member_id: joining.member_id}
        tombstoned_ids = [new_id.get(member_id, member_id) for member_id in members]
        reason = "not all members own their target" if rebalance else None
        return self._convert(draft, remaining, tombstoned_ids, reason)

    # -- conversion --------------------------------------------------------------------------------

    def _is_allowed(self, draft: ConsumerDraft, size: int) -> bool:
        """Whether the settings allow a classic group of this size in place of the group."""
        obstacle = None
        if not self._configs.broker.migration_policy.allows_downgrade:
            obstacle = "online downgrade is disabled"
        elif not self._classic_rebalance.has_room_for(size):
            obstacle = f"its {size} members are more than group.max.size"
        if obstacle is not None:
            text = "group %s cannot become a classic group: %s"
            draft.log(logging.INFO, text, draft.group_id, obstacle)
        return obstacle is None

    def _convert(
        self,
        draft: ConsumerDraft,
        remaining: Mapping[str, ConsumerMember],
        tombstoned_ids: Sequence[str],
        reason: str | None,
    ) -> bool:
        """Write the tombstones of the consumer group and the record of the classic group.

        `remaining` are the members of the classic group, by the member id under which their target
        is stored. `tombstoned_ids` are the member ids that have records to remove. With a `reason`
        the classic group rebalances. Returns False if the group cannot be converted.
        """
        group = draft.group
        try:
            classic = _classic_group(group, remaining.values(), draft.now, draft.step)
            assignments = {
                member.member_id: assignment_bytes(
                    group.target(target_id),
                    metadata_of(member.protocols, classic.protocol_name),
                    self._topics,
                    draft.step,
                )
                for target_id, member in stepping(
                    zip(remaining, classic.members.values(), strict=True), draft.step
                )
            }
        except (NoCommonProtocolError, DecodeError) as error:
            text = "group %s stays a consumer group: %s"
            draft.log(logging.WARNING, text, group.group_id, error)
            return False
        draft.records += group_tombstones(
            group.group_id, tombstoned_ids, group.subscriptions.resolved_regexes, draft.step
        )
        value = generation_value(classic, assignments, draft.step)
        draft.records.append(group_record(group.group_id, value))
        draft.new_group = classic
        old_ids = frozenset({*group.members, *tombstoned_ids})
        draft.then.append(partial(self._after_conversion, classic, old_ids, reason, draft.now))
        return True

    def _after_conversion(
        self, planned: ClassicGroup, old_ids: frozenset[str], reason: str | None, now: Now
    ) -> None:
        """Set what the record does not contain, and start a rebalance if there is a reason.

        Replay has made the classic group from the record. `planned` has all protocols of its
        members; a long decision has been replayed into it.
        """
        group = self._find(planned.partition, planned.group_id)
        for member in group.members.values():
            group.roster.change_protocols(member, planned.members[member.member_id].protocols)
        self._in_turns.run(self._replace_deadlines(group, old_ids, now))
        logger.info(
            "group %s: the consumer group of epoch %d is now a classic group",
            group.group_id, group.generation_id,
        )  # fmt: skip
        if reason is not None:
            # No member has joined yet, so the rebalance writes no record.
            self._classic_rebalance.rebalance(group, reason, now)

    def _replace_deadlines(
        self, group: ClassicGroup, old_ids: Iterable[str], now: Now
    ) -> Iterator[None]:
        """Cancel the deadlines of the consumer group's members, and start the others' sessions."""
        for member in list(group.members.values()):
            if not self._is_live(group):
                return
            if group.members.get(member.member_id) is member and member.session is None:
                self._classic_rebalance.deadlines.extend_session(group, member, now)
            yield
        for member_id in old_ids:
            if not self._is_live(group):
                return
            self._deadlines.cancel_all(MemberKey(group.partition, group.group_id, member_id))
            yield

    def _is_live(self, group: ClassicGroup) -> bool:
        """Whether the group is the one of its id: its shard may have been lost and loaded again."""
        try:
            return self._find(group.partition, group.group_id) is group
        except ApiError:
            return False


def _classic_group(
    group: ConsumerGroup, members: Iterable[ConsumerMember], now: Now, step: Step
) -> ClassicGroup:
    """Return a classic group of these members, without assignments. Its record is made from it.

    Raises NoCommonProtocolError.
    """
    classic = ClassicGroup(group.group_id, now.wall_ms, partition=group.partition)
    for member in stepping(members, step):
        classic.add(_classic_member(member))
    offered = names_of(next(iter(classic.members.values())).protocols)
    if not classic.roster.support_one_of(offered):
        raise NoCommonProtocolError(f"its members have no protocol of {offered} in common")
    classic.generation_id = group.epoch
    classic.protocol_name = classic.roster.elected_protocol()
    return classic


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None, "only classic members remain"
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=PROTOCOL_TYPE,
        protocols=tuple(
            (protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols
        ),
    )
