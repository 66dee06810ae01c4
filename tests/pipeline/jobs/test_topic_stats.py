"""`odradek pipeline stats` without Spark: its sums are those of a plain reader."""

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.jobs.stats.hour_stats import HOUR_MS, HourStats, merge_hours
from odradek.pipeline.jobs.stats.job import StatsReport, StatsSettings, plan_stats, run_stats
from odradek.pipeline.jobs.stats.plan import scan_tasks
from odradek.pipeline.jobs.stats.sketches import KeySketch, SizeSketch, hash_strings
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.protocol.compression import CompressionType, decompress
from odradek.protocol.primitives import write_varint
from odradek.protocol.record import Record
from odradek.storage.log_reader import LogReader
from tests.support.archives import InThisProcess
from tests.support.dirty_logs import Writer
from tests.support.log_box import NOW_MS, LogBox, put
from tests.support.old_logs import aged_entries, lay_down

ALL_CODECS = tuple(CompressionType)


def counted(root: Path, **more: Any) -> StatsReport:
    return run_stats(InThisProcess(), StatsSettings(log_directories=[root], **more))


def total_of(report: StatsReport, topic: str = "orders") -> HourStats:
    [found] = [each for each in report.topics if each.topic == topic]
    return found.total


def size_of(record: Record) -> int:
    headers = bytearray()
    for name, value in record.headers:
        write_varint(headers, len(name.encode()))
        headers += name.encode()
        write_varint(headers, -1 if value is None else len(value))
        headers += value or b""
    return len(record.key or b"") + len(record.value or b"") + len(headers)


# --- against a reader that goes record by record


@pytest.mark.parametrize("seed", range(3))
def test_every_sum_is_that_of_a_plain_reader(tmp_path: Path, seed: int) -> None:
    box = LogBox(tmp_path, segment_bytes=3000, index_interval_bytes=200)
    log = box.open()
    Writer(seed, codecs=ALL_CODECS).write(log, 200)
    log.close(NOW_MS)
    report = counted(tmp_path)
    assert report.problems == []
    total = total_of(report)

    records: list[Record] = []
    batches = Counter[str]()
    stored, raw, markers, transactional = Counter[str](), Counter[str](), 0, 0
    for batch in LogReader(box.directory).batches():
        header, codec = batch.header, batch.header.compression.name.lower()
        batches[codec] += 1
        stored[codec] += header.size_bytes
        body = decompress(header.compression, batch.data[61:], max_bytes=1 << 20)
        raw[codec] += 61 + len(body)
        inside = list(batch.records())
        if header.is_control:
            markers += len(inside)
            continue
        records += inside
        transactional += len(inside) * header.is_transactional
    sizes = [size_of(record) for record in records]
    times = [record.timestamp_ms for record in records]

    assert total.records == len(records)
    assert total.markers == markers
    assert {name: each.batches for name, each in total.codecs.items()} == batches
    assert {name: each.stored_bytes for name, each in total.codecs.items()} == stored
    assert {name: each.raw_bytes for name, each in total.codecs.items()} == raw
    assert total.transactional_records == transactional
    assert total.null_keys == sum(record.key is None for record in records)
    assert total.tombstones == sum(record.value is None for record in records)
    assert total.keys.distinct == len({record.key for record in records if record.key is not None})
    assert (total.sizes.smallest, total.sizes.largest) == (min(sizes), max(sizes))
    assert (total.sizes.total, total.sizes.count) == (sum(sizes), len(sizes))
    assert (total.first_ms, total.last_ms) == (min(times), max(times))
    assert total.out_of_order_records == sum(later < earlier for earlier, later in pairwise(times))
    by_hour = Counter(time // HOUR_MS for time in times)
    [topic] = report.topics
    found = {number: hour.records for number, hour in topic.hours.items() if hour.records}
    assert found == by_hour


def test_how_the_work_is_cut_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = LogBox(tmp_path, segment_bytes=3000, index_interval_bytes=200)
    log = box.open()
    Writer(7, codecs=ALL_CODECS).write(log, 200)
    log.close(NOW_MS)
    whole = counted(tmp_path)
    monkeypatch.setattr("odradek.pipeline.jobs.stats.plan._MIN_TASK_BYTES", 1000)
    settings = StatsSettings(log_directories=[tmp_path])
    tasks = scan_tasks(LogDirectories([tmp_path]), plan_stats(settings).selected, 100)
    assert len(tasks) > 5
    assert _plain(total_of(counted(tmp_path))) == _plain(total_of(whole))


def _plain(stats: HourStats) -> list[object]:
    names = (*HourStats.__slots__, "stored_bytes", "raw_bytes")
    return [
        value.registers.tolist()
        if isinstance(value, KeySketch)
        else (value.total, value.counts.tolist())
        if isinstance(value, SizeSketch)
        else value
        for value in (getattr(stats, name) for name in names)
    ]


def test_old_message_formats_are_counted(tmp_path: Path) -> None:
    entries = aged_entries()
    lay_down(tmp_path / "orders-0", entries)
    report = counted(tmp_path)
    assert report.problems == []
    total = total_of(report)
    records = [record for entry in entries for record in entry.records]
    assert total.records == len(records)
    assert total.batches == len(entries)
    assert total.stored_bytes == sum(len(entry.data) for entry in entries)
    assert total.untimed_records == sum(record.timestamp_ms < 0 for record in records) > 0
    assert total.log_append_time_records == 3
    assert total.sizes.total == sum(map(size_of, records))
    assert -1 in report.topics[0].hours


def test_records_without_compression_are_as_large_as_they_are_stored(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    for size in (0, 1, 50, 63, 64, 5000, 9000, 1 << 19):
        put(log, b"x" * size, b"y")
    log.close(NOW_MS)
    total = total_of(counted(tmp_path))
    assert total.raw_bytes == total.stored_bytes
    assert total.ratio == 1.0


def test_damage_is_reported_and_the_rest_is_counted(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    for _ in range(10):
        put(log, b"v" * 40)
    log.close(NOW_MS)
    path = box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    report = counted(tmp_path)
    assert len(report.problems) == 1
    assert "orders-0" in report.problems[0]
    data[8:12] = b"\0\0\0\1"
    path.write_bytes(data)
    assert counted(tmp_path).problems


def test_topics_can_be_chosen_and_empty_ones_are_there(tmp_path: Path) -> None:
    put(LogBox(tmp_path).open(), b"v")
    (tmp_path / "empty-0").mkdir()
    assert {each.topic for each in counted(tmp_path).topics} == {"orders", "empty"}
    [topic] = counted(tmp_path, topics=TopicChoice(names=["empty"])).topics
    assert (topic.topic, topic.partitions, topic.total.records) == ("empty", 1, 0)


# --- sketches


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_quantile_is_off_by_little(sizes: list[int], share: float) -> None:
    sketch = SizeSketch()
    sketch.add(np.array(sizes[::2], np.int64))
    other = SizeSketch()
    other.add(np.array(sizes[1::2], np.int64))
    sketch.merge(other)
    at = int(np.ceil(share * len(sizes) - 1e-9))
    exact = sorted(sizes)[max(at, 1) - 1]
    assert abs(sketch.quantile(share) - exact) <= 0.033 * exact + 1
    assert (sketch.smallest, sketch.largest, sketch.total) == (min(sizes), max(sizes), sum(sizes))
    assert sum(count for _, _, count in sketch.doublings()) == len(sizes)
    assert all(low < high for low, high, _ in sketch.doublings())


@pytest.mark.parametrize("count", [0, 1, 10, 500, 3000, 40_000])
def test_distinct_keys_are_counted_about_right(count: int) -> None:
    rng = random.Random(count)
    keys = [b"customer-%d" % rng.randrange(10**12) for _ in range(count)]
    parts = [KeySketch(), KeySketch()]
    for number, part in enumerate(parts):
        some = keys[number::2] * 2
        ends = np.cumsum([len(key) for key in some], dtype=np.int64)
        sizes = np.array([len(key) for key in some], np.int64)
        if some:
            part.add(hash_strings(b"".join(some), ends - sizes, sizes))
    parts[0].merge(parts[1])
    assert abs(parts[0].distinct - len(set(keys))) <= 0.07 * count + 0.5


@given(st.lists(st.binary(max_size=40) | st.binary(min_size=500, max_size=530), max_size=20))
def test_a_hash_depends_on_the_bytes_and_on_nothing_around_them(keys: list[bytes]) -> None:
    def hashes(data: bytes, at: list[int]) -> list[int]:
        sizes = np.array([len(key) for key in keys], np.int64)
        return hash_strings(data, np.array(at, np.int64), sizes).tolist()

    at = [sum(map(len, keys[:number])) for number in range(len(keys))]
    here = hashes(b"".join(keys), at)
    there = hashes(b"\xff" * 3 + b"\xff".join(keys), [each + 3 + n for n, each in enumerate(at)])
    assert here == there
    assert len(set(here)) == len(set(keys))


def test_nothing_merged_is_nothing() -> None:
    empty = merge_hours([])
    assert (empty.records, empty.ratio, empty.sizes.quantile(0.5), empty.keys.distinct) == (
        0,
        1.0,
        0,
        0,
    )
    assert empty.sizes.doublings() == []
