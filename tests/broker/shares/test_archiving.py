"""Share-partitions that are closed while records of theirs wait, or while others are closed."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.coordinators import Coordinators
from odradek.broker.shares import archiving, shares
from odradek.broker.shares.archiving import Archiving
from odradek.coordinator.share_partitions.dead_letters import Cause, DeadLetters
from tests.support.broker_in_loop import until
from tests.support.share_rig import ShareRig


class Slices:
    """Runs work at once, on the loop."""

    step = staticmethod(lambda: None)

    def run(self, work: Any) -> "asyncio.Task[None]":
        running: Coroutine[Any, Any, None] = work(self)
        return asyncio.ensure_future(running)


LETTERS = [DeadLetters(first, first, 1, Cause.REJECTED) for first in range(3)]


class Writer:
    """Writes each record as a batch."""

    def __init__(self, *_: object) -> None:
        self.written: list[int] = []

    async def write(self, letters: Sequence[DeadLetters], _step: object) -> int:
        self.written.append(letters[0].first_offset)
        return 1


class Archived:
    """The parts of an archiving, and what was archived. `faults` are what the next attempts raise.

    `waits`: pauses are not passed over.
    """

    def __init__(
        self,
        root: Path,
        monkeypatch: pytest.MonkeyPatch,
        writer: Any = None,
        *,
        waits: bool = False,
    ) -> None:
        self.led = ShareRig(root).shares.open(ShareRig.key())
        self.faults: list[Exception] = []
        self.offsets: list[tuple[int, int]] = []
        self.ended: list[object] = []
        self.writer = writer or Writer()
        monkeypatch.setattr(archiving, "QueueWriter", lambda *_: self.writer)
        if not waits:
            monkeypatch.setattr(archiving, "FIRST_DELAY_S", 0)
        queues: Any = None
        slices: Any = Slices()
        self.archiving = Archiving(
            queues, slices, self._archive, self.ended.append, lambda _led: True
        )

    def _archive(self, _led: object, letters: Sequence[DeadLetters], _step: object) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.offsets += [(each.first_offset, each.last_offset) for each in letters]


async def test_records_are_archived_though_a_fault_has_shown_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    archived = Archived(tmp_path, monkeypatch)
    archived.faults = [KeyError("a fault"), ValueError("another one")]
    archived.archiving.add(archived.led, LETTERS)
    await until(lambda: archived.ended)
    assert archived.offsets == [(0, 0), (1, 1), (2, 2)]
    assert archived.writer.written == [0, 1, 2]
    assert [text.partition(" from ")[2] for text in caplog.messages] == [
        "offset 0 on are not archived; they are in 0 s"
    ] * 2


async def test_a_stop_does_not_wait_for_another_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived = Archived(tmp_path, monkeypatch, waits=True)
    archived.faults = [KeyError("a fault")]
    archived.archiving.add(archived.led, LETTERS)
    await until(lambda: not archived.faults)
    await archived.archiving.finish()
    assert (archived.offsets, archived.ended) == ([], [archived.led])


async def test_a_stop_waits_for_the_batch_that_is_written_and_archives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is begun. Of a range, the part that has been written is archived."""

    class Slow(Writer):
        goes_on = asyncio.Event()

        async def write(self, letters: Sequence[DeadLetters], step: object) -> int:
            await self.goes_on.wait()
            return await super().write(letters, step)

    slow = Slow()
    archived = Archived(tmp_path, monkeypatch, slow)
    archived.archiving.add(archived.led, [DeadLetters(5, 8, 1, Cause.REJECTED), *LETTERS])
    await asyncio.sleep(0)
    stop = asyncio.ensure_future(archived.archiving.finish())
    await asyncio.sleep(0)
    archived.archiving.add(archived.led, LETTERS)
    slow.goes_on.set()
    await stop
    assert (slow.written, archived.offsets) == ([5], [(5, 5)])


async def test_a_stop_does_not_wait_long_for_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(Writer):
        async def write(self, letters: Sequence[DeadLetters], step: object) -> int:
            await super().write(letters, step)
            await asyncio.Event().wait()
            raise AssertionError("nothing sets it")

    monkeypatch.setattr(archiving, "LONGEST_END_S", 0)
    archived = Archived(tmp_path, monkeypatch, Endless())
    archived.archiving.add(archived.led, LETTERS)
    await until(lambda: archived.writer.written)
    await archived.archiving.finish()
    archived.archiving.close()
    await until(lambda: not archived.archiving.is_busy(archived.led))
    assert archived.offsets == []


async def test_a_stop_waits_for_the_nodes_of_a_played_cluster_too() -> None:
    ended: list[int] = []

    def shares_of(node_id: int) -> SimpleNamespace:
        async def finish_archiving() -> None:
            await asyncio.sleep(0)
            ended.append(node_id)

        return SimpleNamespace(finish_archiving=finish_archiving)

    some: Any = SimpleNamespace(shares=shares_of(1), _shares_of_nodes=[shares_of(2), shares_of(3)])
    await Coordinators.finish_archiving(some)
    assert sorted(ended) == [1, 2, 3]


async def test_nothing_is_written_for_a_share_partition_that_was_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is stored: it is written when the share-partition is opened again."""
    led = ShareRig(tmp_path).shares.open(ShareRig.key())
    open_ones, written, ended = {led}, list[int](), list[object]()

    class Closing(Writer):
        async def write(self, letters: Sequence[DeadLetters], _step: object) -> int:
            written.append(letters[0].first_offset)
            open_ones.clear()
            return letters[0].record_count

    monkeypatch.setattr(archiving, "QueueWriter", Closing)
    queues: Any = None
    slices: Any = Slices()
    waiting = Archiving(
        queues, slices, lambda *_: None, ended.append, lambda each: each in open_ones
    )
    waiting.add(led, LETTERS)
    await until(lambda: ended)
    assert (written, ended) == ([0], [led])


def test_one_that_is_closed_while_others_are_closed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = ShareRig(tmp_path, partitions=3)
    opened = [rig.shares.open(rig.key(partition)) for partition in range(3)]
    monkeypatch.setattr(shares, "CLOSED_AT_ONCE", 1)
    rig.shares._close_unused(lambda: rig.shares.topics_deleted([opened[2].key.topic_id]))
    assert not any(map(rig.shares.is_open, opened))
