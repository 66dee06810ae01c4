"""When the garbage collector looks at every object of a process that serves."""

import subprocess
import sys

import pytest

from odradek.broker.turns.full_collections import FullCollections, memory

MAKES_MANY_OBJECTS = """
import gc
from odradek.broker.turns.full_collections import spare_what_stays

full = []
gc.callbacks.append(lambda phase, info: full.append(phase) if info["generation"] == 2 else None)
spare_what_stays()
kept = [[number] for number in range(1_000_000)]
print(len(full), gc.get_freeze_count() > 1000)
"""


def test_objects_that_stay_start_no_full_collection() -> None:
    command = [sys.executable, "-c", MAKES_MANY_OBJECTS]
    assert subprocess.check_output(command, text=True) == "0 True\n"


def test_memory_grows_with_what_is_kept() -> None:
    before = memory()
    kept = [bytes(1000) for _ in range(100_000)]
    grown = memory()
    assert len(kept) == 100_000
    assert grown > before


class Process:
    """A process with some blocks of memory, of which a collection frees the garbage."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.garbage = 0
        self.collections = FullCollections(lambda: self.blocks + self.garbage, self._collect)

    def _collect(self) -> None:
        self.garbage = 0


def test_garbage_takes_at_most_half_as_much_memory_again() -> None:
    process = Process(100)
    process.collections.collect_if_due()
    for _ in range(1000):
        process.garbage += 1
        process.collections.collect_if_due()
        assert process.garbage <= 50


@pytest.mark.parametrize("grown", [151, 1_000_000])
def test_a_process_that_has_grown_is_looked_at_once(grown: int) -> None:
    process = Process(100)
    process.collections.collect_if_due()
    process.blocks = grown - 1
    process.garbage = 1
    for _ in range(10):
        process.collections.collect_if_due()
        assert process.garbage == 0
    process.garbage = grown // 2 - 1
    process.collections.collect_if_due()
    assert process.garbage, "it is not due again"
