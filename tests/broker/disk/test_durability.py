"""flush.messages: an acknowledgement leaves after the fsync that covers it, if that succeeds."""

import asyncio
import errno
import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.disk import disk_executor, log_sync
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from odradek.storage import parts, producer_state
from odradek.storage.log import PartitionLog
from odradek.storage.producer_snapshot import decode_snapshot
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.broker_in_loop import (
    PRODUCE_VERSION,
    BrokerInLoop,
    broker_in_loop,
    produce_to,
    until,
)
from tests.support.faulty_files import below
from tests.support.gated_files import GatedFiles
from tests.support.log_box import NOW_MS, batch_of, split
from tests.support.stored_batches import FETCH_VERSION, fetch_request, fetched

pytestmark = pytest.mark.usefixtures("both_produce_paths")

STILL_WAITS_S = 0.2


@pytest.fixture
async def files() -> GatedFiles:
    return GatedFiles()


@pytest.fixture
async def served(tmp_path: Path, files: GatedFiles) -> AsyncIterator[BrokerInLoop]:
    directories = [tmp_path / "a", tmp_path / "b"]
    async with broker_in_loop(directories, files, offsets_topic_num_partitions="1") as broker:
        yield broker
        files.heal()
        files.gate.set()


async def topic(
    served: BrokerInLoop, *, partitions: int = 1, flush_messages: int = 1
) -> list[PartitionLog]:
    """The logs of the topic t."""
    configs = {"flush.messages": str(flush_messages)}
    wish = NewTopic(name="t", partition_count=partitions, configs=configs)
    await served.broker.admin.topics.create([wish])
    return [served.broker.log_manager.get("t", index) for index in range(partitions)]


async def is_waiting(work: "asyncio.Task[object]") -> bool:
    """Whether it goes on waiting, as far as one can tell in a moment."""
    done, _ = await asyncio.wait([work], timeout=STILL_WAITS_S)
    return not done


async def read(
    served: BrokerInLoop, offset: int, *, max_wait_ms: int = 0
) -> tuple[int, list[bytes]]:
    """The high watermark that a consumer is told, and the batches that it gets."""
    request = fetch_request("t", 0, offset, 10_000, max_wait_ms=max_wait_ms)
    answer = await served.ask(request, FetchResponse, FETCH_VERSION)
    told: int = answer.responses[0].partitions[0].high_watermark
    return told, split(bytes(fetched(answer)))


async def latest(served: BrokerInLoop) -> int:
    topic = ListOffsetsTopic(
        name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
    )
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])
    answer = await served.ask(request, ListOffsetsResponse, 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


async def test_an_answer_waits_for_the_fsync_and_so_do_readers(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    (log,) = await topic(served)
    files.close_gate(log)
    waiting = asyncio.create_task(read(served, 0, max_wait_ms=20_000))
    await until(lambda: log.on_append)
    producing = asyncio.create_task(served.produce("t", batch_of(b"v")))
    assert await is_waiting(producing)
    assert (log.log_end_offset, log.recovery_point) == (1, 0)
    late = asyncio.create_task(read(served, 0, max_wait_ms=20_000))
    assert await read(served, 0) == (0, [])
    assert await read(served, 1) == (0, [])
    assert await latest(served) == 0
    assert not waiting.done()
    files.gate.set()
    (answer,) = await producing
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert log.recovery_point == 1
    for reader in (waiting, late):
        told, batches = await asyncio.wait_for(reader, 10)
        assert (told, len(batches)) == (1, 1)
    assert await latest(served) == 1


async def test_records_that_may_stay_unsynced_are_read_at_once_and_go_on_being_read(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    (log,) = await topic(served, flush_messages=3)
    files.close_gate(log)
    await served.produce("t", batch_of(b"a"))
    await served.produce("t", batch_of(b"b"))
    assert await latest(served) == 2
    third = asyncio.create_task(served.produce("t", batch_of(b"c")))
    assert await is_waiting(third)
    told, batches = await read(served, 0)
    assert (told, len(batches)) == (2, 2)
    assert await read(served, 2) == (2, [])
    assert log.last_stable_offset == 2
    files.gate.set()
    await third
    told, batches = await read(served, 0)
    assert (told, len(batches)) == (3, 3)


async def test_one_fsync_serves_all_who_wait(served: BrokerInLoop, files: GatedFiles) -> None:
    (log,) = await topic(served)
    files.close_gate(log)
    work = [asyncio.create_task(served.produce("t", batch_of(b"v"))) for _ in range(20)]
    assert await is_waiting(work[0])
    await until(lambda: log.log_end_offset == 20)
    files.gate.set()
    answers = [(await each)[0] for each in work]
    assert sorted(answer.base_offset for answer in answers) == list(range(20))
    # Whoever came while the first one's fsync ran shared the next.
    assert files.begun <= 2


async def test_partitions_are_synced_side_by_side_and_a_request_waits_for_its_own(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    logs = await topic(served, partitions=3)
    files.close_gate(logs[0])
    both = asyncio.create_task(served.produce("t", batch_of(b"v"), [0, 1]))
    (alone,) = await served.produce("t", batch_of(b"v"), [2])
    assert alone.error_code == ErrorCode.NONE
    assert await is_waiting(both)
    assert [log.recovery_point for log in logs] == [0, 1, 1]
    files.gate.set()
    assert [one.error_code for one in await both] == [0, 0]


async def test_a_sync_begins_with_the_append_that_reaches_flush_messages(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    (log,) = await topic(served, flush_messages=3)
    files.close_gate(log)
    await served.produce("t", batch_of(b"a"))
    await served.produce("t", batch_of(b"b"))
    assert files.begun == 0
    third = asyncio.create_task(served.produce("t", batch_of(b"c")))
    assert await is_waiting(third)
    files.gate.set()
    await third
    assert log.recovery_point == 3


async def test_acks_0_is_synced_too_and_nobody_waits(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    (log,) = await topic(served)
    files.close_gate(log)
    await served.send(produce_to("t", batch_of(b"v"), acks=0), PRODUCE_VERSION)
    await until(lambda: files.begun)
    assert not served.broker.log_syncs.due  # the next request must not wait for it
    files.gate.set()
    await until(lambda: log.recovery_point == 1)


async def test_a_duplicate_is_acknowledged_only_when_the_first_one_is_synced(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    (log,) = await topic(served)
    files.close_gate(log)
    batch = batch_of(b"v", producer=(5, 0, 0))
    first = asyncio.create_task(served.produce("t", batch))
    assert await is_waiting(first)
    again = asyncio.create_task(served.produce("t", batch))
    assert await is_waiting(again)
    files.gate.set()
    assert [(await each)[0].base_offset for each in (first, again)] == [0, 0]
    assert log.log_end_offset == 1
    (late,) = await asyncio.wait_for(served.produce("t", batch), 10)
    assert late.base_offset == 0


async def test_a_failed_fsync_is_told_to_who_waits_and_never_tried_again(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    logs = await topic(served, partitions=2)
    hurt, well = sorted(logs, key=lambda log: log.directory.parent.name == "a")[::-1]
    if hurt.directory.parent == served.broker.config.metadata_directory:
        hurt, well = well, hurt  # without that one there is no broker
    files.close_gate(hurt)
    both = asyncio.create_task(served.produce("t", batch_of(b"v"), [0, 1]))
    assert await is_waiting(both)
    later = asyncio.create_task(served.produce("t", batch_of(b"w"), [hurt.partition]))
    assert await is_waiting(later)
    files.fail(below(hurt.directory, "fsync"), lasting=False)
    files.gate.set()
    codes = {answer.index: answer.error_code for answer in await both}
    assert codes[hurt.partition] == ErrorCode.KAFKA_STORAGE_ERROR
    assert codes[well.partition] == ErrorCode.NONE
    # The next fsync would have succeeded, and told a lie.
    assert (await later)[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert hurt.recovery_point == 0
    assert list(served.broker.log_manager.offline) == [hurt.directory.parent]
    assert not served.broker.directory_failures.fatal.done()


def commit_of(offset: int) -> OffsetCommitRequest:
    wanted = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=[wanted])
    return OffsetCommitRequest(group_id="g", topics=[topic])


@pytest.mark.parametrize("version", [0, 8], ids=["makes the topic", "finds the topic"])
async def test_a_commit_waits_where_all_topics_flush_each_record(
    tmp_path: Path, files: GatedFiles, version: int
) -> None:
    settings = {"log_flush_interval_messages": "1", "offsets_topic_num_partitions": "1"}
    async with broker_in_loop([tmp_path], files, **settings) as served:
        await served.broker.admin.topics.create([NewTopic(name="t")])
        if version > 0:  # else that request makes the topic, and is answered late anyway
            await served.broker.admin.topics.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
        files.gated = tmp_path / "__consumer_offsets-0"
        files.gate.clear()
        commit = asyncio.create_task(served.ask(commit_of(7), OffsetCommitResponse, version))
        assert await is_waiting(commit)
        log = served.broker.log_manager.get("__consumer_offsets", 0)
        assert log.log_end_offset > 0
        files.gate.set()
        assert (await commit).topics[0].partitions[0].error_code == ErrorCode.NONE
        assert log.recovery_point == log.log_end_offset
        await until(lambda: not served.broker.log_syncs.coordinators)


async def test_a_response_that_shows_what_another_request_has_written_waits_for_its_sync(
    tmp_path: Path, files: GatedFiles
) -> None:
    settings = {"log_flush_interval_messages": "1", "offsets_topic_num_partitions": "1"}
    async with broker_in_loop([tmp_path], files, **settings) as served:
        await served.broker.admin.topics.create([NewTopic(name="t")])
        await served.broker.admin.topics.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
        files.gated = tmp_path / "__consumer_offsets-0"
        files.gate.clear()
        commit = asyncio.create_task(served.ask(commit_of(7), OffsetCommitResponse, 8))
        assert await is_waiting(commit)
        group = OffsetFetchRequestGroup(group_id="g", topics=None)
        fetch = OffsetFetchRequest(groups=[group])
        found = asyncio.create_task(served.ask(fetch, OffsetFetchResponse, 8))
        assert await is_waiting(found)
        await served.ask(MetadataRequest(topics=[]), MetadataResponse, 12)
        files.gate.set()
        await commit
        assert (await found).groups[0].topics[0].partitions[0].committed_offset == 7


async def test_who_is_answered_late_hears_of_a_failed_sync_too(
    tmp_path: Path, files: GatedFiles
) -> None:
    settings = {"log_flush_interval_messages": "1", "offsets_topic_num_partitions": "1"}
    async with broker_in_loop([tmp_path], files, **settings) as served:
        await served.broker.admin.topics.create([NewTopic(name="t")])
        files.fail(below(tmp_path / "__consumer_offsets-0", "fsync"), lasting=False)
        answer = await served.ask(commit_of(7), OffsetCommitResponse, 0)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
        files.heal()


async def test_nobody_waits_for_the_sync_of_what_no_request_has_written(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    (log,) = await topic(served)
    files.close_gate(log)
    log.append(batch_of(b"v"), now_ms=served.broker.clock.now_ms())
    await until(lambda: files.begun)
    answer = served.ask(MetadataRequest(topics=[]), MetadataResponse, 12)
    await asyncio.wait_for(answer, 10)
    assert log.recovery_point == 0
    files.gate.set()


async def test_a_full_disk_found_by_an_fsync_is_a_failed_fsync(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    logs = await topic(served, partitions=2)
    home = served.broker.config.metadata_directory
    log = next(each for each in logs if each.directory.parent != home)
    files.fail(below(log.directory, "fsync"), error=errno.ENOSPC, lasting=False)
    (answer,) = await served.produce("t", batch_of(b"v"), [log.partition])
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not log.is_online


async def test_a_sync_that_fails_after_a_move_is_the_old_directory_s_failure(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    broker = served.broker
    home = broker.config.metadata_directory  # the log moves to it
    log = next(each for each in await topic(served, partitions=2) if each.directory.parent != home)
    source = log.directory
    files.close_gate(log)
    producing = asyncio.create_task(served.produce("t", batch_of(b"v"), [log.partition]))
    assert await is_waiting(producing)
    broker.maintenance.mover.alter(*log.key, str(home))
    await until(lambda: log.directory.parent == home)
    files.fail(below(source, "fsync"), lasting=False)
    files.gate.set()
    await producing
    await until(lambda: broker.log_manager.offline)
    assert list(broker.log_manager.offline) == [source.parent]
    assert log.is_online


async def test_a_deleted_log_is_forgotten_once_it_is_synced(served: BrokerInLoop) -> None:
    (log,) = await topic(served)
    await served.produce("t", batch_of(b"v"))
    gone = weakref.ref(log)
    del log
    await served.broker.admin.topics.delete([TopicRef(name="t")])
    await served.ask(MetadataRequest(topics=[]), MetadataResponse, 12)
    gc.collect()
    assert gone() is None


async def test_a_sync_that_finds_no_file_descriptor_is_tried_again(
    served: BrokerInLoop, files: GatedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_sync, "RETRY_SECONDS", 0.01)
    (log,) = await topic(served)
    files.fail(below(log.directory, "fsync_directory"), error=errno.EMFILE, lasting=False)
    (answer,) = await served.produce("t", batch_of(b"v"))
    assert answer.error_code == ErrorCode.NONE
    assert log.recovery_point == 1
    assert not served.broker.log_manager.offline


async def test_the_segments_of_many_rolls_are_synced_together(
    served: BrokerInLoop, files: GatedFiles
) -> None:
    (log,) = await topic(served, flush_messages=1_000_000)
    syncs: list[float] = []
    served.broker.log_syncs.on_synced = syncs.append
    files.close_gate(log)
    for day in range(0, 20 * 8, 8):  # segment.ms is seven days
        log.append(batch_of(b"v", timestamps=[day * 86_400_000]), now_ms=NOW_MS)
        await asyncio.sleep(0)
    await until(lambda: files.begun)
    files.gate.set()
    await until(lambda: log.recovery_point == len(log.segments) - 1 == 19)
    await served.broker.background.wait()
    assert len(syncs) <= 2


async def test_the_snapshot_of_many_producers_is_synced_with_the_segment(
    served: BrokerInLoop, files: GatedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is encoded in parts after the roll. Here each part has one producer."""
    for module in (parts, producer_state):
        monkeypatch.setattr(module, "ITEMS_OF_A_PART", 1)
    (log,) = await topic(served, flush_messages=1_000)
    for producer_id in range(5):
        await served.produce("t", batch_of(b"v", producer=(producer_id, 0, 0)))
    snapshot = log.directory / "00000000000000000005.snapshot"
    with files.counting() as seen:
        log.roll(NOW_MS)
        assert not snapshot.exists()
        await served.produce("t", batch_of(b"v", producer=(3, 0, 1)))
        await until(lambda: log.recovery_point == 5)
    assert [kind for kind, path in seen if path == snapshot] == [
        "create",
        "truncate",
        "write",
        "fsync",
    ]
    entries = decode_snapshot(snapshot.read_bytes())
    assert [(one.producer_id, one.last_offset) for one in entries] == [(n, n) for n in range(5)]


async def test_logs_that_are_synced_by_time_are_planned_a_few_at_a_time(
    served: BrokerInLoop, files: GatedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan opens files, on the event loop."""
    logs = await topic(served, partitions=20, flush_messages=1000)
    for log in logs:
        log.append(batch_of(b"v"), now_ms=NOW_MS)
    planned: list[PartitionLog] = []
    flush_plan = PartitionLog.flush_plan
    monkeypatch.setattr(
        PartitionLog, "flush_plan", lambda log, *rest: planned.append(log) or flush_plan(log, *rest)
    )
    monkeypatch.setattr(served.broker.log_manager, "logs_to_flush", lambda _: logs)
    files.close_gate(logs[0])
    files.gated = logs[0].directory.parent.parent
    flushing = asyncio.ensure_future(served.broker.log_syncs.flush_due_by_time())
    await until(lambda: files.begun == disk_executor.THREADS)
    assert len(planned) == log_sync.FLUSHES_AT_ONCE
    files.gate.set()
    await flushing
    assert all(log.recovery_point == 1 for log in logs)
