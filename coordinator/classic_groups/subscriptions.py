"""The topics to which the consumers of a classic group subscribe.

They are asked for when offsets expire or are deleted, and not when a generation begins. So they are
decoded when they are first asked for: a thousand members may have metadata with ten thousand topics
each. Kafka decodes them when a generation begins; the answers are the same.
"""

from collections.abc import Iterable, Iterator

from odradek.protocol.records.consumer_protocol import topics_in_parts
from odradek.protocol.schema import DecodeError


class ClassicSubscriptions:
    """The subscriptions of one generation."""

    def __init__(self, metadata: Iterable[bytes] | None) -> None:
        """`metadata`: the members' for the elected protocol; None: the topics cannot be known."""
        self._undecoded = [] if metadata is None else list(metadata)
        self._decoded: set[bytes] = set()
        self._topics: set[str] | None = None if metadata is None else set()

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics of all members; None if they cannot be known."""
        for _ in self.decode():
            pass
        return None if self._topics is None else frozenset(self._topics)

    @property
    def are_known(self) -> bool:
        """Whether the topics are known."""
        for _ in self.decode():
            pass
        return self._topics is not None

    def include(self, topic: str) -> bool:
        """Whether a member subscribes to the topic; False if that cannot be known."""
        return self.are_known and topic in (self._topics or ())

    def decode(self) -> Iterator[None]:
        """Decode what is not decoded yet, a part before each item. Several may do so in turn."""
        while self._undecoded:
            metadata = self._undecoded[-1]
            if metadata not in self._decoded:  # most members of a large group have the same
                yield from self._decode(metadata)
            if self._undecoded and self._undecoded[-1] is metadata:
                self._undecoded.pop()
                self._decoded.add(metadata)
        self._decoded.clear()

    def _decode(self, metadata: bytes) -> Iterator[None]:
        try:
            for part in topics_in_parts(metadata):
                if self._topics is not None:
                    self._topics.update(part)
                yield
        except DecodeError:
            self._topics = None
            self._undecoded.clear()
