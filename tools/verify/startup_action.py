"""Predicts what a broker's start does about a damaged segment.

After a clean stop no batch is checked. After an unclean stop every segment from the recovery point
on is checked. The log is cut at its first damaged batch: the rest of that segment and all later
segments are removed.

Kafka: LogLoader.recoverLog.
"""

from odradek.storage.log_reader import SegmentFile


class StartupAction:
    """The action for one segment; str() describes it. `following` are the log's later segments."""

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
        self._damaged_at: int | None = None

    @property
    def is_in_use(self) -> bool:
        """Whether a broker was writing to the segment when it ended, or still is."""
        return not self._following and not self._stopped_cleanly

    def note_damage(self, position: int) -> None:
        """Note the byte of damage that recovery finds. Only the first call counts."""
        if self._damaged_at is None:
            self._damaged_at = position

    def __str__(self) -> str:
        served = "reads of it fail, the data before and after it is served"
        if self._stopped_cleanly:
            return f"after a clean stop it is not checked: {served}"
        if self._following and self._following[0].base_offset <= self._recovery_point:
            return f"recovery begins after it, at offset {self._recovery_point}: {served}"
        if self._damaged_at is None:
            return "recovery does not check this: the data is served as it is"
        lost = self._segment.size_bytes - self._damaged_at
        later = len(self._following)
        more = f" and {later} later segment{'s' * (later > 1)}" if later else ""
        return f"recovery cuts this segment at byte {self._damaged_at}: {lost} bytes{more} are lost"
