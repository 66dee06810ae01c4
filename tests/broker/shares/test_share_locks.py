"""Each lock of a share group ends at its own time, whatever the other locks do."""

from pathlib import Path

from odradek.coordinator.share_partitions.changes import AcknowledgeType
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
