"""The topic settings that are fixed when a segment is created."""

import zlib
from pathlib import Path

from odradek.config.topic_config import TopicConfig

from .segment import SegmentShape


def shape_of(config: TopicConfig, directory: Path, base_offset: int) -> SegmentShape:
    """The shape of the segment that begins at `base_offset` of the log in `directory`.

    `segment.jitter.ms` spreads the rolling of segments that were created at the same time. Kafka
    chooses the jitter at random. Here it is a checksum of the names, which is as well spread and
    does not change after a restart.
    """
    jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
    if jitter_ms:
        jitter_ms = zlib.crc32(f"{directory.name}/{base_offset}".encode()) % jitter_ms
    return SegmentShape(config.index_interval_bytes, config.segment_index_bytes, jitter_ms)
