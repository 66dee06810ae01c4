"""Fixtures of the storage tests."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")  # not a name that somebody could guess: mkdtemp makes one


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory in memory, if the system has one, for thousands of small files."""
    parent = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as directory:
        yield Path(directory)
