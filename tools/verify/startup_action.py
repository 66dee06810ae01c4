"""Predicts what a broker's start does about a damaged segment.

After an unclean stop every segment from the recovery point on is checked. The log is cut at its
first damaged batch: the rest of that segment and all later segments are removed.

After a clean stop Apache Kafka checks nothing. odradek looks whether the last segment ends with a
whole batch, and else recovers it.

Apache Kafka recovers the metadata log at each start, from its beginning. odradek reads it at each
start, and after a clean stop refuses a batch that is damaged.

Kafka: LogLoader.recoverLog, KafkaRaftLog.createLog.
"""

from collections.abc import Callable

from odradek.storage.log_reader import SegmentFile

_SERVED = "reads of it fail, the data before and after it is served"
_NOT_CHECKED = "recovery does not check this: the data is served as it is"


class StartupAction:
    """The action for one segment; str() describes it. `following` are the log's later segments.

    `ends_whole` returns whether a start takes the segment's end for a whole batch.
    """

    def __init__(
        self,
        segment: SegmentFile,
        following: list[SegmentFile],
        recovery_point: int,
        ends_whole: Callable[[], bool],
        *,
        stopped_cleanly: bool,
        is_metadata: bool,
    ) -> None:
        self._segment = segment
        self._following = following
        self._recovery_point = recovery_point
        self._ends_whole = ends_whole
        self._stopped_cleanly = stopped_cleanly
        self._is_metadata = is_metadata
        self._damaged_at: int | None = None
        self._is_readable = True

    @property
    def is_in_use(self) -> bool:
        """Whether a broker was writing to the segment when it ended, or still is."""
        return not self._following and not self._stopped_cleanly

    def note_damage(self, position: int, *, is_readable: bool) -> None:
        """Note damage that recovery finds, at this byte; it cuts the log at the first.

        `is_readable`: whether reads go on at the damage, or end there without an error.
        """
        if self._damaged_at is None:
            self._damaged_at = position
        self._is_readable &= is_readable

    def __str__(self) -> str:
        if self._is_metadata and self._stopped_cleanly:
            return self._of_metadata()
        if self._stopped_cleanly:
            unchecked = f"after a clean stop it is not checked: {_SERVED}"
            if self._damaged_at is None or self._is_end_whole():
                return unchecked
            recovered = f"odradek finds no whole batch at the end: {self._cut(self._damaged_at)}"
            return f"{recovered}. Apache Kafka: {unchecked}"
        if self._following and self._following[0].base_offset <= self._recovery_point:
            return f"recovery begins after it, at offset {self._recovery_point}: {_SERVED}"
        return _NOT_CHECKED if self._damaged_at is None else self._cut(self._damaged_at)

    def _of_metadata(self) -> str:
        if self._damaged_at is None:
            return _NOT_CHECKED
        cut = self._cut(self._damaged_at)
        if not self._is_readable:
            what = "refuses to start, unless a later snapshot has what is in the batch"
        elif self._is_end_whole():
            what = "does not check this after a clean stop"
        else:
            return cut
        return f"odradek {what}. Apache Kafka: {cut}"

    def _is_end_whole(self) -> bool:
        return bool(self._following) or self._ends_whole()

    def _cut(self, position: int) -> str:
        lost = self._segment.size_bytes - position
        later = len(self._following)
        more = f" and {later} later segment{'s' * (later > 1)}" if later else ""
        return f"recovery cuts this segment at byte {position}: {lost} bytes{more} are lost"
