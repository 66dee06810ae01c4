"""What a start does about a segment that is broken somewhere.

After a clean stop no batch is read again. After an unclean one every segment from the recovery
point on is read, and where the first unsound batch begins the log ends: the rest of that segment
and all later segments go. Kafka: LogLoader.recoverLog.
"""

from odradek.storage.log_reader import SegmentFile


class SegmentFate:
    """Of one segment; `following` are those behind it."""

    def __init__(
        self,
        segment: SegmentFile,
        following: list[SegmentFile],
        recovery_point: int,
        *,
        stopped_cleanly: bool,
    ) -> None:
        self._segment = segment
        self._following = following
        self._recovery_point = recovery_point
        self._stopped_cleanly = stopped_cleanly
        self._broken_at: int | None = None

    @property
    def is_in_use(self) -> bool:
        """Whether it was being written to when its broker ended, or still is."""
        return not self._following and not self._stopped_cleanly

    def note_broken(self, position: int) -> None:
        """The first such place counts."""
        if self._broken_at is None:
            self._broken_at = position

    def __str__(self) -> str:
        served = "reads of it fail, what lies around it is served"
        if self._stopped_cleanly:
            return f"after a clean stop it is not looked at: {served}"
        if self._following and self._following[0].base_offset <= self._recovery_point:
            return f"recovery begins behind it, at offset {self._recovery_point}: {served}"
        cut = self._segment.size_bytes - (self._broken_at or 0)
        later = len(self._following)
        more = f" and {later} later segment{'s' * (later > 1)}" if later else ""
        return f"recovery ends the log at byte {self._broken_at or 0}: {cut} bytes{more} go"
