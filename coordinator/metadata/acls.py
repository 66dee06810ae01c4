"""Access control lists, as the metadata log has them: one record for each entry.

Kafka: AclsImage.
"""

from collections.abc import Iterable

from odradek.protocol.records.cluster_metadata import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)


class Acls:
    """The entries by their id. Only replay changes them."""

    def __init__(self) -> None:
        self.by_id: dict[bytes, AccessControlEntryRecord] = {}

    def records(self) -> Iterable[AccessControlEntryRecord]:
        """The records of a snapshot."""
        return tuple(self.by_id.values())

    def replay(self, record: AccessControlEntryRecord) -> None:
        """Add an entry."""
        self.by_id[record.id] = record

    def replay_removal(self, record: RemoveAccessControlEntryRecord) -> None:
        """Remove an entry."""
        self.by_id.pop(record.id, None)
