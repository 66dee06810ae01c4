"""Share-partitions that are closed while records of theirs wait, or while others are closed."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

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


async def test_nothing_is_written_for_a_share_partition_that_was_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is stored: it is written when the share-partition is opened again."""
    led = ShareRig(tmp_path).shares.open(ShareRig.key())
    open_ones, written, ended = {led}, list[int](), list[object]()

    class Writer:
        def __init__(self, *_: object) -> None:
            pass

        async def write(self, letters: Sequence[DeadLetters], _step: object) -> int:
            written.append(letters[0].first_offset)
            open_ones.clear()
            return letters[0].record_count

    monkeypatch.setattr(archiving, "QueueWriter", Writer)
    queues: Any = None
    slices: Any = Slices()
    waiting = Archiving(
        queues, slices, lambda *_: None, ended.append, lambda each: each in open_ones
    )
    waiting.add(led, [DeadLetters(first, first, 1, Cause.REJECTED) for first in range(3)])
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
