"""Who wants to know how far a job is."""

from typing import Protocol


class Told(Protocol):
    """Is told while a job runs."""

    def total(self, description: str, parts: int) -> None:
        """So much is to be done now."""

    def done(self, parts: int) -> None:
        """So much more of it has been done."""


class _Quiet:
    def total(self, description: str, parts: int) -> None:
        """Nobody hears."""

    def done(self, parts: int) -> None:
        """Nobody hears."""


QUIET = _Quiet()
