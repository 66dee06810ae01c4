"""Downgrade: converts a consumer group to a classic group when only classic members remain.

    a departure     the last member of the consumer protocol leaves or is removed; the classic
                    group rebalances to reassign its partitions
    a replacement   that member is static and comes back by JoinGroup; it inherits the assignment
                    of its old member id, and no rebalance follows unless the targets are out of
                    date

The group epoch becomes the generation. Targets become assignments, encoded in the version that each
member uses. The members elect a protocol. The record stores only the elected protocol; the others
that a member supports are kept in memory. The group stays a consumer group if
`group.consumer.migration.policy` or group.max.size forbids the downgrade, or if the metadata of a
member cannot be decoded (in Kafka every attempt to leave then fails).

Kafka: GroupMetadataManager.convertToClassicGroup, validateOnlineDowngradeWith…,
ClassicGroup.fromConsumerGroup.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.classic_groups.member import ClassicMember
from odradek.coordinator.classic_groups.protocols import Protocols, metadata_of, names_of
from odradek.coordinator.classic_groups.rebalance import ClassicRebalance
from odradek.coordinator.classic_groups.records import generation_value, group_record
from odradek.coordinator.modern_groups.deadlines import MemberKey
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.timers import Now
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE
from odradek.protocol.schema import DecodeError

from .client_protocol import assignment_bytes
from .deadlines import ConsumerDeadlines
from .draft import ConsumerDraft
from .group import ConsumerGroup
from .group_configs import ConsumerGroupConfigs
from .member import ConsumerMember
from .records import group_tombstones

logger = logging.getLogger("odradek.groups")


class Downgrades:
    """Converts consumer groups to classic groups."""

    def __init__(
        self,
        *,
        topics: ClusterTopics,
        configs: ConsumerGroupConfigs,
        deadlines: ConsumerDeadlines,
        classic_rebalance: ClassicRebalance,
        find: Callable[[str], ClassicGroup],
    ) -> None:
        """`find` returns a classic group by its id."""
        self._topics = topics
        self._configs = configs
        self._deadlines = deadlines
        self._classic_rebalance = classic_rebalance
        self._find = find

    # -- a departure -------------------------------------------------------------------------------

    def convert_after_departure(
        self, draft: ConsumerDraft, leaving: Sequence[ConsumerMember]
    ) -> bool:
        """Convert the group if only classic members remain. Return whether it was converted."""
        group = draft.group
        if not group.classic_member_count or not group.only_classic_without(leaving):
            return False
        gone = {member.member_id for member in leaving}
        staying = {id_: member for id_, member in group.members.items() if id_ not in gone}
        if not staying:
            return False
        reason = "the last member of the consumer protocol has left"
        return self._is_allowed(group, len(staying)) and self._convert(
            draft, staying, list(group.members), reason
        )

    # -- a replacement -----------------------------------------------------------------------------

    def can_convert_without(self, group: ConsumerGroup, holder: ConsumerMember) -> bool:
        """Whether a classic member that replaces `holder` makes the group downgradable."""
        is_last = not holder.uses_classic_protocol and group.only_classic_without([holder])
        return is_last and self._is_allowed(group, len(group.members))

    def convert_on_replacement(
        self,
        draft: ConsumerDraft,
        holder: ConsumerMember,
        joining: ConsumerMember,
        *,
        rebalance: bool,
    ) -> bool:
        """Convert the group with `joining` instead of `holder`. Return whether it was converted.

        The draft already contains the records of `joining`, so tombstones are written for its id.
        """
        members = draft.group.members
        # The joining member comes last, so that another member leads if there is one.
        staying = {id_: member for id_, member in members.items() if id_ != holder.member_id}
        staying[holder.member_id] = joining
        ended = [joining.member_id if id_ == holder.member_id else id_ for id_ in members]
        reason = "the assignment is out of date" if rebalance else None
        return self._convert(draft, staying, ended, reason)

    # -- conversion --------------------------------------------------------------------------------

    def _is_allowed(self, group: ConsumerGroup, size: int) -> bool:
        why = None
        if not self._configs.broker.migration_policy.allows_downgrade:
            why = "online downgrade is disabled"
        elif not self._classic_rebalance.has_room_for(size):
            why = f"its {size} members are more than group.max.size"
        if why is not None:
            logger.info("group %s cannot become a classic group: %s", group.group_id, why)
        return why is None

    def _convert(
        self,
        draft: ConsumerDraft,
        staying: Mapping[str, ConsumerMember],
        ended: Sequence[str],
        reason: str | None,
    ) -> bool:
        """Write the consumer group's tombstones and the classic group's record.

        `staying`: the members by the member id of their target. `ended`: the member ids that get
        tombstones. With a `reason` the classic group rebalances.
        """
        group = draft.group
        try:
            classic = _classic_group(group, list(staying.values()), draft.now)
            assignments = {
                member.member_id: assignment_bytes(
                    group.target(known_id), _metadata(classic, member.member_id), self._topics
                )
                for known_id, member in staying.items()
            }
        except DecodeError as error:
            logger.warning("group %s stays a consumer group: %s", group.group_id, error)
            return False
        draft.records += group_tombstones(
            group.group_id, ended, group.subscriptions.resolved_regexes
        )
        draft.records.append(group_record(group.group_id, generation_value(classic, assignments)))
        ended_ids = frozenset({*group.members, *ended})
        draft.then.append(partial(self._after_conversion, classic, ended_ids, reason, draft.now))
        return True

    def _after_conversion(
        self, planned: ClassicGroup, ended_ids: frozenset[str], reason: str | None, now: Now
    ) -> None:
        """Set the classic group's unjournaled state, and start a rebalance if there is a reason."""
        group = self._find(planned.group_id)
        for member_id in ended_ids:
            self._deadlines.cancel_all(MemberKey(group.group_id, member_id))
        for member in group.members.values():
            group.roster.change_protocols(member, planned.members[member.member_id].protocols)
            self._classic_rebalance.deadlines.extend_session(group, member, now)
        logger.info(
            "group %s: the consumer group of epoch %d is now a classic group",
            group.group_id, group.generation_id,
        )  # fmt: skip
        if reason is not None:
            # No member has joined yet, so the rebalance writes no record.
            self._classic_rebalance.rebalance(group, reason, now)


def _classic_group(
    group: ConsumerGroup, members: Sequence[ConsumerMember], now: Now
) -> ClassicGroup:
    """Plan the classic group, without assignments, from which its record is made.

    Raises DecodeError if the members have no protocol in common.
    """
    classic = ClassicGroup(group.group_id, now.wall_ms)
    for member in members:
        classic.add(_classic_member(member))
    offered = names_of(protocols_of(members[0]))
    if not classic.roster.support_one_of(offered):
        raise DecodeError(f"its members have no protocol of {offered} in common")
    classic.generation_id = group.epoch
    classic.protocol_name = classic.roster.elected_protocol()
    return classic


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None, "members of the consumer protocol have left"
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols_of(member),
    )


def protocols_of(member: ConsumerMember) -> Protocols:
    """The protocols of a classic member, in its order of preference."""
    if member.classic is None:
        return ()
    return tuple(
        (protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols
    )


def _metadata(classic: ClassicGroup, member_id: str) -> bytes:
    return metadata_of(classic.members[member_id].protocols, classic.protocol_name)
