"""Archives of version 0.1, which had a manifest, become tables.

The golden archive was made by version 0.1: two topics of the name `orders`, merged files, dead
letters of a schema, and a run that was killed after its last commit, before it renamed its file.
"""

from pathlib import Path

import pytest

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.job import ArchiveSettings, plan_archive
from odradek.pipeline.jobs.archive.migration import Migrated, migrate
from odradek.pipeline.jobs.archive.reading import PartitionRows
from odradek.pipeline.jobs.archive.storage import ArchiveLocation
from odradek.pipeline.jobs.archive.table import ArchiveTable
from tests.support.archives import archive_here, archive_of_version_0_1, seen
from tests.support.crashing_files import CrashedError, CrashingFiles, QuickFiles
from tests.support.log_box import LogBox, put

FIRST_ID, SECOND_ID = "61" * 16, "62" * 16
QUICK = QuickFiles()
EXPECTED = [
    ("orders", 0, None, 0, b"second-0"),
    ("orders", 0, None, 1, b"second-1"),
    ("orders", 0, None, 2, b"second-2"),
    ("orders", 0, None, 3, b"second-3"),
    ("orders", 0, None, 4, b"second-4"),
    ("orders", 0, None, 5, b"second-5"),
    ("orders", 0, FIRST_ID, 0, b"first-0"),
    ("orders", 0, FIRST_ID, 1, b"first-1"),
    ("orders", 1, None, 0, b"other-0"),
    ("values", 0, None, 0, b'{"id": 1}'),
    ("values", 0, None, 1, b"bad"),
    ("values", 0, None, 2, b'{"id": 2}'),
]


@pytest.fixture
def archive(tmp_path: Path) -> ArchiveLocation:
    return archive_of_version_0_1(tmp_path / "archive")


def rows(archive: ArchiveLocation) -> list[tuple[object, ...]]:
    table = seen(archive)
    names = ("topic", "partition", "topicId", "offset", "value")
    found = zip(*(table[name].to_pylist() for name in names), strict=True)
    return sorted(found, key=lambda row: (row[0], row[1], row[2] or "", row[3]))


def test_every_record_of_an_old_archive_is_in_the_table(archive: ArchiveLocation) -> None:
    assert migrate(archive, QUICK) == Migrated(files=7, records=12, copied=2)
    assert rows(archive) == EXPECTED
    ids = {
        row["offset"]: row["id"] for row in seen(archive).to_pylist() if row["topic"] == "values"
    }
    assert ids == {0: 1, 1: None, 2: 2}
    errors = [row["offset"] for row in seen(archive).to_pylist() if row["error"] is not None]
    assert errors == [1]


def test_a_migrated_archive_is_continued_and_repaired(
    archive: ArchiveLocation, tmp_path: Path
) -> None:
    migrate(archive, QUICK)
    log = LogBox(tmp_path / "log", files=QUICK).open()
    log.assign_topic_id(bytes.fromhex(SECOND_ID))
    for number in range(3):
        put(log, b"second-%d" % number)
    put(log, b"new-3")
    settings = ArchiveSettings(
        log_directories=[tmp_path / "log"], archive=archive, until_end=True, max_split_bytes=200
    )
    archive_here(settings, QUICK)
    orders = [row for row in rows(archive) if row[:2] == ("orders", 0)]
    assert [row[2:] for row in orders] == [
        *[(None, number, b"second-%d" % number) for number in range(3)],
        (FIRST_ID, 0, b"first-0"),
        (FIRST_ID, 1, b"first-1"),
        (SECOND_ID, 3, b"new-3"),
    ]
    newest = ArchiveTable(archive).state.newest("orders")[0]
    found = [
        value
        for table in ArchiveTable(archive).rows(PartitionRows(newest), ["value"])
        for value in table["value"].to_pylist()
    ]
    assert found == [b"second-0", b"second-1", b"second-2", b"new-3"]


def test_a_migration_that_is_killed_is_made_again(archive: ArchiveLocation, tmp_path: Path) -> None:
    for limit in range(1000):
        try:
            migrate(archive, CrashingFiles(limit))
        except CrashedError:
            continue
        break
    assert limit > 5
    assert rows(archive) == EXPECTED


def test_an_old_archive_is_refused_until_it_is_migrated(
    archive: ArchiveLocation, tmp_path: Path
) -> None:
    (tmp_path / "log").mkdir()
    settings = ArchiveSettings(log_directories=[tmp_path / "log"], archive=archive)
    for use in (plan_archive, archive_here):
        with pytest.raises(JobError, match="run `odradek pipeline migrate-archive"):
            use(settings)
    migrate(archive, QUICK)
    with pytest.raises(JobError, match=r"not an archive of version 0\.1"):
        migrate(archive, QUICK)
    archive_here(settings)
