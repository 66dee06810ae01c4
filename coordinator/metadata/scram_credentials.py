"""The credentials of SCRAM users, as the metadata log has them.

Kafka: ScramImage.
"""

from collections import Counter
from collections.abc import Iterable

from odradek.protocol.records.cluster_metadata import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)


class ScramCredentials:
    """The newest credential of each mechanism and user. Only replay changes them."""

    def __init__(self) -> None:
        self.by_user: dict[tuple[int, str], UserScramCredentialRecord] = {}
        self._users: dict[int, Counter[int]] = {}  # by mechanism and iterations

    def records(self) -> Iterable[UserScramCredentialRecord]:
        """The records of a snapshot."""
        return tuple(self.by_user.values())

    def decoy_iterations(self, mechanism: int, number: int) -> int | None:
        """The iterations for a name without a credential: those of one of the mechanism's users.

        The number chooses the user. None if there are no users.
        """
        users = self._users.get(mechanism, Counter())
        left = number % max(users.total(), 1)
        for iterations in sorted(users):
            left -= users[iterations]
            if left < 0:
                return iterations
        return None

    def replay(self, record: UserScramCredentialRecord) -> None:
        """Set a user's credential for one mechanism."""
        mechanism, iterations = record.mechanism, record.iterations
        self._remove(mechanism, record.name)
        self.by_user[mechanism, record.name] = record
        users = self._users.get(mechanism)
        if users is None:
            users = self._users[mechanism] = Counter()
        users[iterations] += 1

    def replay_removal(self, record: RemoveUserScramCredentialRecord) -> None:
        """Remove a user's credential for one mechanism."""
        self._remove(record.mechanism, record.name)

    def _remove(self, mechanism: int, name: str) -> None:
        old = self.by_user.pop((mechanism, name), None)
        if old is not None:
            users = self._users[mechanism]
            users[old.iterations] -= 1
            if not users[old.iterations]:
                del users[old.iterations]
