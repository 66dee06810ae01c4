"""Metadata records that are not served, kept so that snapshots contain them.

The newest registration of each controller is kept until the next, or until it is removed. Records
of unknown types and versions have no known identity: all of them are kept as they are stored. So a
snapshot that odradek writes has all that the log before it had, and Apache Kafka can use it. Kafka:
ClusterImage.
"""

from odradek.protocol.records.cluster_metadata import (
    RegisterControllerRecord,
    UnregisterControllerRecord,
)


class KeptRecords:
    """Registrations of controllers, and unknown records. Only replay changes them."""

    def __init__(self) -> None:
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.unread: list[bytes] = []

    def replay_controller(self, record: RegisterControllerRecord) -> None:
        """Apply the registration of a controller, which it writes at each start."""
        self.controllers[record.controller_id] = record

    def replay_controller_removal(self, record: UnregisterControllerRecord) -> None:
        """Remove the registration of a controller."""
        self.controllers.pop(record.controller_id, None)
