"""Logs that have lost archived records, as a power cut does it, and the repair of their archive."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from odradek.pipeline.jobs.archive import repair
from odradek.pipeline.jobs.archive.job import ArchiveSettings, plan_archive
from odradek.pipeline.jobs.archive.repair import first_difference
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.files import OpenFile
from tests.support.archives import archive_here, at, data_files, logged, rows_of, seen
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import clean
from tests.support.log_box import NOW_MS, LogBox, put

QUICK = QuickFiles()
TOPIC_ID = b"a" * 16


def settings_for(root: Path, **more: Any) -> ArchiveSettings:
    more = {"until_end": True, "max_split_bytes": 1500, **more}
    return ArchiveSettings(log_directories=[root / "log"], archive=at(root / "archive"), **more)


def archived(settings: ArchiveSettings) -> list[tuple[Any, ...]]:
    return rows_of(seen(settings.archive))


class Log:
    """A log that power cuts shorten."""

    def __init__(self, root: Path, *, topic_id: bytes | None = TOPIC_ID, **more: Any) -> None:
        self.box = LogBox(root / "log", files=QUICK, segment_index_bytes=1024, **more)
        self.log = self.box.open()
        if topic_id is not None:
            self.log.assign_topic_id(topic_id)

    def put(self, name: bytes, count: int) -> None:
        for number in range(count):
            put(self.log, b"%s-%d" % (name, number))

    def lose_from(self, offset: int) -> None:
        self.log.truncate_to(offset, NOW_MS)

    @property
    def records(self) -> list[tuple[Any, ...]]:
        return logged(self.box.directory)


def test_records_that_replaced_archived_ones_replace_them_in_the_archive(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"kept", 30)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    log.put(b"lost", 20)
    archive_here(settings, QUICK)
    log.lose_from(41)
    log.put(b"new", 30)
    (plan,) = plan_archive(settings)
    assert plan.diverged
    summary = archive_here(settings, QUICK)
    assert archived(settings) == log.records
    assert summary.repaired == [
        "orders-0: the log has lost archived records from offset 41 on (the archive had offsets "
        "up to 49): 9 records were removed from the table, and 9 that the log has there now were "
        "added"
    ]
    assert summary.total().records == 21
    again = archive_here(settings, QUICK)
    assert (again.repaired, again.total().records) == ([], 0)


def test_a_log_that_ends_earlier_takes_its_records_from_the_archive(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"kept", 30)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    log.lose_from(12)
    summary = archive_here(settings, QUICK)
    assert archived(settings) == log.records
    assert "from offset 12 on" in summary.repaired[0]
    log.put(b"new", 5)
    assert archive_here(settings, QUICK).repaired == []
    assert archived(settings) == log.records


class SyncedFiles(QuickFiles):
    """Remembers what was synced."""

    def __init__(self) -> None:
        self.synced: set[Path] = set()

    def fsync(self, file: OpenFile) -> None:
        self.synced.add(file.path)


def test_a_repair_is_synced_before_it_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path)
    log.put(b"kept", 10)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    log.lose_from(5)
    log.put(b"new", 5)
    files = SyncedFiles()
    commit = DeltaTable.create_write_transaction
    added: list[Path] = []

    def checked(table: DeltaTable, actions: list[Any], **how: Any) -> None:
        new = [tmp_path / "archive" / each.path for each in actions if hasattr(each, "stats")]
        assert files.synced.issuperset(new)
        added.extend(new)
        commit(table, actions, **how)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", checked)
    assert len(archive_here(settings, files).repaired) == 1
    assert len(added) == 2  # the rest of the old records, and the new ones
    assert archived(settings) == log.records


def test_a_repair_compares_timestamps_that_have_no_date(tmp_path: Path) -> None:
    far_ms = 10**15  # in the year 33658
    log = Log(tmp_path, message_timestamp_after_max_ms=(1 << 63) - 1)
    for at_ms in (NOW_MS, far_ms, far_ms + 1):
        put(log.log, b"kept", timestamps=[at_ms])
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    log.lose_from(2)
    put(log.log, b"new", timestamps=[far_ms + 2])
    summary = archive_here(settings, QUICK)
    assert "from offset 2 on" in summary.repaired[0]
    assert archived(settings) == log.records


def test_a_repair_takes_what_the_archive_had_even_without_until_end(tmp_path: Path) -> None:
    """The active segment was archived before, so a reader must not find less."""
    log = Log(tmp_path)
    log.put(b"kept", 30)
    archive_here(settings_for(tmp_path), QUICK)
    log.lose_from(20)
    log.put(b"new", 20)
    settings = settings_for(tmp_path, until_end=False)
    archive_here(settings, QUICK)
    assert archived(settings) == log.records[:30]


def test_other_partitions_in_the_same_files_are_left_alone(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"kept", 10)
    shutil.copytree(log.box.directory, log.box.directory.with_name("orders-1"))
    settings = settings_for(tmp_path, compact=True)
    archive_here(settings, QUICK)
    other = logged(log.box.directory.with_name("orders-1"))
    log.lose_from(3)
    log.put(b"new", 4)
    archive_here(settings, QUICK)
    assert archived(settings) == log.records + other


def test_a_repair_takes_values_by_their_schema(tmp_path: Path) -> None:
    log = Log(tmp_path)
    put(log.log, b'{"id": 1}', b'{"id": 2}')
    put(log.log, b'{"id": 3}')
    values = pa.struct([pa.field("id", pa.int64())])
    settings = settings_for(tmp_path, values=values, keep_value=False)
    archive_here(settings, QUICK)
    log.lose_from(2)
    put(log.log, b"bad")
    put(log.log, b'{"id": 4}')
    archive_here(settings, QUICK)
    table = seen(settings.archive).sort_by("offset")
    assert table["id"].to_pylist() == [1, 2, None, 4]
    assert table["value"].to_pylist() == [None, None, b"bad", None]
    assert [bool(error) for error in table["error"].to_pylist()] == [False, False, True, False]


@pytest.mark.parametrize("topic_id", [TOPIC_ID, None])
def test_a_log_with_nothing_in_common_is_another_topic_unless_it_has_the_same_id(
    tmp_path: Path, topic_id: bytes | None
) -> None:
    log = Log(tmp_path, topic_id=topic_id)
    log.put(b"kept", 10)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    before = archived(settings)
    log.lose_from(0)
    log.put(b"other", 4)
    summary = archive_here(settings, QUICK)
    if topic_id is None:
        assert "it was replaced by another" in summary.problems[0]
        assert archived(settings) == before
    else:
        assert len(summary.repaired) == 1
        assert archived(settings) == log.records


def test_a_damaged_log_takes_nothing_from_the_archive(tmp_path: Path) -> None:
    """Its records cannot be compared, and the archive may have the only sound ones."""
    log = Log(tmp_path)
    log.put(b"kept", 10)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    before = archived(settings)
    log.lose_from(8)
    log.put(b"new", 3)
    log.log.close(NOW_MS)
    path = log.box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[data.index(b"kept-4")] ^= 1
    path.write_bytes(data)
    summary = archive_here(settings, QUICK)
    assert "the log has lost archived records, and " in summary.problems[0]
    assert "stored CRC" in summary.problems[0]
    assert archived(settings) == before


def test_a_damaged_file_of_the_archive_stops_only_the_repair_of_its_partition(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    log.put(b"kept", 10)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    (path,) = data_files(settings.archive)
    sound = path.read_bytes()
    log.lose_from(8)
    log.put(b"new", 3)
    other = LogBox(tmp_path / "log", files=QUICK)
    other.directory = tmp_path / "log" / "zebra-0"
    put(other.open(), b"1")
    path.write_bytes(sound[:-20])
    summary = archive_here(settings, QUICK)
    assert summary.problems[0].startswith("orders-0: the archive was not repaired: ")
    assert summary.topics["zebra"].records == 1
    path.write_bytes(sound)
    archive_here(settings, QUICK)
    assert archived(settings) == log.records + logged(other.directory)


def test_a_log_that_was_archived_up_to_a_damaged_batch_may_lose_records(tmp_path: Path) -> None:
    log = Log(tmp_path, segment_bytes=500)
    log.put(b"kept", 10)
    second = log.log.segments[1].base_offset
    path = log.box.path(second, ".log")
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"kept", b"Kept"))
    settings = settings_for(tmp_path, max_split_bytes=1 << 20)
    archive_here(settings, QUICK)
    assert [row[2] for row in archived(settings)] == list(range(second))
    path.write_bytes(sound)
    log.lose_from(second - 1)
    log.put(b"new", 5)
    archive_here(settings, QUICK)
    assert archived(settings) == log.records


@pytest.mark.parametrize("is_readable", [True, False])
def test_what_was_never_archived_is_not_part_of_a_repair(tmp_path: Path, is_readable: bool) -> None:
    log = Log(tmp_path, segment_bytes=500)
    log.put(b"kept", 30)
    gap = range(log.log.segments[1].base_offset, log.log.segments[2].base_offset)
    path = log.box.path(gap.start, ".log")
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"kept", b"Kept"))
    settings = settings_for(tmp_path, max_split_bytes=500)
    archive_here(settings, QUICK)
    log.lose_from(28)
    log.put(b"new", 5)
    if is_readable:
        path.write_bytes(sound)
    assert "from offset 28 on" in archive_here(settings, QUICK).repaired[0]
    path.write_bytes(sound)
    there = [row for row in log.records if is_readable or row[2] not in gap]
    assert archived(settings) == there
    archive_here(settings, QUICK)
    assert archived(settings) == log.records


def test_a_repair_does_not_bring_back_what_another_writer_has_removed(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"kept", 10)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    DeltaTable(settings.archive.uri).delete('"offset" = 2')
    archive_here(replace(settings, accept_changes=True), QUICK)
    log.lose_from(8)
    log.put(b"new", 4)
    assert "from offset 8 on" in archive_here(settings, QUICK).repaired[0]
    assert archived(settings) == [row for row in log.records if row[2] != 2]


def test_which_records_a_log_has_lost_is_not_guessed_without_their_values(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"1", 10)
    values = pa.struct([pa.field("id", pa.int64())])
    settings = settings_for(tmp_path, values=values, keep_value=False)
    archive_here(settings, QUICK)
    DeltaTable(settings.archive.uri).delete('"offset" = 2')
    archive_here(replace(settings, accept_changes=True), QUICK)
    log.lose_from(8)
    (problem,) = archive_here(settings, QUICK).problems
    assert "another writer has changed the table, and values were not archived" in problem
    assert seen(settings.archive).num_rows == 9


def test_a_batch_that_differs_only_in_its_header_costs_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"kept", 10)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    before = archived(settings)
    log.lose_from(9)
    log.log.become_leader(7)
    put(log.log, b"kept-9")
    assert len(archive_here(settings, QUICK).repaired) == 1
    assert archive_here(settings, QUICK).repaired == []
    assert archived(settings) == before == log.records


@pytest.mark.parametrize("again", [(b"a", b"b"), (b"a", b"b", b"c")])
def test_the_log_cleaner_is_not_taken_for_a_power_cut(
    tmp_path: Path, again: tuple[bytes, ...]
) -> None:
    """Neither when it rewrites the last archived batch nor when it removes it."""
    box = LogBox(tmp_path / "log", files=QUICK, segment_bytes=2000, cleanup_policy=("compact",))
    log = box.open()
    log.append(keyed(b"a", b"b", b"c"), now_ms=NOW_MS)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    before = archived(settings)
    log.append(keyed(*again), now_ms=NOW_MS)
    for first in (0, 100):  # a segment each
        log.append(keyed(*(b"%04d" % (first + at) for at in range(100))), now_ms=NOW_MS)
    clean(log, NOW_MS + 10**9)
    assert [row[2] for row in logged(box.directory)][:1] == [2 if len(again) == 2 else 3]
    summary = archive_here(settings, QUICK)
    assert (summary.repaired, summary.problems) == ([], [])
    assert archived(settings)[:3] == before
    assert {row[2] for row in logged(box.directory)} < {row[2] for row in archived(settings)}


def keyed(*keys: bytes) -> bytes:
    return bytes(build_batch([Record(key, b"value", NOW_MS) for key in keys]))


def test_a_mark_of_an_old_batch_bounds_what_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path)
    settings = settings_for(tmp_path)
    for _ in range(4):
        log.put(b"kept", 10)
        archive_here(settings, QUICK)
    log.lose_from(33)
    compared: list[int] = []

    def first(archived: Any, *rest: Any) -> int:
        rows = list(archived)
        compared.extend(row[0] for row in rows)
        return first_difference(rows, *rest)

    monkeypatch.setattr(repair, "first_difference", first)
    archive_here(settings, QUICK)
    assert compared == list(range(30, 40))
    assert archived(settings) == log.records


@pytest.mark.parametrize(
    ("archived", "logged", "end", "cleaned", "first"),
    [
        ([(0, "a"), (1, "b")], [(0, "a"), (1, "b")], 2, (), 2),
        ([(0, "a"), (1, "b")], [(0, "a"), (1, "x")], 2, (), 1),
        ([(0, "a"), (1, "b")], [(0, "a")], 1, (), 1),
        ([(0, "a"), (1, "b"), (2, "c")], [(0, "a"), (2, "c")], 3, (1,), 3),
        ([(0, "a"), (1, "b"), (2, "c")], [(0, "a"), (2, "c")], 3, (), 1),
        ([(0, "a"), (2, "c")], [(0, "a"), (1, "b"), (2, "c")], 3, (), 1),
        ([(0, "a")], [(0, "a"), (1, "b")], 2, (), 1),
        ([], [], 0, (), 0),
    ],
)
def test_the_first_difference_is_found(
    archived: list[Any], logged: list[Any], end: int, cleaned: tuple[int, ...], first: int
) -> None:
    found = first_difference(iter(archived), iter(logged), end, lambda each: each in cleaned)
    assert found == first


@pytest.mark.parametrize(
    ("archived", "logged", "first"),
    [
        ([(0, "a"), (2, "c"), (3, "d")], [(0, "a"), (1, "b"), (2, "c"), (3, "x")], 3),
        ([(0, "a"), (1, "x"), (2, "c")], [(0, "a"), (1, "b"), (2, "c")], 4),
        ([(0, "a"), (1, "b"), (2, "c")], [(0, "a"), (2, "c")], 4),
        ([(0, "a"), (2, "c")], [(0, "a"), (1, "b"), (2, "x")], 1),
        ([(0, "a"), (1, "x"), (3, "d")], [(0, "a"), (1, "b"), (3, "x")], 1),
    ],
)
def test_another_writer_has_changed_what_differs_before_a_row_that_both_have(
    archived: list[Any], logged: list[Any], first: int
) -> None:
    assert first_difference(archived, logged, 4, lambda _: False, changed_before=3) == first
