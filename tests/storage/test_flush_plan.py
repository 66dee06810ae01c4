"""A flush plan is carried out on another thread while the log is used."""

from collections.abc import Callable
from pathlib import Path

from odradek.storage.files import Files, OpenFile
from tests.support.faulty_files import FaultyFiles
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

SIZE = len(batch_of(b"0"))


class RenamedMeanwhile(Files):
    """Calls `rename_now` after every answer about a path, before the caller can act on it."""

    def __init__(self) -> None:
        self.rename_now: Callable[[], object] = lambda: None

    def fsync(self, file: OpenFile) -> None:
        pass

    def exists(self, path: Path) -> bool:
        answer = super().exists(path)
        self.rename_now()
        return answer


def test_a_plan_passes_over_files_that_are_renamed_while_it_runs(tmp_path: Path) -> None:
    files = RenamedMeanwhile()
    box = LogBox(tmp_path, files=files, segment_bytes=2 * SIZE)
    log = box.open()
    for n in range(5):
        put(log, b"%d" % n, producer=(5, 0, n))
    plan = log.flush_plan()
    assert plan is not None
    assert plan.small_files
    retired = tmp_path / "orders-0.0123-delete"
    files.rename_now = lambda: box.directory.exists() and box.directory.rename(retired)
    plan.run()
    files.rename_now()
    plan.run()  # renamed before it began
    log.mark_flushed(plan, NOW_MS)
    assert log.recovery_point == 5


def test_many_segments_are_synced_a_few_at_a_time(tmp_path: Path) -> None:
    """A recovery may leave thousands, and a plan keeps their files open."""
    log = LogBox(tmp_path, segment_bytes=SIZE + 10).open()
    for n in range(50):
        put(log, b"%d" % n)
    plan = log.flush_plan()
    assert plan is not None
    assert (plan.up_to_offset, len(plan.open_files)) == (20, 3 * 20)
    log.flush(NOW_MS)
    assert log.recovery_point == 50
    assert log.flush_plan() is None


def test_a_roll_during_a_flush_is_synced_by_the_next_one(tmp_path: Path) -> None:
    """The running one may have synced the files before the roll changed them."""
    files = FaultyFiles()
    box = LogBox(tmp_path, files=files, segment_bytes=2 * SIZE, index_interval_bytes=0)
    log = box.open()
    put(log, b"0")
    put(log, b"1")
    plan = log.flush_plan()
    assert plan is not None
    plan.run()
    put(log, b"2")
    log.mark_flushed(plan, NOW_MS)
    with files.counting() as seen:
        log.flush(NOW_MS)
    synced = {path for kind, path in seen if kind == "fsync"}
    assert synced >= {box.path(0, suffix) for suffix in (".log", ".index", ".timeindex")}


def test_a_rename_of_the_directory_during_a_flush_is_synced_by_the_next_one(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"0")
    plan = log.flush_plan()
    assert plan is not None
    assert plan.parent == tmp_path  # the directory is new
    plan.run()
    log.move_to(box.directory.rename(tmp_path / "orders-0.0123-future"))
    log.mark_flushed(plan, NOW_MS)
    put(log, b"1")
    following = log.flush_plan()
    assert following is not None
    assert following.parent == tmp_path
