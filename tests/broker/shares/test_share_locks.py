"""Each lock of a share group ends at its own time, whatever the other locks do."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.shares import shares
from odradek.coordinator.share_partitions.changes import AcknowledgeType, expire
from tests.support.log_box import put
from tests.support.share_rig import ShareRig

DURATION = "share.record.lock.duration.ms"


def test_a_lock_of_a_lowered_duration_ends_while_older_ones_last(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    put(rig.logs[0], b"tea")
    rig.overrides[DURATION] = "60000"
    assert rig.acquire("m") == [(0, 0, 1)]
    rig.overrides[DURATION] = "15000"
    put(rig.logs[0], b"coffee")
    assert rig.acquire("m") == [(1, 1, 1)]
    rig.states.loop.advance(15_000)
    assert rig.acquire("n") == [(1, 1, 2)]
    rig.states.loop.advance(45_000)
    assert rig.acquire("n") == [(0, 0, 2), (1, 1, 3)]


def test_a_lock_that_is_renewed_for_a_shorter_time_ends_then(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    put(rig.logs[0], b"tea")
    rig.overrides[DURATION] = "60000"
    assert rig.acquire("m") == [(0, 0, 1)]
    rig.overrides[DURATION] = "15000"
    rig.acknowledge("m", (0, 0, [AcknowledgeType.RENEW]))
    rig.states.loop.advance(15_000)
    assert rig.acquire("n") == [(0, 0, 2)]


def test_no_lock_ends_after_its_topic_was_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    put(rig.logs[0], b"tea")
    assert rig.acquire("m") == [(0, 0, 1)]
    rig.shares.topics_deleted([rig.key().topic_id])
    rig.states.loop.advance(60_000)
    assert not caplog.records


class Slices:
    """Runs work on the loop."""

    step = staticmethod(lambda: None)

    def run(self, work: Any) -> "asyncio.Task[None]":
        return asyncio.ensure_future(work(self))


async def test_a_fault_at_the_end_of_a_lock_delays_that_one_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig = ShareRig(tmp_path, slices=Slices())
    monkeypatch.setattr(shares, "MAX_IN_FLIGHT_AT_ONCE", 0)
    for log in rig.logs:
        put(log, b"tea")
    assert rig.acquire("m", 0, 1) == [(0, 0, 1)] * 2
    faults = [KeyError("a fault")]

    def expire_or_fail(*arguments: Any) -> Any:
        if faults:
            raise faults.pop()
        return expire(*arguments)

    monkeypatch.setattr(shares, "expire", expire_or_fail)
    rig.states.loop.advance(30_000)
    await asyncio.gather(*rig.shares._tasks)
    assert rig.acquire("n", 0, 1) == [(0, 0, 2)]
    assert "locks of g:" in caplog.text
    rig.states.loop.advance(10_000)
    await asyncio.gather(*rig.shares._tasks)
    assert rig.acquire("n", 0, 1) == [(0, 0, 2)]
