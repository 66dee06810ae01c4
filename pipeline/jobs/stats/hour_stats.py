"""The sums of one topic in one hour, or in several hours: sums can be merged."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from .sketches import KeySketch, SizeSketch

HOUR_MS = 3_600_000


@dataclass(slots=True)
class CodecStats:
    """The batches of one codec. `raw_bytes` is their size without compression."""

    batches: int = 0
    records: int = 0
    stored_bytes: int = 0
    raw_bytes: int = 0

    @property
    def ratio(self) -> float:
        """The size without compression, divided by the stored size; 1 if nothing is stored."""
        return self.raw_bytes / self.stored_bytes if self.stored_bytes else 1.0

    def merge(self, other: "CodecStats") -> None:
        """Add another's sums."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(slots=True)
class HourStats:
    """A record counts in the hour of its timestamp, a batch in that of its largest timestamp.

    The size of a record is that of its key, value and headers.
    """

    records: int = 0
    markers: int = 0
    null_keys: int = 0
    tombstones: int = 0
    transactional_records: int = 0
    log_append_time_records: int = 0
    untimed_records: int = 0  # of magic 0
    out_of_order_records: int = 0  # older than the record before them
    key_bytes: int = 0
    value_bytes: int = 0
    first_ms: int = -1
    last_ms: int = -1
    codecs: dict[str, CodecStats] = field(default_factory=dict)
    sizes: SizeSketch = field(default_factory=SizeSketch)
    batch_records: SizeSketch = field(default_factory=SizeSketch)
    batch_bytes: SizeSketch = field(default_factory=SizeSketch)
    keys: KeySketch = field(default_factory=KeySketch)

    @property
    def stored_bytes(self) -> int:
        """The size of all batches, including those of markers."""
        return sum(each.stored_bytes for each in self.codecs.values())

    @property
    def raw_bytes(self) -> int:
        """The size of all batches without compression."""
        return sum(each.raw_bytes for each in self.codecs.values())

    @property
    def batches(self) -> int:
        """The number of batches, including those of markers."""
        return sum(each.batches for each in self.codecs.values())

    @property
    def ratio(self) -> float:
        """The size without compression, divided by the stored size; 1 if nothing is stored."""
        return self.raw_bytes / self.stored_bytes if self.stored_bytes else 1.0

    def codec(self, name: str) -> CodecStats:
        """Return the sums of a codec."""
        return self.codecs.setdefault(name, CodecStats())

    def add_times(self, first_ms: int, last_ms: int) -> None:
        """Add the smallest and the largest timestamp of some records."""
        if last_ms >= 0:
            self.first_ms = first_ms if self.first_ms < 0 else min(self.first_ms, first_ms)
            self.last_ms = max(self.last_ms, last_ms)

    def merge(self, other: "HourStats") -> None:
        """Add another's sums."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.add_times(other.first_ms, other.last_ms)
        for codec, stats in other.codecs.items():
            self.codec(codec).merge(stats)
        self.sizes.merge(other.sizes)
        self.batch_records.merge(other.batch_records)
        self.batch_bytes.merge(other.batch_bytes)
        self.keys.merge(other.keys)


_COUNTS = tuple(each.name for each in fields(HourStats) if each.default == 0)


def merge_hours(parts: Iterable[HourStats]) -> HourStats:
    """Return the sum of all parts."""
    result = HourStats()
    for part in parts:
        result.merge(part)
    return result
