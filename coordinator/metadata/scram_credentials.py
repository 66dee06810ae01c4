"""The credentials of SCRAM users, as the metadata log has them.

Kafka: ScramImage.
"""

from collections.abc import Iterable

from odradek.protocol.records.cluster_metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)


class ScramCredentials:
    """The newest credential of each mechanism and user. Only replay changes them."""

    def __init__(self) -> None:
        self.by_user: dict[tuple[int, str], UserScramCredentialRecord] = {}

    def records(self) -> Iterable[UserScramCredentialRecord]:
        """The records of a snapshot."""
        return tuple(self.by_user.values())

    def replay(self, record: UserScramCredentialRecord) -> None:
        """Set a user's credential for one mechanism."""
        self.by_user[record.mechanism, record.name] = record

    def replay_removal(self, record: RemoveUserScramCredentialRecord) -> None:
        """Remove a user's credential for one mechanism."""
        self.by_user.pop((record.mechanism, record.name), None)
