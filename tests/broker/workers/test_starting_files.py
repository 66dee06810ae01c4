"""A worker that starts is alive as long as its start makes progress."""

from pathlib import Path

import pytest

from odradek.broker.workers.heartbeats import Heartbeats
from odradek.broker.workers.starting_files import StartingFiles
from odradek.storage.files import OpenFile
from odradek.storage.log_manager import LogManager
from tests.storage.test_log_manager import Node
from tests.support.log_box import NOW_MS, put, values_from
from tests.support.timer import Timer

INTERVAL_MS = 2_000
TIMEOUT_MS = 9_000
VALUES = [b"%d" % number for number in range(30)]


class KilledError(Exception):
    """The broker's own process has ended the worker."""


class SlowDisk(StartingFiles):
    """Each read takes 1.5 seconds of a clock; the broker's own process checks the worker then.

    The read number `hangs_at` does not return.
    """

    def __init__(self, hangs_at: int | None = None) -> None:
        self.now_ms = 0
        self.reads = 0
        self.hangs_at = hangs_at
        self.heartbeats = Heartbeats(INTERVAL_MS, TIMEOUT_MS, self.now_ms)
        super().__init__(self.heartbeats.heard, INTERVAL_MS, lambda: self.now_ms)

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        self.reads += 1
        self._pass_time()
        while self.reads == self.hangs_at:
            self._pass_time()
        return super().pread(file, size, position)

    def _pass_time(self) -> None:
        self.now_ms += 1_500
        if self.heartbeats.is_silent(self.now_ms):
            raise KilledError


@pytest.fixture
def killed(tmp_path: Path) -> Node:
    """A node that was killed with a log of ten segments."""
    node = Node(tmp_path)
    with node.killed() as manager:
        log = node.create(manager, "orders")
        for value in VALUES:
            put(log, value)
    return node


def start(node: Node, files: SlowDisk) -> LogManager:
    manager = LogManager.open(node.config, files=files, timer_ms=Timer())
    manager.load_logs(lambda _: node.topic_config, now_ms=NOW_MS)
    return manager


def test_a_long_recovery_that_makes_progress_is_not_ended(killed: Node) -> None:
    files = SlowDisk()
    manager = start(killed, files)
    assert files.now_ms > 2 * TIMEOUT_MS
    assert values_from(manager.get("orders", 0)) == VALUES
    manager.close(now_ms=NOW_MS)


def test_a_start_that_hangs_in_a_read_is_ended(killed: Node) -> None:
    files = SlowDisk(hangs_at=5)
    with pytest.raises(KilledError):
        start(killed, files)
    assert files.now_ms <= 5 * 1_500 + TIMEOUT_MS + INTERVAL_MS


def test_a_worker_that_has_started_reports_no_progress_of_files(killed: Node) -> None:
    files = SlowDisk()
    files.started()
    with pytest.raises(KilledError):
        start(killed, files)
