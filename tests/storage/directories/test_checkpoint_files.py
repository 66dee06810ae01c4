"""A checkpoint file is written when its content changes, or could not be written."""

from pathlib import Path

import pytest

from odradek.storage.checkpoints import read_offsets
from odradek.storage.directories.checkpoint_files import CheckpointFiles
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class CountedRenames(Files):
    """Counts the files that were replaced; `fails` makes the next fail."""

    def __init__(self) -> None:
        self.count = 0
        self.fails = False

    def rename(self, source: Path, target: Path) -> None:
        if self.fails:
            raise OSError("no space")
        super().rename(source, target)
        self.count += 1


def test_a_file_is_written_when_its_content_changes_or_was_not_written(tmp_path: Path) -> None:
    files, path = CountedRenames(), tmp_path / "recovery-point-offset-checkpoint"
    checkpoints = CheckpointFiles(files)
    files.fails = True
    with pytest.raises(OSError, match="no space"):
        checkpoints.write(path, lambda: {A: 1})
    files.fails = False
    for _ in range(2):
        checkpoints.write(path, lambda: {A: 1})
    assert (files.count, read_offsets(files, path)) == (1, {A: 1})
    checkpoints.write(path, lambda: {B: 2})
    assert (files.count, read_offsets(files, path)) == (2, {B: 2})


def test_an_offset_is_dropped_with_one_write_and_where_there_is_none_with_no_write(
    tmp_path: Path,
) -> None:
    files, path = CountedRenames(), tmp_path / "log-start-offset-checkpoint"
    CheckpointFiles(files).write(path, lambda: {A: 1})
    checkpoints = CheckpointFiles(files)  # after a start
    checkpoints.drop(path, B, dict)
    assert files.count == 1
    checkpoints.drop(path, A, lambda: {B: 2})
    assert (files.count, read_offsets(files, path)) == (2, {B: 2})
    checkpoints.drop(path, A, lambda: {B: 3})
    assert files.count == 2
    checkpoints.drop(path, B, dict)
    assert (files.count, read_offsets(files, path)) == (3, {})


def test_after_a_write_that_failed_a_file_may_have_any_offset(tmp_path: Path) -> None:
    files, path = CountedRenames(), tmp_path / "log-start-offset-checkpoint"
    checkpoints = CheckpointFiles(files)
    checkpoints.write(path, dict)
    files.fails = True
    with pytest.raises(OSError, match="no space"):
        checkpoints.write(path, lambda: {A: 1})
    with pytest.raises(OSError, match="no space"):
        checkpoints.drop(path, A, dict)
