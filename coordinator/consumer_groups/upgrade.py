"""From a classic group with members to a consumer group: one asks for it by joining by heartbeat.

The others go on as classic members of the new group, at the generation they are at, which becomes
the epoch of everything; what their leader last assigned is what they have, and their target.
Whoever waits for a rebalance of the old group is told to join again, for the new one's: with a
newcomer new targets are made. One that takes a static member's place would not make them necessary,
so a rebalance that was under way does; with Kafka, what its cause left behind is nobody's then.

    policy             group.consumer.migration.policy allows it
    protocol type      consumers only: Connect's workers, say, have no topics
    size               not beyond group.consumer.max.size
    assignments        only partitions; what else a custom assignor tells its members would be lost

A group that is empty needs none of this: its tombstone is written, and a new one begins.
Kafka: GroupMetadataManager.convertToConsumerGroup, ConsumerGroup.fromClassicGroup.
"""

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from odradek.coordinator.classic_groups.group import ClassicGroup, ClassicState
from odradek.coordinator.classic_groups.member import ClassicMember, Protocols, metadata_of
from odradek.coordinator.outcome import JournalRecord
from odradek.coordinator.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_group import ClassicMemberMetadata, ClassicProtocol
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE
from odradek.protocol.schema import DecodeError

from .client_protocol import CustomAssignorError, assignment_of, subscription_of
from .deadlines import MemberDeadlines, MemberKey
from .draft import Draft
from .group import ConsumerGroup
from .group_configs import ConsumerGroupConfigs
from .member import ConsumerMember
from .records import (
    current_assignment_record,
    epoch_record,
    subscription_record,
    target_epoch_record,
    target_record,
)
from .replay import replay
from .topics_view import ClusterTopics

logger = logging.getLogger("odradek.groups")

REJOIN = ErrorCode.REBALANCE_IN_PROGRESS
# The targets of the converted group were not made here: new ones may be made at once.
NEVER_MADE_MS = 0


class Upgrades:
    """Turns classic groups into consumer groups."""

    def __init__(
        self, *, topics: ClusterTopics, configs: ConsumerGroupConfigs, deadlines: MemberDeadlines
    ) -> None:
        self._topics = topics
        self._configs = configs
        self._deadlines = deadlines

    def convert(self, group: ClassicGroup, now: Now) -> Draft:
        """A draft about the group that it becomes, in which the records are that make it so.

        Raises ApiError: GROUP_ID_NOT_FOUND where it cannot become one; UNKNOWN_SERVER_ERROR where
        it has given a partition to two members.
        """
        self._check(group)
        try:
            members = self._members(group)
        except DecodeError as error:
            raise _refusal(group, f"a member's words cannot be read: {error}") from error
        except CustomAssignorError as error:
            raise _refusal(
                group, f"an unsupported custom assignor is in use ({error}); use a default one"
            ) from error
        _check_owners(group, members)
        records = list(self._records(group, members))
        draft = Draft(_replayed(group.group_id, records), now)
        draft.needs_new_target = group.state is not ClassicState.STABLE
        draft.records += (*group.tombstones(), *records)
        draft.then.append(partial(self._converted, group, now))
        return draft

    def _check(self, group: ClassicGroup) -> None:
        broker = self._configs.broker
        if not broker.migration_policy.allows_upgrade:
            raise _refusal(group, "online upgrade is disabled")
        if group.protocol_type != PROTOCOL_TYPE:
            raise _refusal(group, f"its protocol type is {group.protocol_type!r}")
        if len(group.members) > broker.max_size:
            raise _refusal(group, f"its {len(group.members)} members are more than fit")

    # -- the group as it becomes -------------------------------------------------------------------

    def _members(self, group: ClassicGroup) -> list[ConsumerMember]:
        """Raises DecodeError, CustomAssignorError."""
        if not group.members:
            return []
        name = _common_protocol(group)
        return [self._member(group, member, name) for member in group.members.values()]

    def _member(self, group: ClassicGroup, member: ClassicMember, name: str) -> ConsumerMember:
        epoch = group.generation_id
        subscription = subscription_of(metadata_of(member.protocols, name))
        owned = assignment_of(member.assignment, self._topics)
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
                for topic_id, partitions in owned.items()
            },
            classic=classic_metadata(member.session_timeout_ms, member.protocols),
        )

    def _records(
        self, group: ClassicGroup, members: Sequence[ConsumerMember]
    ) -> Iterator[JournalRecord]:
        """In Kafka's order."""
        group_id, epoch = group.group_id, group.generation_id
        topics = frozenset[str]().union(*(member.subscribed_topics for member in members))
        yield from (subscription_record(group_id, member) for member in members)
        yield epoch_record(group_id, epoch, self._topics.group_hash(topics))
        for member in members:
            target = {topic_id: frozenset(ones) for topic_id, ones in member.assigned.items()}
            yield target_record(group_id, member.member_id, target)
        yield target_epoch_record(group_id, epoch, NEVER_MADE_MS)
        yield from (current_assignment_record(group_id, member) for member in members)

    # -- when that is written ----------------------------------------------------------------------

    def _converted(self, group: ClassicGroup, now: Now) -> None:
        """Whoever waits is to join again; sessions are now those of the new group's members."""
        group.roster.refuse_all(REJOIN)
        for member in group.members.values():
            key = MemberKey(group.group_id, member.member_id)
            self._deadlines.sessions.schedule(key, now.timer_ms + member.session_timeout_ms)
        logger.info(
            "group %s: the classic group of generation %d is now a consumer group",
            group.group_id, group.generation_id,
        )  # fmt: skip


def classic_metadata(session_timeout_ms: int, protocols: Protocols) -> ClassicMemberMetadata:
    """What is remembered of a member of a consumer group that speaks the classic protocol."""
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols
        ],
    )


def _common_protocol(group: ClassicGroup) -> str:
    """The group's protocol; while it elects another one, or its first, what that would be.

    Kafka answers UNKNOWN_SERVER_ERROR in the midst of a first rebalance, for there is none yet.
    """
    name = group.protocol_name
    if name is not None and group.roster.support_one_of([name]):
        return name
    return group.roster.elected_protocol()


def _check_owners(group: ClassicGroup, members: Sequence[ConsumerMember]) -> None:
    """The leader may assign as it likes; in the new group a partition has one owner."""
    owners: dict[tuple[bytes, int], str] = {}
    for member in members:
        for topic_id, partitions in member.assigned.items():
            for partition in partitions:
                other = owners.setdefault((topic_id, partition), member.member_id)
                if other != member.member_id:
                    raise ApiError(
                        ErrorCode.UNKNOWN_SERVER_ERROR,
                        f"group {group.group_id} cannot become a consumer group: a partition is "
                        f"with {other} and with {member.member_id}",
                    )


def _replayed(group_id: str, records: Sequence[JournalRecord]) -> ConsumerGroup:
    """The group that these records make, for decisions to read."""
    groups: dict[str, ConsumerGroup] = {}
    for record in records:
        replay(groups, record.key, record.value)
    return groups[group_id]


def _refusal(group: ClassicGroup, why: str) -> ApiError:
    logger.info("group %s cannot become a consumer group: %s", group.group_id, why)
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group: {why}.",
    )
