"""The checkpoints of a log directory, written by two threads."""

import errno
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event, Thread

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.protocol.compression import Buffer
from odradek.protocol.primitives import random_uuid
from odradek.storage.checkpoints import read_offsets
from odradek.storage.files import Files
from odradek.storage.log_manager import LogManager
from tests.support.faulty_files import FaultyFiles
from tests.support.log_box import NOW_MS
from tests.support.timer import Timer

NAME = "recovery-point-offset-checkpoint"


class WaitingFiles(Files):
    """Who writes the checkpoint waits there for a second one, for a moment."""

    def __init__(self) -> None:
        self.one_writes = Event()
        self.two_write = Barrier(2)
        self.have_met = False

    def atomic_write(self, path: Path, data: Buffer, *, sync: bool = True) -> None:
        if path.name == NAME:
            self.one_writes.set()
            with suppress(BrokenBarrierError):
                self.two_write.wait(0.3)
                self.have_met = True
        super().atomic_write(path, data, sync=sync)


def test_a_deletion_waits_for_whoever_writes_the_checkpoint_and_has_the_last_word(
    tmp_path: Path,
) -> None:
    files = WaitingFiles()
    config = BrokerConfig.from_texts({"log.dirs": str(tmp_path)})
    manager = LogManager.open(config, files=files, timer_ms=Timer())
    for topic in ("kept", "deleted"):
        manager.create(topic, 0, random_uuid(), TopicConfig(), now_ms=NOW_MS)
    writer = Thread(target=manager.write_recovery_points)
    writer.start()
    assert files.one_writes.wait(10)
    manager.delete([("deleted", 0)])
    writer.join()
    assert (files.have_met, manager.offline) == (False, {})
    assert read_offsets(files, tmp_path / NAME) == {("kept", 0): 0}
    manager.close(now_ms=NOW_MS)


def test_a_file_that_cannot_be_written_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    files = FaultyFiles()
    config = BrokerConfig.from_texts({"log.dirs": str(tmp_path)})
    manager = LogManager.open(config, files=files, timer_ms=Timer())
    manager.create("deleted", 0, random_uuid(), TopicConfig(), now_ms=NOW_MS)
    manager.write_high_watermarks()
    files.fail(lambda _, path: path.name == f"{NAME}.tmp", error=errno.ENOSPC)
    manager.delete([("deleted", 0)])
    assert read_offsets(files, tmp_path / "replication-offset-checkpoint") == {}
    assert manager.offline == {}
    files.heal()
    manager.close(now_ms=NOW_MS)
