"""Copies of a data directory while a broker works in it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.testing.snapshots import copy_directory

SEGMENT = "00000000000000000000.log"
NEXT_SEGMENT = "00000000000000000007.log"


def make_log(data: Path, name: str, *files: str) -> Path:
    directory = data / name
    directory.mkdir(parents=True)
    for file in files:
        (directory / file).write_text(file)
    return directory


def files_of(directory: Path) -> list[str]:
    paths = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return sorted(map(str, paths))


@pytest.mark.parametrize("shares", [True, False])
def test_a_log_that_is_being_created_has_no_segment_yet(tmp_path: Path, shares: bool) -> None:
    make_log(tmp_path / "data", "new-0", "partition.metadata")
    copy_directory(tmp_path / "data", tmp_path / "copy", shares_segments=shares)
    assert files_of(tmp_path / "copy") == ["new-0/partition.metadata"]


@pytest.mark.parametrize("name", ["lost+found", "remote-log-index-cache", ".Trash"])
def test_directories_that_are_no_logs_are_left_out(tmp_path: Path, name: str) -> None:
    make_log(tmp_path / "data", name, "file")
    make_log(tmp_path / "data", "t-0", SEGMENT)
    copy_directory(tmp_path / "data", tmp_path / "copy", shares_segments=True)
    assert files_of(tmp_path / "copy") == [f"t-0/{SEGMENT}"]


def test_what_is_being_deleted_is_left_out(tmp_path: Path) -> None:
    make_log(tmp_path / "data", f"t-0.{'0' * 32}-delete", SEGMENT)
    make_log(tmp_path / "data", "t-1", f"{SEGMENT}.deleted", NEXT_SEGMENT)
    copy_directory(tmp_path / "data", tmp_path / "copy", shares_segments=True)
    assert files_of(tmp_path / "copy") == [f"t-1/{NEXT_SEGMENT}"]


@pytest.mark.parametrize("shares", [True, False])
def test_segments_that_are_closed_are_shared_if_nobody_truncates_them(
    tmp_path: Path, shares: bool
) -> None:
    log = make_log(tmp_path / "data", "t-0", SEGMENT, NEXT_SEGMENT)
    copy_directory(tmp_path / "data", tmp_path / "copy", shares_segments=shares)
    assert files_of(tmp_path / "copy/t-0") == [SEGMENT, NEXT_SEGMENT]
    assert (log / SEGMENT).samefile(tmp_path / "copy/t-0" / SEGMENT) is shares
    assert not (log / NEXT_SEGMENT).samefile(tmp_path / "copy/t-0" / NEXT_SEGMENT)


def test_a_copy_from_which_a_file_has_vanished_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk thread renames the files of a segment after the directory was listed."""
    log = make_log(tmp_path / "data", "t-0", SEGMENT, NEXT_SEGMENT, "partition.metadata")
    original = shutil.copy2

    def rename_and_copy(source: Any, target: Any) -> None:
        if (log / SEGMENT).exists():
            (log / SEGMENT).rename(log / f"{SEGMENT}.deleted")
        original(source, target)

    monkeypatch.setattr(shutil, "copy2", rename_and_copy)
    copy_directory(tmp_path / "data", tmp_path / "copy", shares_segments=False)
    assert files_of(tmp_path / "copy/t-0") == [NEXT_SEGMENT, "partition.metadata"]


def test_a_directory_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        copy_directory(tmp_path / "none", tmp_path / "copy", shares_segments=True)
