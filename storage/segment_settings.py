"""The topic settings that are fixed when a segment is created.

The cleaning process needs SegmentSettings but not TopicConfig, whose import takes about 0.1 s. So
TopicConfig is imported here for type checking only.
"""

import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from .shared import shared

if TYPE_CHECKING:
    from odradek.config.topic_config import TopicConfig

# From an entry of the offset index on, a lookup reads all headers: a millisecond for 64 KiB of the
# smallest batches, and 12 seconds for a segment of 1 GiB without entries.
MAX_INDEX_INTERVAL_BYTES = 64 << 10


class SegmentSettings(Struct, frozen=True, gc=False):
    """The settings of one segment. `jitter_ms` is how much earlier than segment.ms it is rolled."""

    index_interval_bytes: int
    index_bytes: int
    jitter_ms: int = 0

    @classmethod
    def of(cls, config: "TopicConfig", directory: Path, base_offset: int) -> "SegmentSettings":
        """The settings of the segment that begins at `base_offset` of the log in `directory`.

        `segment.jitter.ms` spreads the rolling of segments that were created at the same time.
        Kafka chooses the jitter at random. Here it is a checksum of the names, which is as well
        spread and does not change after a restart.
        """
        jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
        if jitter_ms:
            jitter_ms = zlib.crc32(f"{directory.name}/{base_offset}".encode()) % jitter_ms
        interval_bytes = min(config.index_interval_bytes, MAX_INDEX_INTERVAL_BYTES)
        settings = cls(interval_bytes, config.segment_index_bytes, jitter_ms)
        return settings if jitter_ms else shared(settings)
