"""A checkpoint file is the union of the parts of several processes."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.storage.directories.checkpoint_files import CheckpointFiles
from odradek.storage.topic_partition import TopicPartition

A, B, C = ("a", 0), ("b", 0), ("c", 0)
FILE = Path("recovery-point-offset-checkpoint")


class Saved:
    """The contents that were saved; `fails` makes the next save fail."""

    def __init__(self) -> None:
        self.contents: list[Mapping[TopicPartition, int]] = []
        self.fails = False
        self.files = CheckpointFiles(self.save)

    def save(self, _: Path, offsets: Mapping[TopicPartition, int]) -> None:
        if self.fails:
            raise OSError("no space")
        self.contents.append(offsets)


def test_a_part_replaces_that_of_the_same_process_only() -> None:
    saved = Saved()
    saved.files.write(FILE, lambda: {A: 1})
    saved.files.write(FILE, lambda: {B: 2, C: 3}, 1)
    saved.files.write(FILE, lambda: {B: 4}, 1)
    assert saved.contents == [{A: 1}, {A: 1, B: 2, C: 3}, {A: 1, B: 4}]


def test_parts_that_were_found_stay_until_they_are_replaced() -> None:
    saved = Saved()
    saved.files.found(FILE, 1, {B: 2})
    saved.files.write(FILE, lambda: {A: 1})
    saved.files.write(FILE, dict, 1)
    assert saved.contents == [{A: 1, B: 2}, {A: 1}]


def test_a_file_is_saved_when_its_content_changes_or_was_not_saved() -> None:
    saved = Saved()
    saved.fails = True
    with pytest.raises(OSError, match="no space"):
        saved.files.write(FILE, lambda: {A: 1})
    saved.fails = False
    for _ in range(2):
        saved.files.write(FILE, lambda: {A: 1})
    assert saved.contents == [{A: 1}]
