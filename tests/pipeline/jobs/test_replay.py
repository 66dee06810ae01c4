"""Archives into topics of a broker, and what a kill costs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.archive.json_schema import parse_json_schema
from odradek.pipeline.jobs.archive.layout import ArchiveLayout
from odradek.pipeline.jobs.progress import NO_PROGRESS
from odradek.pipeline.jobs.replay import target
from odradek.pipeline.jobs.replay.job import ReplaySettings, ReplaySummary, run_replay
from odradek.pipeline.jobs.replay.selection import Selection
from odradek.pipeline.jobs.replay.target import Targets
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.archives import InThisProcess, Row, archive_here, logged
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer
from tests.support.log_box import NOW_MS, TOPIC, LogBox, batch_of, put

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


def archive_of(root: Path, *, partitions: int = 1, **more: Any) -> list[list[Row]]:
    """An archive at `root`/archive, of small files; what is in it, by partition."""
    expected = []
    for partition in range(partitions):
        box = LogBox(root / "log", files=QuickFiles(), segment_bytes=4000)
        box.directory = root / "log" / f"{TOPIC}-{partition}"
        log = box.open()
        Writer(partition, codecs=tuple(CompressionType), producers=False).write(log, 60)
        odd = [
            Record(None, None, NOW_MS, headers=(("a", b"1"), ("a", None), ("b", b""))),
            Record(b"", b"", NOW_MS),
        ]
        log.append(bytes(build_batch(odd)), now_ms=NOW_MS)
        expected.append(logged(box.directory))
        log.close(NOW_MS)
    settings = ArchiveSettings(
        log_directories=[root / "log"],
        archive=root / "archive",
        until_end=True,
        max_split_bytes=1500,
        **more,
    )
    archive_here(settings, QuickFiles())
    return expected


def settings_for(root: Path, broker: BrokerProcess, **more: Any) -> ReplaySettings:
    more = {"job_id": "job", "to_topic": root.name, "create": True, **more}
    return ReplaySettings(
        archive=root / "archive",
        client={"bootstrap.servers": broker.bootstrap, **more.pop("client", {})},
        topics=TopicChoice(names=[TOPIC]),
        **more,
    )


def replay_here(settings: ReplaySettings) -> ReplaySummary:
    return run_replay(InThisProcess(), settings, NO_PROGRESS)


def in_topic(broker: BrokerProcess, topic: str, partition: int = 0) -> list[Row]:
    """Its records, without topic and offset."""
    return without_offset(logged(broker.data / f"{topic}-{partition}"))


def without_offset(rows: list[Row]) -> list[Row]:
    return [row[3:] for row in rows]


def test_a_replay_keeps_partitions_order_times_keys_nulls_and_headers(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    expected = archive_of(tmp_path, partitions=3)
    summary = replay_here(settings_for(tmp_path, broker))
    for partition, rows in enumerate(expected):
        assert in_topic(broker, tmp_path.name, partition) == without_offset(rows)
    target_offsets = [
        (each.progress.target_first, each.progress.target_last) for each in summary.results
    ]
    assert target_offsets == [(0, len(rows) - 1) for rows in expected]
    assert Targets({"bootstrap.servers": broker.bootstrap}).partitions()[tmp_path.name] == 3


def test_a_second_run_of_a_job_sends_nothing(tmp_path: Path, broker: BrokerProcess) -> None:
    (rows,) = archive_of(tmp_path)
    replay_here(settings_for(tmp_path, broker))
    (again,) = replay_here(settings_for(tmp_path, broker)).results
    assert again.before.records == again.progress.records == len(rows)
    assert len(in_topic(broker, tmp_path.name)) == len(rows)
    with pytest.raises(JobError, match="started with other topics or another range"):
        replay_here(settings_for(tmp_path, broker, selection=Selection(from_offset=5)))
    replay_here(settings_for(tmp_path, broker, job_id="another"))
    assert len(in_topic(broker, tmp_path.name)) == 2 * len(rows)


def test_a_range_of_times_and_offsets_is_replayed(tmp_path: Path, broker: BrokerProcess) -> None:
    (rows,) = archive_of(tmp_path)
    stamps = sorted(row[5] for row in rows)
    selection = Selection(from_ms=stamps[20], to_ms=stamps[-20], from_offset=10, to_offset=150)
    replay_here(settings_for(tmp_path, broker, selection=selection))
    expected = [row for row in rows if stamps[20] <= row[5] < stamps[-20] and 10 <= row[2] < 150]
    assert in_topic(broker, tmp_path.name) == without_offset(expected)
    assert 20 < len(expected) < len(rows)


RUN = """
import sys
from pathlib import Path
from odradek.pipeline.jobs.replay import target
from odradek.pipeline.jobs.replay.job import ReplaySettings, run_replay
from odradek.pipeline.jobs.progress import NO_PROGRESS
from odradek.pipeline.jobs.topic_choice import TopicChoice
from tests.support.archives import InThisProcess

archive, bootstrap, target, rate = sys.argv[1:]
run_replay(InThisProcess(), ReplaySettings(
    archive=Path(archive), client={"bootstrap.servers": bootstrap}, job_id="job",
    topics=TopicChoice(names=["orders"]), to_topic=target, create=True,
    records_per_s=float(rate)), NO_PROGRESS)
"""


def kill_midway(root: Path, broker: BrokerProcess, rate: float, until: int) -> None:
    """Begin a replay in a process of its own, and end that by SIGKILL when so much is there."""
    arguments = [str(root / "archive"), broker.bootstrap, root.name, str(rate)]
    process = subprocess.Popen([sys.executable, "-c", RUN, *arguments], cwd=Path.cwd())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        directory = broker.data / f"{root.name}-0"
        if directory.exists() and len(in_topic(broker, root.name)) >= until:
            break
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def test_a_killed_replay_resumes_and_sends_nothing_twice(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    """Including records delivered after the last stored progress, among records of others."""
    (rows,) = archive_of(tmp_path)
    kill_midway(tmp_path, broker, 60, until=10)
    other = Producer({"bootstrap.servers": broker.bootstrap})
    other.produce(tmp_path.name, b"of another", partition=0)
    other.flush(10)
    kill_midway(tmp_path, broker, 60, until=80)
    delivered = len(in_topic(broker, tmp_path.name)) - 1
    assert delivered < len(rows)
    (replayed,) = replay_here(settings_for(tmp_path, broker)).results
    found = [row for row in in_topic(broker, tmp_path.name) if row[1] != b"of another"]
    assert found == without_offset(rows)
    assert replayed.progress.records == len(rows)
    assert replayed.before.records + replayed.found_delivered == delivered


def test_a_record_that_is_refused_stops_the_partition_there(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    box = LogBox(tmp_path / "log", files=QuickFiles())
    log = box.open()
    for value in (b"a", b"b", os.urandom(5000), b"c"):
        put(log, value)
    log.close(NOW_MS)
    archive = ArchiveSettings(
        log_directories=[tmp_path / "log"], archive=tmp_path / "archive", until_end=True
    )
    archive_here(archive, QuickFiles())
    settings = settings_for(
        tmp_path,
        broker,
        topic_settings={"max.message.bytes": "2000"},
        client={"batch.size": "1000", "linger.ms": "0"},
    )
    with pytest.raises(JobError, match="rejects the record at offset 2: "):
        replay_here(settings)
    assert [row[1] for row in in_topic(broker, tmp_path.name)] == [b"a", b"b"]


def test_errors_are_reported_before_anything_is_sent(
    tmp_path: Path, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_of(tmp_path, partitions=2)
    with pytest.raises(JobError, match="does not exist"):
        replay_here(settings_for(tmp_path, broker, create=False))
    Targets({"bootstrap.servers": broker.bootstrap}).create(f"{tmp_path.name}.narrow", 1, {})
    with pytest.raises(JobError, match="has 1 partitions; 2 are needed"):
        replay_here(settings_for(tmp_path, broker, to_topic=f"{tmp_path.name}.narrow"))
    monkeypatch.setattr(target, "_TIMEOUT_S", 0.5)
    with pytest.raises(JobError, match="the broker does not answer: "):
        replay_here(settings_for(tmp_path, broker, client={"bootstrap.servers": "127.0.0.1:9"}))
    next(iter((tmp_path / "archive").glob("topic=*/date=*/*.parquet"))).unlink()
    with pytest.raises(JobError, match="was deleted"):
        replay_here(settings_for(tmp_path, broker))
    assert not ArchiveLayout(tmp_path / "archive").replay("job").exists()


def test_an_archive_without_values_cannot_be_replayed(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    box = LogBox(tmp_path / "log", files=QuickFiles())
    put(box.open(), b'{"id": 1}')
    archive = ArchiveSettings(
        log_directories=[tmp_path / "log"],
        archive=tmp_path / "archive",
        until_end=True,
        values=parse_json_schema('{"id": "long"}'),
        keep_value=False,
    )
    archive_here(archive, QuickFiles())
    with pytest.raises(JobError, match="has no column value"):
        replay_here(settings_for(tmp_path, broker))


def test_dead_letters_are_replayed_in_their_places(tmp_path: Path, broker: BrokerProcess) -> None:
    box = LogBox(tmp_path / "log", files=QuickFiles())
    log = box.open()
    log.append(batch_of(b'{"id": 1}', b"bad", b'{"id": 2}'), now_ms=NOW_MS)
    archive = ArchiveSettings(
        log_directories=[tmp_path / "log"],
        archive=tmp_path / "archive",
        until_end=True,
        values=parse_json_schema('{"id": "long"}'),
    )
    assert archive_here(archive, QuickFiles()).total().dead_letters == 1
    replay_here(settings_for(tmp_path, broker))
    assert [row[1] for row in in_topic(broker, tmp_path.name)] == [
        b'{"id": 1}',
        b"bad",
        b'{"id": 2}',
    ]


def test_settings_of_the_target_that_would_change_records_are_reported(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    archive_of(tmp_path)
    settings = {"message.timestamp.type": "LogAppendTime", "retention.ms": "1000"}
    Targets({"bootstrap.servers": broker.bootstrap}).create(tmp_path.name, 1, settings)
    notes = replay_here(settings_for(tmp_path, broker)).notes
    assert len(notes) == 2
    assert "timestamps are not kept" in notes[0]
    assert "will delete the oldest" in notes[1]
