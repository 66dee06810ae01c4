"""The members of a classic group, and the protocols that all of them support.

Every join needs the number of members that have joined, and the protocols that all members support.
Both are kept as counts, so that the thousandth join of a group costs as much as the first. Only the
end of a phase of a rebalance, which answers every member anyway, iterates over the members. Joins
are parked and answered only here, to keep the count right. Kafka: the maps and counters of
ClassicGroup.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

from .member import ClassicMember, JoinReply
from .protocols import Protocols, elect_protocol, names_of


class ClassicRoster:
    """The members by id, in the order in which they joined the group."""

    def __init__(self) -> None:
        # Ordered: the first of a dict is found slowly after thousands before it have left.
        self.by_id: OrderedDict[str, ClassicMember] = OrderedDict()
        self.static_member_ids: dict[str, str] = {}
        # How many members have a join parked.
        self.joined = 0
        self.changes = 0
        """How many times a member was added or removed, or has changed its protocols."""
        self._supporters: Counter[str] = Counter()

    # -- members -----------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        self.changes += 1
        self.by_id[member.member_id] = member
        self.joined += member.awaits_join
        self._count(member.protocols, 1)
        if member.group_instance_id is not None:
            self.static_member_ids[member.group_instance_id] = member.member_id

    def remove(self, member_id: str, error: ErrorCode) -> ClassicMember | None:
        """Remove a member and answer its parked requests with `error`. Returns None if unknown."""
        member = self.by_id.pop(member_id, None)
        if member is None:
            return None
        self.changes += 1
        if member.join_reply is not None:
            self.answer_join(member, JoinGroupResponse(error_code=error))
        if member.sync_reply is not None:
            member.answer_sync(SyncGroupResponse(error_code=error))
        member.cancel_session()
        self._count(member.protocols, -1)
        if member.group_instance_id is not None:
            del self.static_member_ids[member.group_instance_id]
        return member

    def rename(self, old_id: str, new_id: str) -> ClassicMember:
        """Give a static member a new id. Requests parked with the old id: FENCED_INSTANCE_ID."""
        old = self.by_id[old_id]
        self.answer_join(
            old, JoinGroupResponse(member_id=old_id, error_code=ErrorCode.FENCED_INSTANCE_ID)
        )
        self.remove(old_id, ErrorCode.FENCED_INSTANCE_ID)
        member = old.renamed(new_id)
        self.add(member)
        return member

    def exchange(self, successor: ClassicMember) -> None:
        """Put a member in the place of the static one whose instance id it has."""
        replaced = self.of_instance(successor.group_instance_id)
        assert replaced is not None, f"no member has {successor.group_instance_id}"
        members = [successor if each is replaced else each for each in self.by_id.values()]
        self.remove(replaced.member_id, ErrorCode.FENCED_INSTANCE_ID)
        self.add(successor)
        self.by_id = OrderedDict((member.member_id, member) for member in members)

    def change_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        if protocols == member.protocols:
            return
        self.changes += 1
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def of_instance(self, instance: str | None) -> ClassicMember | None:
        """Return the static member of this group.instance.id; None if there is none."""
        return (
            None if instance is None else self.by_id.get(self.static_member_ids.get(instance, ""))
        )

    # -- joins -------------------------------------------------------------------------------------

    @property
    def all_have_joined(self) -> bool:
        return self.joined == len(self.by_id)

    def park_join(self, member: ClassicMember, reply: JoinReply) -> None:
        """Park the member's join. An earlier parked join is dropped without an answer."""
        self.joined += not member.awaits_join
        member.join_reply = reply

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        """Answer the member's parked join, if it has one."""
        reply = self.take_join(member)
        if reply is not None:
            reply(response)

    def take_join(self, member: ClassicMember) -> JoinReply | None:
        """Return the member's parked join, which the caller answers; None if it has none."""
        reply, member.join_reply = member.join_reply, None
        self.joined -= reply is not None
        return reply

    def refuse_all(self, error: ErrorCode) -> None:
        """Answer all parked joins and syncs with this error."""
        for member in self.by_id.values():
            self.refuse(member, error)

    def refuse(self, member: ClassicMember, error: ErrorCode) -> None:
        """Answer the member's parked join or sync with this error."""
        self.answer_join(member, JoinGroupResponse(member_id=member.member_id, error_code=error))
        member.answer_sync(SyncGroupResponse(error_code=error))

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members. Iterates over all: once per rebalance."""
        return max([0, *(member.rebalance_timeout_ms for member in self.by_id.values())])

    # -- protocols ---------------------------------------------------------------------------------

    def support_one_of(self, names: Iterable[str]) -> bool:
        """Whether all members support one of these protocols."""
        return len(self.by_id) in map(self._supporters.__getitem__, names)

    def elected_protocol(self) -> str:
        """Return the protocol that the members elect. There must be a member."""
        return elect_protocol(names_of(member.protocols) for member in self.by_id.values())

    def _count(self, protocols: Protocols, change: int) -> None:
        for name in names_of(protocols):
            self._supporters[name] += change
