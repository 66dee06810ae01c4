"""`odradek pipeline stats` without Spark: its sums are those of a plain reader."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from odradek.pipeline.jobs.progress import Progress
from odradek.pipeline.jobs.stats.extents import scan_tasks
from odradek.pipeline.jobs.stats.job import StatsReport, StatsSettings, plan_stats, run_stats
from odradek.pipeline.jobs.stats.topic_scan import Sums
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.storage.log_reader import LogReader
from tests.support.archives import InThisProcess
from tests.support.dirty_logs import Writer
from tests.support.log_box import NOW_MS, LogBox, put
from tests.support.old_logs import aged_entries, lay_down

ALL_CODECS = tuple(CompressionType)


def counted(root: Path, **more: Any) -> StatsReport:
    return run_stats(InThisProcess(), StatsSettings(log_directories=[root], **more))


def total_of(report: StatsReport, topic: str = "orders") -> Sums:
    [found] = [each for each in report.topics if each.topic == topic]
    return found.sums


class Counted(Progress):
    """Counts what a bar would show."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.parts = 0

    def total(self, description: str, parts: int) -> None:
        self.totals[description] = parts

    def done(self, parts: int) -> None:
        self.parts += parts


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
    batches, stored, firsts = Counter[str](), Counter[str](), list[int]()
    markers = transactional = 0
    for batch in LogReader(box.directory).batches():
        header, codec = batch.header, batch.header.compression.name.lower()
        batches[codec] += 1
        stored[codec] += header.size_bytes
        inside = list(batch.records())
        if header.is_control:
            markers += len(inside)
            continue
        records += inside
        firsts += [record.timestamp_ms for record in inside[:1]]
        transactional += len(inside) * header.is_transactional
    assert total.records == len(records)
    assert total.markers == markers
    assert {name: each.batches for name, each in total.codecs.items()} == batches
    assert {name: each.stored_bytes for name, each in total.codecs.items()} == stored
    assert total.transactional_records == transactional
    assert total.first_ms == min(firsts)
    assert total.last_ms == max(record.timestamp_ms for record in records)


def test_how_the_work_is_cut_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = LogBox(tmp_path, segment_bytes=3000, index_interval_bytes=200)
    log = box.open()
    Writer(7, codecs=ALL_CODECS).write(log, 200)
    log.close(NOW_MS)
    whole = counted(tmp_path)
    monkeypatch.setattr("odradek.pipeline.jobs.stats.extents._MIN_TASK_BYTES", 1000)
    settings = StatsSettings(log_directories=[tmp_path])
    tasks = scan_tasks(LogDirectories([tmp_path]), plan_stats(settings).selected, 100)
    assert len(tasks) > 5
    progress = Counted()
    assert total_of(run_stats(InThisProcess(), settings, progress)) == total_of(whole)
    assert progress.totals["counting"] == progress.parts > 1


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
    assert total.last_ms == max(record.timestamp_ms for record in records)


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
    assert (topic.topic, topic.partitions, topic.sums.records) == ("empty", 1, 0)
