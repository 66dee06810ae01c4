"""The reader of a streaming query whose batches can be limited. Needs Spark 4.2."""

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from .stream_offsets import from_json_object
from .stream_reader import JsonOffsets, OdradekStreamReader


class LimitedStreamReader(OdradekStreamReader, SupportsTriggerAvailableNow):
    """Plans each batch from where it begins."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name, as all that follow
        """Return one limit. If both are set, the planner applies the minimum."""
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:  # noqa: N802
        at_most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = self.planner.next_end(
            from_json_object(start), at_most, may_wait=not isinstance(limit, ReadAllAvailable)
        )
        return end.as_json_object()

    def reportLatestOffset(self) -> JsonOffsets | None:  # noqa: N802
        return self.planner.last_ends.as_json_object() or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.planner.stop_at_current_ends()
