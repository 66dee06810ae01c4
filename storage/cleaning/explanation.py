"""Explains why the cleaner has not taken a segment yet, or has.

plan.py decides. This says for each segment what that means; retention_explanation.py does the same
for the deletion of segments.
"""

from odradek.config.topic_config import TopicConfig
from odradek.storage.retention_explanation import SegmentFacts
from odradek.storage.time_text import duration

from .plan import LogToClean


def why_not_cleaned(
    segment: SegmentFacts,
    state: LogToClean,
    config: TopicConfig,
    *,
    is_active: bool,
    last_stable_offset: int,
) -> str:
    """Say what the cleaner does with a segment of a compacted log that it may clean."""
    if is_active:
        return "it is the active segment: it can be cleaned once another one follows it"
    if segment.end_offset <= state.first_dirty_offset:
        return f"it is clean: the cleaner has been here, up to offset {state.first_dirty_offset}"
    if segment.base_offset < state.first_uncleanable_offset:
        return _why_not_due(state, config)
    if segment.end_offset > last_stable_offset:
        return f"a transaction is open from offset {last_stable_offset} on"
    lag_ms = config.min_compaction_lag_ms
    return (
        "it, or a segment before it, has a record that is younger than min.compaction.lag.ms,"
        f" which is {lag_ms} ({duration(lag_ms)})"
    )


def _why_not_due(state: LogToClean, config: TopicConfig) -> str:
    ratio = config.min_cleanable_dirty_ratio
    if state.is_due(ratio):
        return "it is dirty, and the log is due: the cleaner takes it as soon as it can"
    return (
        f"it is dirty, but {state.cleanable_ratio:.0%} of the log's bytes are, and that is not over"
        f" min.cleanable.dirty.ratio ({ratio}); max.compaction.lag.ms is not over either"
    )
