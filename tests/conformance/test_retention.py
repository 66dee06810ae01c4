"""Retention in Apache Kafka and in odradek: of the same directory both delete the same segments.

What is to go is told beforehand by the rules that `odradek why-not-deleted` explains with.
"""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.checkpoints import read_offsets, write_offsets
from odradek.storage.filenames import LOG_START_OFFSET_CHECKPOINT
from odradek.storage.files import Files
from odradek.storage.retention_explanation import explain
from odradek.tools.retention.stored_retention import StoredRetention
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.old_logs import OldEntry, lay_down, single
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]

CHECK_MS = 200
SETTINGS = {
    "log.retention.check.interval.ms": str(CHECK_MS),
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "log.retention.ms": "-1",
    "log.cleaner.min.cleanable.ratio": "1",  # nothing is compacted: that too would remove segments
    "log.cleaner.backoff.ms": str(CHECK_MS),  # Kafka's cleaner deletes of topics that are compacted
}
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
VALUE = b"v" * 1000
SIZE = 1075  # of a batch of it


class Case(NamedTuple):
    """A topic and the ages of its segments; the last one is active. None: no timestamp at all."""

    config: dict[str, str]
    ages_ms: Sequence[int | None]
    log_start: int = 0
    file_age_ms: int = 0


BY_AGE = {"retention.ms": str(DAY_MS)}
OLD = 9 * DAY_MS
CASES = {
    "no-limits": Case({"retention.ms": "-1"}, [OLD, OLD, OLD]),
    "all-too-old": Case(BY_AGE, [OLD, OLD, OLD]),
    "young-ones-first": Case(BY_AGE, [OLD, HOUR_MS, OLD, OLD]),
    "active-is-young": Case(BY_AGE, [OLD, OLD, HOUR_MS]),
    "from-the-future": Case(BY_AGE, [OLD, -5 * DAY_MS, OLD, OLD]),
    "append-time": Case({**BY_AGE, "message.timestamp.type": "LogAppendTime"}, [OLD, OLD, 0]),
    "by-size": Case({"retention.bytes": str(2 * SIZE)}, [0, 0, 0, 0, 0]),
    "by-size-just-not": Case({"retention.bytes": str(2 * SIZE + 1)}, [0, 0, 0, 0, 0]),
    "nothing-is-kept": Case({"retention.bytes": "0"}, [0, 0, 0]),
    "size-and-age": Case({**BY_AGE, "retention.bytes": str(3 * SIZE)}, [0, OLD, OLD, 0, 0]),
    "log-start": Case({}, [0, 0, 0, 0], log_start=2),
    "log-start-within": Case({"cleanup.policy": "compact"}, [OLD, OLD, OLD], log_start=1),
    "compacted": Case({**BY_AGE, "cleanup.policy": "compact"}, [OLD, OLD]),
    "compacted-and-deleted": Case({**BY_AGE, "cleanup.policy": "compact,delete"}, [OLD, OLD, 0]),
    "old-format-old-file": Case(BY_AGE, [None, None, 0], file_age_ms=OLD),
    "old-format-new-file": Case(BY_AGE, [None, OLD, OLD], file_age_ms=HOUR_MS),
}


def segment_of(offset: int, age_ms: int | None, now_ms: int) -> list[OldEntry]:
    """One record; without a timestamp in a message of magic 0."""
    if age_ms is None:
        return [single(offset, 0, now_ms)]
    record = Record(b"key-%d" % offset, VALUE, now_ms - age_ms, (), offset)
    batch = bytes(build_batch([record], base_offset=offset))
    assert len(batch) == SIZE
    return [OldEntry(batch, [record])]


def lay_down_all(data: Path) -> None:
    """The segments of all cases, over what is there, after a stop that was no clean one."""
    now_ms = time.time_ns() // 1_000_000
    checkpoint = data / LOG_START_OFFSET_CHECKPOINT
    starts = {**read_offsets(Files(), checkpoint)}
    for name, case in CASES.items():
        directory = data / f"{name}-0"
        for path in directory.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        lay_down(directory, *(segment_of(n, age, now_ms) for n, age in enumerate(case.ages_ms)))
        written_s = (now_ms - case.file_age_ms) / 1000
        for path in directory.glob("*.log"):
            os.utime(path, (written_s, written_s))
        if case.log_start:
            starts[name, 0] = case.log_start
    write_offsets(Files(), checkpoint, starts)
    (data / ".kafka_cleanshutdown").unlink()


def foretold(data: Path) -> dict[str, list[str]]:
    """Which segments will be left of each topic."""
    config = BrokerConfig(log_retention_ms=-1)
    left = {}
    for log in StoredRetention(Files(), [data], config).logs(lambda topic, _: topic in CASES):
        answers = explain(log.facts, time.time_ns() // 1_000_000)
        bases = [each.segment.base_offset for each in answers if each.deleted_by is None]
        left[log.topic] = [
            f"{base:020}.log" for base in bases or [log.facts.segments[-1].end_offset]
        ]
    return left


def segments(data: Path) -> dict[str, list[str]]:
    """Which are there now."""
    return {
        name: sorted(path.name for path in (data / f"{name}-0").glob("*.log")) for name in CASES
    }


def test_both_delete_what_was_foretold(tmp_path: Path) -> None:
    ours = SharedDirectory(tmp_path / "odradek", **SETTINGS)
    with ours.served_by("odradek", killed=False) as broker:
        for name, case in CASES.items():
            create_topic(broker.bootstrap, name, 1, case.config)
    lay_down_all(ours.data)
    before = segments(ours.data)
    expected = foretold(ours.data)
    assert expected["all-too-old"] == [f"{3:020}.log"]
    assert sum(expected[name] != before[name] for name in CASES) == len(CASES) - 3
    shutil.copytree(tmp_path / "odradek", tmp_path / "kafka")
    found = {}
    # Kafka again: once in many runs its cleaner has not looked at a topic within a minute.
    for name in ("kafka", "kafka", "odradek"):
        if found.get(name) == expected:
            continue
        shared = SharedDirectory(tmp_path / name, **SETTINGS)
        with shared.served_by(name, killed=True):
            with suppress(AssertionError):  # what is wrong is shown below
                wait_until(lambda shared=shared: segments(shared.data) == expected)
            time.sleep(3 * CHECK_MS / 1000)  # what is left stays
            found[name] = segments(shared.data)
    assert found == {"kafka": expected, "odradek": expected}
