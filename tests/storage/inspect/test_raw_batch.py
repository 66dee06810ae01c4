"""Batches that are found at any byte of a damaged segment."""

import random
from pathlib import Path

import pytest

from odradek.storage.files import Files
from odradek.storage.inspect.raw_batch import RawBatch, find_whole_batch
from tests.support.log_box import batch_of

MIB = 1 << 20


def test_a_whole_batch_is_found_after_bytes_of_which_few_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, path, checked = Files(), tmp_path / "0.log", 0
    noise = random.Random(1).randbytes(MIB)
    path.write_bytes(noise + bytes(63 * MIB) + batch_of(b"whole"))
    is_valid = RawBatch.is_valid

    def counted(batch: RawBatch) -> bool:
        nonlocal checked
        checked += 1
        return is_valid(batch)

    monkeypatch.setattr(RawBatch, "is_valid", counted)
    file = files.open(path, read_only=True)
    found = find_whole_batch(files, file, 0, path.stat().st_size, 0)
    assert found is not None
    assert found.position == 64 * MIB
    assert checked < 5
