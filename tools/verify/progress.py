"""Counts the bytes that a verification has read, for a progress bar."""

from collections.abc import Callable


class Progress:
    """Adds up bytes, and passes the sum to `report` once it is 4 MiB or more."""

    _STEP_BYTES = 4 << 20

    def __init__(self, report: Callable[[int], object] | None = None) -> None:
        self._report = report
        self._unreported_bytes = 0

    def advance(self, size: int) -> None:
        """Add `size` bytes."""
        self._unreported_bytes += size
        if self._report is not None and self._unreported_bytes >= self._STEP_BYTES:
            self._report(self._unreported_bytes)
            self._unreported_bytes = 0
