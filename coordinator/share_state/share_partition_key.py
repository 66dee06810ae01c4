"""Identifies what a share group knows about one partition: a share-partition (KIP-932)."""

from typing import NamedTuple, Self

from odradek.protocol.primitives import uuid_from_text, uuid_text


class SharePartitionKey(NamedTuple):
    """A group, the id of a topic (16 bytes), and a partition of it. Kafka: SharePartitionKey."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def text(self) -> str:
        """The text that is hashed to find the partition of `__share_group_state`."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `text`. Raises ValueError."""
        rest, _, partition = text.rpartition(":")
        group_id, _, topic_id = rest.rpartition(":")
        if not group_id.strip():
            raise ValueError(f"{text!r} is not group:topic id:partition")
        return cls(group_id, uuid_from_text(topic_id), int(partition))
