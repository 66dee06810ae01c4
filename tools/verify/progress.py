"""How far a verification has come, for those who wait for it."""

from collections.abc import Callable


class Progress:
    """Counts bytes; `tell` is called with how many more there are, not too often."""

    _STEP_BYTES = 4 << 20

    def __init__(self, tell: Callable[[int], object] | None = None) -> None:
        self._tell = tell
        self._untold_bytes = 0

    def advance(self, size: int) -> None:
        """So many more were looked at."""
        self._untold_bytes += size
        if self._tell is not None and self._untold_bytes >= self._STEP_BYTES:
            self._tell(self._untold_bytes)
            self._untold_bytes = 0
