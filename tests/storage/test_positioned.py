"""Reads and writes at a position where the system has no calls for them."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odradek.storage import files, positioned
from odradek.storage.files import Files


@pytest.fixture(params=["of the system", "locked"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "locked":
        for name in ("pread", "pwrite", "pwritev"):
            monkeypatch.setattr(files, name, getattr(positioned, f"locked_{name}"))
            monkeypatch.setattr(files, "RWF_NOWAIT", None)
    return request.param


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def test_a_file_is_appended_to_overwritten_and_read(kind: str, tmp_path: Path) -> None:
    files = Files()
    file = files.open(tmp_path / "log", create=True)
    assert files.append(file, [b"one ", memoryview(b"two "), bytearray(b"three")]) == 13
    files.pwrite(file, b"TWO", 4)
    assert files.append(file, [b"!"]) == 1
    assert files.pread(file, 100, 0) == b"one TWO three!"
    assert files.pread(file, 3, 4) == b"TWO"
    assert files.pread_cached(file, 3, 4) == b"TWO"
    assert files.pread(file, 3, 20) == b""


def test_a_locked_read_fills_a_buffer(fd: int) -> None:
    positioned.locked_pwritev(fd, [b"abc", b"def"], 2)
    buffer = bytearray(3)
    assert positioned.locked_preadv(fd, [memoryview(buffer)], 3) == 3
    assert buffer == b"bcd"
    assert positioned.locked_preadv(fd, [buffer], 7) == 1
    assert buffer == b"fcd"


def test_locked_calls_of_many_threads_do_not_move_each_others_position(fd: int) -> None:
    def write_and_read(number: int) -> bool:
        data = b"%05d" % number
        positioned.locked_pwrite(fd, data, number * 5)
        return positioned.locked_pread(fd, 5, number * 5) == data

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write_and_read, range(2_000)))
