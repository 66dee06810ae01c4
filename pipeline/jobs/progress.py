"""The interface that a job reports its progress to."""

from typing import Protocol


class Progress(Protocol):
    """A job calls these methods while it runs."""

    def total(self, description: str, parts: int) -> None:
        """Begin a phase with this many parts."""

    def done(self, parts: int) -> None:
        """Add parts that are done."""


class _NoProgress:
    def total(self, description: str, parts: int) -> None:
        """Ignore it."""

    def done(self, parts: int) -> None:
        """Ignore it."""


NO_PROGRESS = _NoProgress()
