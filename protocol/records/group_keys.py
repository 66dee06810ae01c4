"""The keys that most records of groups in `__consumer_offsets` have."""

from odradek.protocol.schema import Message, String


class GroupKey(Message, versions="0"):
    """The key of a record about a whole group."""

    group_id: String


class MemberKey(Message, versions="0"):
    """The key of a record about one member of a group."""

    group_id: String
    member_id: String
