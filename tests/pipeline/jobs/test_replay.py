"""Archives into topics of a broker, and what a kill costs."""

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.archive.splitting.json_schema import parse_json_schema
from odradek.pipeline.jobs.progress import NO_PROGRESS
from odradek.pipeline.jobs.replay import job, send_rate, sending, target
from odradek.pipeline.jobs.replay.job import ReplaySettings, ReplaySummary, run_replay
from odradek.pipeline.jobs.replay.selection import Selection
from odradek.pipeline.jobs.replay.target import Targets
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.sink.rows import OutgoingRow
from odradek.pipeline.sink.task_transaction import TaskTransaction
from odradek.pipeline.sink.turns import Clock
from odradek.pipeline.sink.write_options import Delivery
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.log_reader import LogReader
from tests.support.archives import InThisProcess, Row, archive_here, at, logged
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.committed import committed_values
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer
from tests.support.log_box import NOW_MS, TOPIC, LogBox, batch_of, put
from tests.support.task_attempts import Waits

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
        archive=at(root / "archive"),
        until_end=True,
        max_split_bytes=1500,
        **more,
    )
    archive_here(settings, QuickFiles())
    return expected


def settings_for(root: Path, broker: BrokerProcess, **more: Any) -> ReplaySettings:
    more = {"job_id": root.name, "to_topic": root.name, "create": True, **more}
    return ReplaySettings(
        archive=at(root / "archive"),
        client={"bootstrap.servers": broker.bootstrap, **more.pop("client", {})},
        topics=TopicChoice(names=[TOPIC]),
        **more,
    )


def replay_here(settings: ReplaySettings, attempts: int = 1) -> ReplaySummary:
    return run_replay(InThisProcess(attempts), settings, NO_PROGRESS)


def again(settings: ReplaySettings) -> ReplaySettings:
    return replace(settings, continues=True)


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
    counts = [each.progress.records for each in summary.results]
    assert counts == [len(rows) for rows in expected]
    assert Targets({"bootstrap.servers": broker.bootstrap}).partitions()[tmp_path.name] == 3


def test_a_second_run_of_a_job_sends_nothing(tmp_path: Path, broker: BrokerProcess) -> None:
    (rows,) = archive_of(tmp_path)
    settings = settings_for(tmp_path, broker)
    with pytest.raises(JobError, match="does not know the job"):
        replay_here(again(settings))
    replay_here(settings)
    (done,) = replay_here(again(settings)).results
    assert done.before.records == done.progress.records == len(rows)
    assert in_topic(broker, tmp_path.name) == without_offset(rows)
    with pytest.raises(JobError, match="exists already"):
        replay_here(settings)
    with pytest.raises(JobError, match="started with other topics or another range"):
        replay_here(again(replace(settings, selection=Selection(from_offset=5))))
    replay_here(replace(settings, job_id=f"{tmp_path.name}-another"))
    assert in_topic(broker, tmp_path.name) == 2 * without_offset(rows)


def test_a_part_that_runs_twice_is_sent_once(tmp_path: Path, broker: BrokerProcess) -> None:
    (rows,) = archive_of(tmp_path)
    replay_here(settings_for(tmp_path, broker), attempts=2)
    assert in_topic(broker, tmp_path.name) == without_offset(rows)


def test_at_least_once_needs_no_transactions(tmp_path: Path, broker: BrokerProcess) -> None:
    (rows,) = archive_of(tmp_path)
    settings = settings_for(tmp_path, broker, delivery=Delivery.AT_LEAST_ONCE)
    replay_here(settings)
    replay_here(again(settings))
    directory = broker.data / f"{tmp_path.name}-0"
    assert without_offset(logged(directory)) == without_offset(rows)
    assert not any(each.header.is_transactional for each in LogReader(directory).batches())


def test_parts_are_committed_while_the_rest_is_sent(
    tmp_path: Path, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rows,) = archive_of(tmp_path)
    monkeypatch.setattr(sending, "_PART_BYTES", 1)
    monkeypatch.setattr(send_rate, "_MAX_AT_ONCE", 20)
    replay_here(settings_for(tmp_path, broker))
    assert in_topic(broker, tmp_path.name) == without_offset(rows)
    directory = broker.data / f"{tmp_path.name}-0"
    markers = sum(each.header.is_control for each in LogReader(directory).batches())
    assert markers >= len(rows) // 20


def test_a_replay_that_is_fenced_goes_on_when_the_other_has_died(
    tmp_path: Path, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rows,) = archive_of(tmp_path)
    settings, waits = settings_for(tmp_path, broker), Waits()
    sent = sending._rows

    def fence(table: pa.Table, topic: str, partition: int) -> Iterator[OutgoingRow]:
        monkeypatch.setattr(sending, "_rows", sent)
        name = f"odradek-replay-{settings.job_id}-{topic}-{partition}"
        with closing(TaskTransaction(settings.client, name, [tmp_path.name], Clock())) as rival:
            rival.take_over()
        return sent(table, topic, partition)

    monkeypatch.setattr(sending, "_rows", fence)
    work = functools.partial(sending.SendingWork, clock=waits.clock)
    monkeypatch.setattr(job, "SendingWork", work)
    replay_here(settings)
    assert 0 < waits.total_s <= 10
    assert in_topic(broker, tmp_path.name) == without_offset(rows)


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
from odradek.pipeline.jobs.replay import sending
from odradek.pipeline.jobs.replay.job import ReplaySettings, run_replay
from odradek.pipeline.jobs.progress import NO_PROGRESS
from odradek.pipeline.jobs.topic_choice import TopicChoice
from tests.support.archives import InThisProcess, at

archive, bootstrap, target, rate, continues = sys.argv[1:]
sending._PART_S = 0.3
run_replay(InThisProcess(), ReplaySettings(
    archive=at(Path(archive)), client={"bootstrap.servers": bootstrap}, job_id=target,
    topics=TopicChoice(names=["orders"]), to_topic=target, create=True,
    continues=bool(continues), records_per_s=float(rate)), NO_PROGRESS)
"""


def kill_midway(
    root: Path, broker: BrokerProcess, rate: float, until: int, *, continues: bool
) -> None:
    """Run a replay in a process of its own, and end that by SIGKILL when so much is committed."""
    arguments = [str(root / "archive"), broker.bootstrap, root.name, str(rate)]
    arguments.append("again" if continues else "")
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


def test_a_killed_replay_continues_and_each_record_is_there_once(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    """Also if another producer has written the very records that come next."""
    (rows,) = archive_of(tmp_path)
    kill_midway(tmp_path, broker, 60, until=10, continues=False)
    other = Producer({"bootstrap.servers": broker.bootstrap})
    for _, _, _, key, value, timestamp_ms, _, headers in rows:
        other.produce(
            tmp_path.name, value, key, 0, timestamp=timestamp_ms, headers=list(headers) or None
        )
    other.flush(10)
    kill_midway(tmp_path, broker, 60, until=len(rows) + 60, continues=True)
    settings = settings_for(tmp_path, broker)
    (replayed,) = replay_here(again(settings)).results
    assert 0 < replayed.before.records < replayed.progress.records == len(rows)
    found, wanted = in_topic(broker, tmp_path.name), without_offset(rows)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted * 2))
    remaining = iter(found)
    assert all(row in remaining for row in wanted)


@pytest.mark.parametrize("lost_from", [10, 50])
def test_a_replay_goes_on_unless_records_that_it_has_sent_were_replaced(
    tmp_path: Path, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, lost_from: int
) -> None:
    log = LogBox(tmp_path / "log", files=QuickFiles()).open()
    log.assign_topic_id(b"a" * 16)
    for number in range(60):
        put(log, b"%d" % number)
    archive = ArchiveSettings(
        log_directories=[tmp_path / "log"], archive=at(tmp_path / "archive"), until_end=True
    )
    archive_here(archive, QuickFiles())
    settings = settings_for(tmp_path, broker)
    sent = sending._rows

    def interrupted(table: pa.Table, topic: str, partition: int) -> Iterator[OutgoingRow]:
        if table["offset"][0].as_py() >= 40:
            raise JobError("interrupted")
        return sent(table, topic, partition)

    with monkeypatch.context() as patches:
        patches.setattr(sending, "_PART_BYTES", 1)
        patches.setattr(send_rate, "_MAX_AT_ONCE", 20)
        patches.setattr(sending, "_rows", interrupted)
        with pytest.raises(JobError, match="interrupted"):
            replay_here(settings)
    log.truncate_to(lost_from, NOW_MS)
    for _ in range(60):
        put(log, b"new")
    assert len(archive_here(archive, QuickFiles()).repaired) == 1
    if lost_from == 10:
        refusal = "up to offset 39, and the archive has others from offset 10 on"
        with pytest.raises(JobError, match=refusal):
            replay_here(again(settings))
    else:
        replay_here(again(settings))
        replay_here(again(settings))
        expected = without_offset(logged(log.directory))
        assert in_topic(broker, tmp_path.name) == expected


def test_a_record_that_is_refused_stops_the_partition_there(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    box = LogBox(tmp_path / "log", files=QuickFiles())
    log = box.open()
    for value in (b"a", b"b", os.urandom(5000), b"c"):
        put(log, value)
    log.close(NOW_MS)
    archive = ArchiveSettings(
        log_directories=[tmp_path / "log"], archive=at(tmp_path / "archive"), until_end=True
    )
    archive_here(archive, QuickFiles())
    settings = settings_for(
        tmp_path,
        broker,
        topic_settings={"max.message.bytes": "2000"},
        client={"batch.size": "1000", "linger.ms": "0"},
    )
    refused = r"orders-0: offsets 0 to 4 are not sent to .*: MSG_SIZE_TOO_LARGE"
    with pytest.raises(JobError, match=refused):
        replay_here(settings)
    assert committed_values(broker.bootstrap, tmp_path.name, 1) == []


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
    assert not (broker.data / f"{tmp_path.name}-0").exists()


def test_an_archive_without_values_cannot_be_replayed(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    box = LogBox(tmp_path / "log", files=QuickFiles())
    put(box.open(), b'{"id": 1}')
    archive = ArchiveSettings(
        log_directories=[tmp_path / "log"],
        archive=at(tmp_path / "archive"),
        until_end=True,
        values=parse_json_schema('{"id": "long"}'),
        keep_value=False,
    )
    archive_here(archive, QuickFiles())
    with pytest.raises(JobError, match="values were not archived"):
        replay_here(settings_for(tmp_path, broker))


def test_dead_letters_are_replayed_in_their_places(tmp_path: Path, broker: BrokerProcess) -> None:
    box = LogBox(tmp_path / "log", files=QuickFiles())
    log = box.open()
    log.append(batch_of(b'{"id": 1}', b"bad", b'{"id": 2}'), now_ms=NOW_MS)
    archive = ArchiveSettings(
        log_directories=[tmp_path / "log"],
        archive=at(tmp_path / "archive"),
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


def test_a_setting_that_the_client_does_not_know_is_named() -> None:
    with pytest.raises(JobError, match=r"no\.such\.setting"):
        Targets({"bootstrap.servers": "127.0.0.1:1", "no.such.setting": "1"})
