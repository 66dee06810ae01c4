"""The producers of a conversation, and what one broker has told them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from odradek.protocol.batch_header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from tests.conformance.random_groups.participants import GroupMember, Participants

Place = tuple[str, int]  # a topic's name without the tag, and a partition
# Added to a producer id, it gives one that no producer has.
WRONG_ID = 10_000_000


@dataclass(slots=True)
class Producer:
    """One instance of a producer; several may have the same transactional id.

    `transactional_id` has no tag; None: the producer is only idempotent.
    """

    name: str
    transactional_id: str | None
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH
    is_fenced: bool = False
    is_open: bool = False
    sequences: dict[Place, int] = field(default_factory=dict)
    # What it has added to the open transaction itself.
    added: set[Place] = field(default_factory=set)
    added_groups: set[str] = field(default_factory=set)

    def start(self, producer_id: int, epoch: int) -> None:
        """Use this id and epoch from now on. Sequences begin again with each of them."""
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch
        self.is_fenced = False
        self.end()

    def end(self) -> None:
        """No transaction is open."""
        self.is_open = False
        self.added.clear()
        self.added_groups.clear()


class TransactionParticipants(Participants):
    """Members of groups, and producers."""

    def __init__(
        self,
        tag: str,
        groups: Sequence[str],
        seats: Sequence[GroupMember],
        producers: Sequence[Producer],
    ) -> None:
        super().__init__(tag, groups, seats)
        self.producers = {
            each.name: Producer(each.name, each.transactional_id) for each in producers
        }
        # Those that the broker gave out, in that order.
        self.producer_ids: list[int] = []

    def topic_id(self, name: str) -> bytes:
        """The id of a topic, the one it had if it is no more; each that never was has its own."""
        return self.topic_ids.get(name, f"no topic {name}".ljust(16).encode())

    def transactional_ids(self) -> list[str]:
        """All of the conversation, with the tag."""
        names = {each.transactional_id for each in self.producers.values()}
        return sorted(self.full(name) for name in names if name is not None)

    def note_producer_id(self, producer_id: int) -> None:
        """Remember an id that the broker gave out."""
        if producer_id >= 0 and producer_id not in self.producer_ids:
            self.producer_ids.append(producer_id)
