"""The topic settings that an append uses, as plain values.

They are sent to worker processes that check the records of batches (record_walk.py). Those
processes need not import the configuration classes, which takes about 0.1 s. So TopicConfig is
imported here for type checking only.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from odradek.protocol.compression import CompressionType

if TYPE_CHECKING:
    from odradek.config.topic_config import TopicConfig


NO_RECORD_LIMIT = (1 << 31) - 9  # the longest array that a JVM makes


class AppendRules(Struct, frozen=True, kw_only=True):
    """The topic settings that an append uses."""

    max_message_bytes: int
    compression: CompressionType | None  # None keeps the producer's codec
    compression_level: int | None  # None: the codec's default
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    compacted: bool
    read_records: bool
    max_record_bytes: int = NO_RECORD_LIMIT  # of a record of a compressed batch, uncompressed

    @classmethod
    def of(cls, config: "TopicConfig", *, validate_records: bool = False) -> "AppendRules":
        """The rules of one topic; with `validate_records` the records of every batch are read."""
        compacted = config.compact
        compression, compression_level = target_compression(config)
        before_max_ms = config.message_timestamp_before_max_ms
        max_record_bytes = config.max_decompressed_message_bytes
        log_append_time = config.message_timestamp_type == "LogAppendTime"
        return cls(
            max_message_bytes=config.max_message_bytes,
            compression=compression,
            compression_level=compression_level,
            log_append_time=log_append_time,
            timestamp_before_max_ms=before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            compacted=compacted,
            read_records=validate_records
            or compacted
            or max_record_bytes < NO_RECORD_LIMIT
            or (before_max_ms < _NO_BOUND_MS and not log_append_time),
            max_record_bytes=max_record_bytes,
        )


_NO_BOUND_MS = 2**63 - 1
_COMPRESSION_NAMES = {
    "producer": None,
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}


def target_compression(config: "TopicConfig") -> tuple[CompressionType | None, int | None]:
    """The codec and level of a topic's batches; (None, None) if producers choose the codec."""
    target = _COMPRESSION_NAMES[config.compression_type]
    levels = {
        CompressionType.GZIP: config.compression_gzip_level,
        CompressionType.LZ4: config.compression_lz4_level,
        CompressionType.ZSTD: config.compression_zstd_level,
    }
    return target, None if target is None else levels.get(target)
