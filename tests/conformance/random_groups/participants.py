"""Who takes part in a conversation with one broker, and what that broker has told them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from odradek.protocol.primitives import ZERO_UUID

# Topic id -> partitions, as a heartbeat's answer gives them.
Assigned = dict[bytes, list[int]]
ADMIN = "admin"
UNKNOWN_ID = b"no topic's id..."


@dataclass(slots=True)
class GroupMember:
    """One member of a group, by both protocols: its client may change from one to the other.

    `told_id`: what the broker named it as a classic member; `phase`: what such a member is to do
    next.
    """

    name: str
    instance: str | None = None
    # the consumer protocol
    epoch: int = 0
    assigned: Assigned = field(default_factory=dict)
    # the classic protocol
    told_id: str = ""
    generation: int = -1
    protocol: str | None = None
    phase: str = "join"
    # Whom the broker made it lead, by their ids; nobody: it does not.
    led: list[str] = field(default_factory=list)
    parked: int = 0

    def forget_epoch(self) -> None:
        """It was fenced, or left."""
        self.epoch, self.assigned = 0, {}

    def forget_generation(self) -> None:
        """It is no member any more."""
        self.told_id, self.generation, self.phase, self.led = "", -1, "join", []


class Participants:
    """All who take part; `tag` is the conversation's, names of groups and topics begin with it."""

    def __init__(self, tag: str, groups: Sequence[str], seats: Sequence[GroupMember]) -> None:
        self.tag = tag
        self.seats = {
            (group, seat.name): GroupMember(seat.name, seat.instance)
            for group in groups
            for seat in seats
        }
        self.topic_ids: dict[str, bytes] = {}
        # By group, the ids that the broker gave out, in that order.
        self.given_ids: dict[str, list[str]] = {group: [] for group in groups}

    def seat(self, group: str, name: str) -> GroupMember:
        return self.seats[group, name]

    def of(self, group: str) -> list[GroupMember]:
        return [seat for (of, _), seat in self.seats.items() if of == group]

    def full(self, name: str) -> str:
        """The name that a broker knows a group or topic by; an empty one is the same for all."""
        return f"{self.tag}-{name}" if name else ""

    def topic_id(self, name: str) -> bytes:
        """The id of a topic, the one it had if it is no more."""
        return self.topic_ids.get(name, UNKNOWN_ID)

    def topic_name(self, topic_id: bytes) -> str:
        """The topic's name, without the tag."""
        if topic_id == ZERO_UUID:
            return ""
        return next((name for name, one in self.topic_ids.items() if one == topic_id), "?")
