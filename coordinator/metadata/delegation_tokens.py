"""Delegation tokens, as the metadata log has them.

Kafka: DelegationTokenImage.
"""

from collections.abc import Iterable

from odradek.protocol.records.cluster_metadata import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)


class DelegationTokens:
    """The tokens by their id. Only replay changes them."""

    def __init__(self) -> None:
        self.by_id: dict[str, DelegationTokenRecord] = {}

    def records(self) -> Iterable[DelegationTokenRecord]:
        """The records of a snapshot."""
        return tuple(self.by_id.values())

    def replay(self, record: DelegationTokenRecord) -> None:
        """Add or renew a token."""
        self.by_id[record.token_id] = record

    def replay_removal(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove a token."""
        self.by_id.pop(record.token_id, None)
