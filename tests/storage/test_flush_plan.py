"""A flush plan is carried out on another thread while the log is used."""

from collections.abc import Callable
from pathlib import Path

from odradek.storage.files import Files, OpenFile
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
