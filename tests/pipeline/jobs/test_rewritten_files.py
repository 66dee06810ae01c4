"""Files of an archive that another writer has written again with other types, as Spark does."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.archive.parquet.plain_types import PlainFile
from odradek.pipeline.jobs.archive.table.archive_table import ArchiveTable
from odradek.pipeline.jobs.replay.archived import read_archive
from odradek.pipeline.jobs.replay.selection import Selection
from odradek.pipeline.jobs.replay.sending import _rows
from odradek.pipeline.jobs.topic_choice import TopicChoice
from tests.support.archives import archive_here, at, logged, rows_of, seen
from tests.support.crashing_files import QuickFiles
from tests.support.log_box import NOW_MS, LogBox, put

QUICK = QuickFiles()
INT96 = {"use_deprecated_int96_timestamps": True}
MILLISECONDS = {"coerce_timestamps": "ms"}


class Rig:
    """A log whose records are archived in a file each."""

    def __init__(self, root: Path) -> None:
        self.box = LogBox(root / "log", files=QUICK)
        self.log = self.box.open()
        self.log.assign_topic_id(b"a" * 16)
        self.settings = ArchiveSettings(
            log_directories=[root / "log"], archive=at(root / "archive"), until_end=True
        )
        for number in range(4):
            put(self.log, b"%d" % number, timestamps=[NOW_MS + number])
            self.archive()

    def archive(self, **more: Any) -> Any:
        return archive_here(replace(self.settings, **more), QUICK)

    def rewrite(self, count: int, **how: Any) -> None:
        """Write the first files again, as OPTIMIZE does: the same rows, without `dataChange`."""
        table = DeltaTable(self.settings.archive.uri)
        actions: list[AddAction | RemoveAction] = []
        for old in ArchiveTable(self.settings.archive).data_files("orders")[:count]:
            root = Path(self.settings.archive.uri)
            new = f"{Path(old.path).parent}/rewritten-{Path(old.path).name}"
            pq.write_table(pq.ParquetFile(root / old.path).read(), root / new, **how)
            actions += [
                RemoveAction(path=old.path, data_change=False, deletion_timestamp=NOW_MS),
                AddAction(
                    path=new,
                    size=(root / new).stat().st_size,
                    partition_values={"topic": old.topic, "date": old.date},
                    modification_time=NOW_MS,
                    data_change=False,
                    stats="{}",
                ),
            ]
        table.create_write_transaction(
            actions,
            mode="append",
            schema=table.schema(),
            partition_by=["topic", "date"],
            commit_properties=CommitProperties(max_commit_retries=0),
        )

    @property
    def archived(self) -> list[Any]:
        return rows_of(seen(self.settings.archive))


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.log.close(NOW_MS)


@pytest.mark.parametrize("how", [INT96, MILLISECONDS])
def test_a_replay_sends_the_timestamps_of_files_that_another_writer_has_rewritten(
    rig: Rig, how: dict[str, Any]
) -> None:
    rig.rewrite(3, **how)
    found = read_archive(rig.settings.archive, TopicChoice(), Selection(), QUICK)
    (source,) = found.topics["orders"]
    assert source.records == 4
    tables = list(source.tables(0))
    sent = [row[4] for table in tables for row in _rows(table, "t", 0)]
    assert sent == [NOW_MS + number for number in range(4)]
    selection = Selection(from_ms=NOW_MS + 1, to_ms=NOW_MS + 3)
    chosen = [offset for each in tables for offset in selection.filter(each)["offset"].to_pylist()]
    assert chosen == [1, 2]


@pytest.mark.parametrize("count", [3, 4])
def test_rewritten_files_are_merged_with_one_another_and_with_others(rig: Rig, count: int) -> None:
    rig.rewrite(count, **INT96)
    assert rig.archive(compact=True).total().merged_files == 3
    assert rig.archived == logged(rig.box.directory)
    (file,) = ArchiveTable(rig.settings.archive).data_files("orders")
    assert file.times_ms == (NOW_MS, NOW_MS + 3)


def test_a_repair_compares_the_timestamps_of_rewritten_files(rig: Rig) -> None:
    put(rig.log, b"4")
    put(rig.log, b"5")
    rig.archive()
    rig.rewrite(5, **INT96)
    rig.log.truncate_to(5, NOW_MS)
    put(rig.log, b"new")
    assert "from offset 5 on" in rig.archive().repaired[0]
    assert rig.archived == logged(rig.box.directory)


def test_local_times_stay_local(tmp_path: Path) -> None:
    utc, local = pa.timestamp("us", "UTC"), pa.timestamp("us")
    table = pa.table(
        {
            "at": pa.array([1], utc),
            "at.local": pa.array([1], local),
            "nested": pa.array([{"at": 1, "n": 1}], pa.struct({"at": utc, "n": pa.int32()})),
        }
    )
    root = at(tmp_path).filesystem()
    pq.write_table(table, tmp_path / "plain")
    with PlainFile(root, "plain") as file:
        assert file.row_group(0).equals(table)
    pq.write_table(table.drop_columns(["at.local"]), tmp_path / "int96", **INT96)
    with PlainFile(root, "int96") as file:
        assert file.row_group(0).equals(table.drop_columns(["at.local"]))
