"""Topics that were deleted a moment ago. Metadata requests do not create them again yet.

A producer whose topic is deleted learns it from its next Produce and asks for the metadata at once,
which creates the topic. An administrator who deletes a topic and creates it with other settings
would find it there. Kafka's brokers see a deletion only when it is committed, as the administrator
does, and a creation waits for the controller (25 ms, controller.quorum.append.linger.ms). Here
producers see a deletion before it is synced and answered, and a creation takes a millisecond.
"""

from collections.abc import Callable, Iterable

KEPT_MS = 250
"""After the answer to a deletion. Clients that create topics ask again and again."""
UNANSWERED_MS = 10_000
"""While a deletion is not answered yet. It never is if the administrator has disconnected."""


class RecentDeletions:
    """The names of the deleted topics. `timer_ms` is a monotonic clock."""

    def __init__(self, timer_ms: Callable[[], int]) -> None:
        self._timer_ms = timer_ms
        self._until_ms: dict[str, int] = {}

    def begin(self, names: Iterable[str]) -> None:
        """Topics were deleted, and nobody has got the answer yet."""
        self._keep(names, UNANSWERED_MS)

    def answered(self, names: Iterable[str]) -> None:
        """The deletion of topics is answered now."""
        self._keep(names, KEPT_MS)

    def _keep(self, names: Iterable[str], kept_ms: int) -> None:
        now_ms = self._timer_ms()
        self._until_ms = {name: end for name, end in self._until_ms.items() if end > now_ms}
        self._until_ms.update(dict.fromkeys(names, now_ms + kept_ms))

    def __contains__(self, name: str) -> bool:
        return self._until_ms.get(name, 0) > self._timer_ms()

    def forget(self) -> None:
        """Forget all names: tests of users begin with a broker that is like new."""
        self._until_ms.clear()
