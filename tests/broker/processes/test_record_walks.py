"""Batches that take long to check: the loop goes on meanwhile, and order and errors are as ever."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from odradek.broker.processes.child_process import WALK_COMMAND
from odradek.broker.processes.messages import TooLong
from odradek.broker.processes.record_walks import RecordWalks
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.compression import CompressionType
from odradek.protocol.conversion import convert_up
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.record_walk import WalkedRecords, convert_messages
from tests.support.broker_in_loop import (
    PRODUCE_VERSION,
    BrokerInLoop,
    broker_in_loop,
    produce_to,
    until,
)
from tests.support.hostile_batches import NOW_MS, messages, records, zeros

ZSTD = CompressionType.ZSTD
WITHOUT_KEYS = bytes(build_batch([Record(None, b"", NOW_MS)] * 1000))
# Ends as soon as it is given something to do.
DIES = (sys.executable, "-c", "import sys; sys.stdin.buffer.read(1)")
# In the second lane, it never ends with a batch that is called so.
WAITS_FOR_EVER = (
    sys.executable,
    "-c",
    """
import time
from odradek.broker.processes import walk_process
from odradek.broker.processes.messages import TooLong, Walked
from odradek.storage.record_walk import SHORT

def work_on(task, batch):
    if task.limits == SHORT:
        return TooLong("the other lane")
    time.sleep(3600 if batch == b"for ever" else 0)
    return Walked(batch)

walk_process.work_on = work_on
walk_process.main()
""",
)
# Answers with bytes that are no message.
SAYS_NONSENSE = (sys.executable, "-c", "print(end='\\0\\0\\0\\1x', flush=True); input()")


def batch_of(count: int, first: int = 0, codec: CompressionType = ZSTD) -> bytes:
    """Records whose keys count up from `first`."""
    return bytes(
        build_batch(
            [Record(b"%d" % number, b"", NOW_MS) for number in range(first, first + count)],
            compression=codec,
        )
    )


LARGE = batch_of(1000)
SMALL = batch_of(1, 5000)


class HeldWalks:
    """Stands for the processes: a walk is done when the test says so."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.go_on = asyncio.Event()

    async def run(self, walk: Callable[..., object], batch: bytes, client: object) -> object:
        self.asked.append(batch)
        await self.go_on.wait()
        return WalkedRecords(NOW_MS)

    def release_all(self) -> None:
        self.go_on.set()

    async def close(self) -> None:
        self.release_all()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[BrokerInLoop]:
    async with broker_in_loop([tmp_path], Files()) as broker:
        compacted = {"cleanup.policy": "compact"}
        wishes = [
            NewTopic(name="t", partition_count=2, configs=compacted),
            NewTopic(name="plain", partition_count=1),
        ]
        for wish in wishes:
            await broker.broker.admin.topics.create([wish])
        yield broker


@pytest.fixture
async def held(served: BrokerInLoop, monkeypatch: pytest.MonkeyPatch) -> HeldWalks:
    walks = HeldWalks()
    monkeypatch.setattr(served.broker, "record_walks", walks)
    return walks


def keys_in(log: PartitionLog) -> list[int]:
    return [
        int(record.key or b"-1")
        for batch in log.batches(log.log_start_offset)
        for record in read_records(batch)
    ]


def log_of(served: BrokerInLoop, topic: str = "t", partition: int = 0) -> PartitionLog:
    return served.broker.log_manager.get(topic, partition)


async def test_a_large_batch_is_stored_after_a_process_has_checked_it(
    served: BrokerInLoop,
) -> None:
    (answer,) = await served.produce("t", LARGE)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert keys_in(log_of(served)) == list(range(1000))
    assert len(served.broker.record_walks.pids) == 1
    (refused,) = await served.produce("t", WITHOUT_KEYS)
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in refused.record_errors] == list(range(1000))


@pytest.mark.slow
async def test_what_is_too_much_for_the_first_process_goes_to_the_second(
    served: BrokerInLoop,
) -> None:
    (answer,) = await served.produce("t", zeros(17 << 20, ZSTD))
    assert answer.error_code == ErrorCode.NONE
    assert len(served.broker.record_walks.pids) == 2
    (refused,) = await served.produce("t", zeros(101 << 20, ZSTD))
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_a_large_message_set_is_converted_and_then_checked(served: BrokerInLoop) -> None:
    for topic, code in (("plain", ErrorCode.NONE), ("t", ErrorCode.INVALID_RECORD)):
        request = produce_to(topic, messages(34 * 1000))
        answer = (await served.ask(request, ProduceResponse, 2)).responses[0]
        assert answer.partition_responses[0].error_code == code
    assert log_of(served, "plain").log_end_offset == 1000
    assert log_of(served).log_end_offset == 0


async def test_other_connections_are_served_meanwhile_and_the_same_one_in_order(
    served: BrokerInLoop, held: HeldWalks
) -> None:
    client = await served.send(produce_to("t", LARGE), PRODUCE_VERSION)
    await until(lambda: held.asked)
    client.send(client.frame_of(produce_to("t", SMALL), PRODUCE_VERSION))
    (other,) = await served.produce("t", batch_of(1, 7000))
    assert other.base_offset == 0
    held.go_on.set()
    await until(lambda: log_of(served).log_end_offset == 1002)
    assert keys_in(log_of(served)) == [7000, *range(1000), 5000]


async def test_the_other_batches_of_the_request_are_stored_at_once(
    served: BrokerInLoop, held: HeldWalks
) -> None:
    request = produce_to("t", LARGE, [0, 1])
    topic = request.topic_data[0]
    topic.partition_data[1] = produce_to("t", SMALL, [1]).topic_data[0].partition_data[0]
    client = await served.send(request, PRODUCE_VERSION)
    await until(lambda: log_of(served, "t", 1).log_end_offset == 1)
    assert log_of(served).log_end_offset == 0
    held.go_on.set()
    answer = await served.answer(client, ProduceResponse, PRODUCE_VERSION)
    found = answer.responses[0].partition_responses
    assert [(each.index, each.error_code, each.base_offset) for each in found] == [
        (0, 0, 0),
        (1, 0, 0),
    ]


async def test_several_large_batches_of_a_request_are_stored_and_synced_before_the_answer(
    served: BrokerInLoop,
) -> None:
    configs = {"cleanup.policy": "compact", "flush.messages": "1"}
    wish = NewTopic(name="synced", partition_count=2, configs=configs)
    await served.broker.admin.topics.create([wish])
    answers = await served.produce("synced", LARGE, [0, 1])
    assert [(each.index, each.error_code, each.base_offset) for each in answers] == [
        (0, 0, 0),
        (1, 0, 0),
    ]
    assert [log_of(served, "synced", index).recovery_point for index in (0, 1)] == [1000, 1000]


async def test_the_bytes_are_kept_while_the_receive_buffer_is_used_by_others(
    served: BrokerInLoop, held: HeldWalks
) -> None:
    await served.send(produce_to("t", LARGE), PRODUCE_VERSION)
    assert len(LARGE) < 16_000, "it is received into the buffer that all connections share"
    await until(lambda: held.asked)
    await served.produce("plain", batch_of(1000, 90_000))
    held.go_on.set()
    await until(lambda: log_of(served).log_end_offset)
    assert keys_in(log_of(served)) == list(range(1000))


async def test_a_batch_is_stored_when_its_client_has_gone(
    served: BrokerInLoop, held: HeldWalks
) -> None:
    client = await served.send(produce_to("t", LARGE, acks=0), PRODUCE_VERSION)
    await until(lambda: held.asked)
    (connection,) = served._running._server.connections
    client.close()
    await until(lambda: connection._state.has_ended)
    held.go_on.set()
    await until(lambda: log_of(served).log_end_offset == 1000)
    await until(lambda: not served._running._server.connections)


@pytest.mark.parametrize(("batch", "end_offset"), [(LARGE, 1000), (WITHOUT_KEYS, 0)])
async def test_with_acks_0_only_an_error_is_told_by_closing_the_connection(
    served: BrokerInLoop, batch: bytes, end_offset: int
) -> None:
    client = await served.send(produce_to("t", batch, acks=0), PRODUCE_VERSION)
    client.send(client.frame_of(produce_to("plain", SMALL), PRODUCE_VERSION))
    if end_offset:
        answer = await served.answer(client, ProduceResponse, PRODUCE_VERSION)
        assert answer.responses[0].partition_responses[0].base_offset == 0
    else:
        with pytest.raises(ConnectionError):
            await served.answer(client, ProduceResponse, PRODUCE_VERSION)
    assert log_of(served).log_end_offset == end_offset


async def test_a_topic_that_goes_meanwhile_is_unknown(
    served: BrokerInLoop, held: HeldWalks
) -> None:
    client = await served.send(produce_to("t", LARGE), PRODUCE_VERSION)
    await until(lambda: held.asked)
    await served.broker.admin.topics.delete([TopicRef(name="t")])
    held.go_on.set()
    answer = await served.answer(client, ProduceResponse, PRODUCE_VERSION)
    found = answer.responses[0].partition_responses[0]
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.slow
async def test_the_loop_turns_often_while_hostile_batches_are_checked(
    served: BrokerInLoop,
) -> None:
    loop, calls, longest = asyncio.get_running_loop(), 0, 0

    def see(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def turn() -> None:
        nonlocal calls, longest
        longest, calls = max(longest, calls), 0
        loop.call_soon(turn)

    async def longest_turn(batch: bytes, version: int) -> int:
        nonlocal longest
        longest = 0
        await served.ask(produce_to("t", batch), ProduceResponse, version)
        return longest

    turn()
    sys.setprofile(see)
    try:
        ordinary = await longest_turn(batch_of(256), PRODUCE_VERSION)
        hostile = [
            await longest_turn(records(1 << 20), PRODUCE_VERSION),
            await longest_turn(zeros(101 << 20, ZSTD), PRODUCE_VERSION),
            await longest_turn(messages(200_000), 2),
        ]
    finally:
        sys.setprofile(None)
    assert max(hostile) < 3 * ordinary


# --- the processes


CONVERT = partial(convert_messages, log_append_time=False, max_message_bytes=100)


def made(command: Sequence[str] = WALK_COMMAND, idle_seconds: float = 30.0) -> RecordWalks:
    """At most a hundred bytes may wait."""
    return RecordWalks(lambda: 100, command=command, idle_seconds=idle_seconds)


async def test_a_process_that_dies_is_an_error_and_the_next_walk_has_another() -> None:
    walks = made(command=DIES)
    for _ in range(2):
        with pytest.raises(ApiError, match="the walking process ended with code 0") as caught:
            await walks.run(CONVERT, b"v", "a")
        assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    await walks.close()


async def test_a_process_that_cannot_be_started_is_an_error() -> None:
    walks = made(command=("/nowhere/python",))
    with pytest.raises(ApiError, match="No such file"):
        await walks.run(CONVERT, b"v", "a")
    await walks.close()


async def test_what_nobody_foresaw_is_named() -> None:
    walks = made()
    with pytest.raises(ApiError, match="the batch was not checked: TypeError"):
        await walks.run(int, b"v", "a")
    await walks.close()


async def test_a_walk_that_cannot_be_sent_or_an_answer_that_cannot_be_read_ends_no_other() -> None:
    walks = made()
    with pytest.raises(ApiError, match=r"the batch was not checked: .*pickle"):
        await walks.run(lambda _: None, b"v", "a")
    assert await walks.run(CONVERT, b"", "a") == b""
    await walks.close()
    walks = made(command=SAYS_NONSENSE)
    for _ in range(2):
        with pytest.raises(ApiError, match="the batch was not checked: UnpicklingError"):
            await walks.run(CONVERT, b"v", "a")
    await walks.close()


async def test_an_idle_process_is_ended_and_started_again() -> None:
    walks = made(idle_seconds=0.01)
    for count in (0, 1, 2):
        batch = messages(34 * count)
        assert await walks.run(CONVERT, batch, "a") == convert_up(batch)
        (pid,) = walks.pids
        await until(lambda: not walks.pids)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    await walks.close()


async def test_batches_that_wait_have_a_limit_in_memory() -> None:
    walks = made(command=(*WALK_COMMAND[:1], "-c", "import time; time.sleep(60)"))
    first = asyncio.ensure_future(walks.run(CONVERT, bytes(60), "a"))
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as caught:
        await walks.run(CONVERT, bytes(60), "b")
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    second = asyncio.ensure_future(walks.run(CONVERT, bytes(40), "b"))
    await until(lambda: walks.pids)
    await walks.close()
    late = asyncio.ensure_future(walks.run(CONVERT, b"v", "a"))
    for each in (first, second, late):
        with pytest.raises(ApiError) as caught:
            await each
        assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_walk_does_not_enter_the_second_lane_while_the_broker_stops() -> None:
    walks = RecordWalks(lambda: None)

    async def too_long(*_: object) -> TooLong:
        walks.release_all()
        return TooLong("it takes long")

    async def wait_for_ever(*_: object) -> None:
        raise AssertionError("nobody releases it")

    for lane, walk in zip(walks._lanes, (too_long, wait_for_ever), strict=True):
        lane.walk = walk  # type: ignore[method-assign,assignment] # no process is started
    with pytest.raises(ApiError) as caught:
        await walks.run(CONVERT, b"v", "a")
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_clients_take_turns() -> None:
    walks, done = made(), []

    async def convert(client: str) -> None:
        await walks.run(CONVERT, b"", client)
        done.append(client)

    clients = [*["many"] * 20, "few", "few", "one"]
    await asyncio.gather(*map(convert, clients))
    assert done[:6] == ["many", "few", "one", "many", "few", "many"]
    await walks.close()


async def test_a_client_whose_walks_take_long_does_not_hold_up_others() -> None:
    walks = made(command=WAITS_FOR_EVER)
    stuck = [asyncio.ensure_future(walks.run(CONVERT, b"for ever", "a")) for _ in range(3)]
    for _ in range(2):
        assert await asyncio.wait_for(walks.run(CONVERT, b"v", "b"), 30) == b"v"
    assert len(walks.pids) == 3
    assert not any(each.done() for each in stuck)
    await walks.close()
    await asyncio.wait(stuck)
    for each in stuck:
        each.exception()


async def test_the_batches_of_one_client_get_half_of_the_memory() -> None:
    walks = made(command=WAITS_FOR_EVER)
    first = asyncio.ensure_future(walks.run(CONVERT, b"for ever", "a"))
    await asyncio.sleep(0)
    with pytest.raises(ApiError, match="8 bytes of batches wait") as caught:
        await walks.run(CONVERT, bytes(50), "a")
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert await walks.run(CONVERT, bytes(50), "b") == bytes(50)
    await walks.close()
    with pytest.raises(ApiError):
        await first
