"""File access: short writes, lifetimes of open files, atomic replacement, locks."""

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odradek.protocol.compression import Buffer
from odradek.storage.files import (
    Files,
    LockHeldError,
    NonBlockingReads,
    OpenFile,
    WouldWaitError,
    buffers_after,
)
from tests.support.golden import golden_program, run_golden_program


class ShortWrites(Files):
    """Writes at most `step` bytes per call; fails once `budget` bytes are written."""

    def __init__(self, step: int, budget: int = 1 << 30) -> None:
        self.step = step
        self.budget = budget

    def _writev(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> int:
        if self.budget <= 0:
            raise OSError(28, "No space left on device")
        data = b"".join(buffers)[: self.step]
        self.budget -= len(data)
        return os.pwrite(file.fd, data, position)


@pytest.fixture
def files() -> Files:
    return Files()


def test_appends_are_written_one_after_the_other(files: Files, tmp_path: Path) -> None:
    file = files.open(tmp_path / "log", create=True)
    assert files.append(file, [b"one", memoryview(b"two")]) == 6
    assert files.append(file, [bytearray(b"three")]) == 5
    assert file.append_position == 11
    assert files.pread(file, 100, 0) == b"onetwothree"


def test_appending_to_an_existing_file_starts_at_its_end(files: Files, tmp_path: Path) -> None:
    files.write(tmp_path / "log", b"old")
    file = files.open(tmp_path / "log")
    files.append(file, [b"new"])
    assert files.read(tmp_path / "log") == b"oldnew"


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_a_short_write_is_continued(step: int, tmp_path: Path) -> None:
    files = ShortWrites(step)
    file = files.open(tmp_path / "log", create=True)
    assert files.append(file, [b"abc", b"", b"defgh", b"i"]) == 9
    assert files.pread(file, 100, 0) == b"abcdefghi"


def test_more_buffers_than_one_call_takes_are_written(files: Files, tmp_path: Path) -> None:
    file = files.open(tmp_path / "log", create=True)
    assert files.append(file, [b"%04d" % i for i in range(3000)]) == 12_000
    assert files.pread_exact(file, 4, 4 * 2999) == b"2999"


def test_a_write_that_fails_half_way_is_overwritten_by_the_next(tmp_path: Path) -> None:
    files = ShortWrites(step=2, budget=4)
    file = files.open(tmp_path / "log", create=True)
    with pytest.raises(OSError, match="No space"):
        files.append(file, [b"lost!!"])
    assert file.append_position == 0
    files.budget = 100
    files.append(file, [b"kept"])
    assert files.pread(file, 100, 0) == b"kept"


def test_a_write_that_makes_no_progress_is_an_error(tmp_path: Path) -> None:
    files = ShortWrites(step=0)
    file = files.open(tmp_path / "log", create=True)
    with pytest.raises(OSError, match="nothing could be written"):
        files.append(file, [b"x"])


def test_what_is_left_of_buffers() -> None:
    assert buffers_after([b"abc", b"de"], 0) == [b"abc", b"de"]
    assert buffers_after([b"abc", b"de"], 2) == [b"c", b"de"]
    assert buffers_after([b"abc", b"de"], 3) == [b"de"]
    assert buffers_after([b"abc", b"", b"de"], 5) == []


def test_reading_stops_at_the_end_of_the_file(files: Files, tmp_path: Path) -> None:
    files.write(tmp_path / "log", b"abc")
    file = files.open(tmp_path / "log", read_only=True)
    assert files.pread(file, 10, 1) == b"bc"
    assert files.pread(file, 10, 3) == b""
    with pytest.raises(EOFError, match="ends at 3, wanted 11"):
        files.pread_exact(file, 10, 1)


def test_writing_at_a_position_leaves_the_append_position(files: Files, tmp_path: Path) -> None:
    file = files.open(tmp_path / "index", create=True)
    files.preallocate(file, 100)
    assert file.append_position == 0
    files.pwrite(file, b"entry", 20)
    assert file.append_position == 0
    assert files.size(tmp_path / "index") == 100
    assert files.pread(file, 5, 20) == b"entry"


def test_appending_goes_on_where_the_file_was_truncated(files: Files, tmp_path: Path) -> None:
    file = files.open(tmp_path / "log", create=True)
    files.append(file, [b"abcdef"])
    files.truncate(file, 2)
    files.append(file, [b"X"])
    assert files.read(tmp_path / "log") == b"abX"


def test_a_file_closes_with_its_last_reference(files: Files, tmp_path: Path) -> None:
    file = files.open(tmp_path / "log", create=True)
    fd, other = file.fd, file
    del file
    os.fstat(fd)
    del other
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_deleted_file_is_read_while_someone_holds_it(files: Files, tmp_path: Path) -> None:
    files.write(tmp_path / "log", b"abc")
    file = files.open(tmp_path / "log")
    files.remove(tmp_path / "log")
    assert files.pread(file, 3, 0) == b"abc"


def test_descriptors_do_not_leak_into_child_processes(files: Files, tmp_path: Path) -> None:
    file = files.open(tmp_path / "log", create=True)
    assert not os.get_inheritable(file.fd)


def test_atomic_write_replaces_the_whole_file(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    files.atomic_write(path, b"a longer first content")
    files.atomic_write(path, b"second")
    assert files.read(path) == b"second"
    assert files.list_directory(tmp_path) == ["checkpoint"]


def test_atomic_write_syncs_the_file_before_it_gets_its_name(tmp_path: Path) -> None:
    calls: list[str] = []

    class Recording(Files):
        def fsync(self, file: OpenFile) -> None:
            calls.append(f"fsync {file.path.name}")

        def rename(self, source: Path, target: Path) -> None:
            calls.append(f"rename {target.name}")
            super().rename(source, target)

        def fsync_directory(self, path: Path) -> None:
            calls.append("fsync directory")

    Recording().atomic_write(tmp_path / "c", b"")
    assert calls == ["fsync c.tmp", "rename c", "fsync directory"]


def test_a_failing_atomic_write_leaves_the_old_content(tmp_path: Path) -> None:
    Files().atomic_write(tmp_path / "c", b"old")
    with pytest.raises(OSError, match="No space"):
        ShortWrites(step=1, budget=2).atomic_write(tmp_path / "c", b"new content")
    assert (tmp_path / "c").read_bytes() == b"old"


def test_removing_what_is_not_there_is_fine(files: Files, tmp_path: Path) -> None:
    files.remove(tmp_path / "none")
    files.remove_tree(tmp_path / "none")


def test_directories_come_and_go_with_what_they_hold(files: Files, tmp_path: Path) -> None:
    files.make_directory(tmp_path / "a" / "b")
    files.make_directory(tmp_path / "a" / "b")
    files.write(tmp_path / "a" / "b" / "c", b"")
    files.fsync_directory(tmp_path / "a")
    assert files.is_directory(tmp_path / "a" / "b")
    files.remove_tree(tmp_path / "a")
    assert not files.exists(tmp_path / "a")


def test_times_and_free_space_are_returned(files: Files, tmp_path: Path) -> None:
    files.write(tmp_path / "log", b"")
    os.utime(tmp_path / "log", ns=(0, 1_700_000_000_123_456_789))
    assert files.modified_ms(tmp_path / "log") == 1_700_000_000_123
    assert files.free_bytes(tmp_path) > 0


def test_a_file_system_without_room_for_a_file_has_no_free_space(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = list(os.statvfs(tmp_path))
    free_files = 7  # the place of f_favail
    for files_in_all, left, expected in ((1000, 0, False), (1000, 1, True), (0, 0, True)):
        real[5], real[free_files] = files_in_all, left
        status = os.statvfs_result(real)
        monkeypatch.setattr(os, "statvfs", lambda _, status=status: status)
        assert (files.free_bytes(tmp_path) > 0) is expected


def test_descriptors_are_left_to_connections(files: Files, tmp_path: Path) -> None:
    kept = files.open(tmp_path / "log", create=True)
    open_files = len(list(Path("/dev/fd").iterdir()))
    files.descriptor_limit = kept.fd
    assert files.free_descriptors() < open_files
    with pytest.raises(OSError, match="Too many open files") as error:
        files.open(tmp_path / "log")
    assert error.value.errno == errno.EMFILE
    assert len(list(Path("/dev/fd").iterdir())) == open_files
    files.descriptor_limit = open_files + 100
    assert files.open(tmp_path / "log").fd > kept.fd


def test_what_was_just_written_is_cached(files: Files, tmp_path: Path) -> None:
    file = files.open(tmp_path / "log", create=True)
    files.append(file, [bytes(100_000)])
    assert files.is_cached(file, 100_000, 0)
    files.read_ahead(file, 1 << 30, 0)


def test_a_file_system_that_cannot_tell_counts_as_cached(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open(tmp_path / "log", create=True)
    monkeypatch.setattr("odradek.storage.files.RWF_NOWAIT", None)
    assert files.is_cached(file, 10, 0)


def test_a_lock_keeps_out_another_holder_in_the_same_process(files: Files, tmp_path: Path) -> None:
    held = files.lock(tmp_path / ".lock")
    with pytest.raises(LockHeldError, match=r"\.lock"):
        files.lock(tmp_path / ".lock")
    held.release()
    files.lock(tmp_path / ".lock").release()


def test_releasing_a_lock_deletes_its_file_as_kafka_does(files: Files, tmp_path: Path) -> None:
    held = files.lock(tmp_path / ".lock")
    held.release()
    held.release()
    assert files.list_directory(tmp_path) == []


def test_a_refused_lock_leaves_the_holders_lock_intact(files: Files, tmp_path: Path) -> None:
    held = files.lock(tmp_path / ".lock")
    for _ in range(3):
        with pytest.raises(LockHeldError):
            files.lock(tmp_path / ".lock")
    assert (tmp_path / ".lock").exists()
    held.release()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can test a lock")
def test_a_lock_whose_file_is_deleted_while_it_is_tested_is_not_held(tmp_path: Path) -> None:
    class Stopping(Files):
        def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
            if read_only:
                held.release()
            return super().open(path, create=create, read_only=read_only)

    files = Stopping()
    held = files.lock(tmp_path / ".lock")
    assert not files.is_locked(tmp_path / ".lock")


LOCK_SCRIPT = """
import sys
from pathlib import Path
from odradek.storage.files import Files, LockHeldError
try:
    lock = Files().lock(Path(sys.argv[1]))
    print("locked")
except LockHeldError:
    print("held")
"""


def lock_in_another_process(path: Path) -> str:
    command = [sys.executable, "-c", LOCK_SCRIPT, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_lock_keeps_out_another_process_until_it_is_released(
    files: Files, tmp_path: Path
) -> None:
    held = files.lock(tmp_path / ".lock")
    assert lock_in_another_process(tmp_path / ".lock") == "held"
    held.release()
    assert lock_in_another_process(tmp_path / ".lock") == "locked"


def test_a_lock_dies_with_its_process(files: Files, tmp_path: Path) -> None:
    assert lock_in_another_process(tmp_path / ".lock") == "locked"
    assert (tmp_path / ".lock").exists()
    files.lock(tmp_path / ".lock").release()


def test_a_lock_file_that_is_deleted_under_the_waiter_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / ".lock"

    class DeletedMeanwhile(Files):
        opened = 0

        def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
            file = super().open(path, create=create, read_only=read_only)
            self.opened += 1
            if self.opened == 1:
                path.unlink()
            return file

    held = DeletedMeanwhile().lock(path)
    with pytest.raises(LockHeldError):
        Files().lock(path)
    held.release()


@pytest.mark.java
def test_kafka_and_odradek_keep_each_other_out(files: Files, tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    held = files.lock(path)
    assert run_golden_program("try-lock", str(path)).strip() == "false"
    held.release()
    kafka = subprocess.Popen(
        golden_program("hold-lock", str(path)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with kafka:
        assert kafka.stdout is not None
        assert kafka.stdin is not None
        assert kafka.stdout.readline().strip() == "true"
        with pytest.raises(LockHeldError):
            files.lock(path)
        kafka.stdin.close()
        assert kafka.wait(30) == 0
    files.lock(path).release()


@pytest.mark.parametrize("in_kernel", [True, False])
def test_a_range_is_copied_to_the_same_position(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_kernel: bool
) -> None:
    if not in_kernel:
        monkeypatch.setattr("odradek.storage.files._copy_in_kernel", lambda *_: 0)
    data = bytes(range(256)) * 8192  # more than one piece
    files.write(tmp_path / "source", data, sync=False)
    source = files.open(tmp_path / "source")
    target = files.open(tmp_path / "target", create=True)
    files.copy_range(source, target, 100, 0)
    files.copy_range(source, target, len(data) - 100, 100)
    assert files.read(tmp_path / "target") == data
    with pytest.raises(OSError, match="ends at") as caught:
        files.copy_range(source, target, 10, len(data) - 5)
    assert caught.value.filename == str(tmp_path / "source")


# --- nonblocking reads


def test_nonblocking_reads_do_not_open_files_until_a_thread_has(tmp_path: Path) -> None:
    files = Files()
    path = tmp_path / "f"
    path.write_bytes(b"content")
    reads = NonBlockingReads(files)
    with pytest.raises(WouldWaitError) as lacking, reads:
        files.open(path)
    for call in lacking.value.calls.values():
        call()
    reads.made.update(lacking.value.calls)
    with reads:
        assert files.open(path).append_position == 7
    assert files.size(path) == 7  # outside the context nothing is refused


def test_other_threads_may_wait_during_nonblocking_reads(tmp_path: Path) -> None:
    files = Files()
    (tmp_path / "f").write_bytes(b"content")
    with NonBlockingReads(files), ThreadPoolExecutor(1) as threads:
        assert threads.submit(files.size, tmp_path / "f").result() == 7


@pytest.mark.parametrize("size", [4, 7, 20])
def test_what_is_in_the_page_cache_is_read_as_ever(tmp_path: Path, size: int) -> None:
    files = Files()
    (tmp_path / "f").write_bytes(b"content")
    file = files.open(tmp_path / "f")
    with NonBlockingReads(files):
        assert files.pread(file, size, 0) == b"content"[:size]
        assert files.pread(file, size, 7) == b""


def test_what_must_not_be_broken_off_waits(tmp_path: Path) -> None:
    files = Files()
    (tmp_path / "f").write_bytes(b"content")
    reads = NonBlockingReads(files)
    with reads:
        with files.allow_waiting():
            assert files.size(tmp_path / "f") == 7
        with pytest.raises(WouldWaitError):
            files.size(tmp_path / "f")
