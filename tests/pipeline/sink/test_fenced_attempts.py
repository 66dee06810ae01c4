"""Attempts of a task that fence each other: rows are written once, and nobody waits for long."""

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata

from odradek.pipeline.sink import marks, row_sender, task_writing, turns
from odradek.pipeline.sink.ended_queries import end_query
from odradek.pipeline.sink.marks import Mark, MarkGroup, Place, UnsettledError
from odradek.pipeline.sink.row_sender import FencedError
from odradek.pipeline.sink.rows import WriteError, outgoing_batch
from odradek.pipeline.sink.rows_digest import RowsDigest
from odradek.pipeline.sink.task_name import TaskName
from odradek.pipeline.sink.task_transaction import TaskTransaction
from odradek.pipeline.sink.task_writing import write_once, write_rows
from odradek.pipeline.sink.turns import Clock
from odradek.pipeline.sink.write_options import WriteOptions, write_options
from odradek.pipeline.sink.written_batches import WrittenBatch, places_of
from tests.support.broker_process import BrokerProcess
from tests.support.committed import committed_values
from tests.support.running_clients import running_clients
from tests.support.task_attempts import Hook, Rows, Waits, rows
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

A, B = rows("a"), rows("b")


@pytest.fixture
def to(broker: BrokerProcess, topic: str) -> WriteOptions:
    create_topic(broker.bootstrap, topic)
    quiet = {"kafka.log_level": "0", "kafka.transaction.timeout.ms": "40000"}
    return write_options({"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, **quiet})


@pytest.fixture
def task(topic: str) -> TaskName:
    return TaskName(f"odradek-{topic}", 0, 0)


def committed(to: WriteOptions) -> list[bytes]:
    assert to.topic is not None
    return committed_values(to.client["bootstrap.servers"], to.topic, 1)


def places(to: WriteOptions) -> list[Place]:
    return places_of([to.topic or ""])


def rival_begins(to: WriteOptions, task: TaskName) -> TaskTransaction:
    """Another attempt takes over, and has sent a row."""
    assert to.topic is not None
    rival = TaskTransaction(to.client, task.name, [to.topic], Clock())
    rival.take_over()
    rival.begin()
    rival.send([(to.topic, b"of the rival", None, -1, 0, None)])
    return rival


def rival_begins_and_dies(to: WriteOptions, task: TaskName) -> None:
    rival_begins(to, task).close()


def rival_dies_before_it_commits(to: WriteOptions, task: TaskName) -> None:
    """It has sent its marks, which cannot be read before its transaction ends."""
    written = WrittenBatch(task.batch_id, 1, "digest", task.run)

    def die() -> None:
        raise InterruptedError

    with (
        closing(rival_begins(to, task)) as rival,
        MarkGroup(to.client, task.name) as group,
        pytest.raises(InterruptedError),
    ):
        rival.commit(group, written.as_marks(places(to)), die)


@pytest.fixture
def slow_to_time_out(to: WriteOptions, monkeypatch: pytest.MonkeyPatch) -> WriteOptions:
    """Options with which transactions of the dead stay open for long.

    A read of their marks does not wait for long, and is not repeated often.
    """
    monkeypatch.setattr(marks, "_ATTEMPT_S", 1.0)
    monkeypatch.setattr(task_writing, "_UNSETTLED_S", 0.0)
    monkeypatch.setattr(turns, "_POLL_EVERY_S", 5.0)
    return replace(to, client={**to.client, "transaction.timeout.ms": "900000"})


@pytest.mark.parametrize("rival_dies", [rival_begins_and_dies, rival_dies_before_it_commits])
def test_an_attempt_goes_on_soon_if_the_one_that_fenced_it_has_died(
    slow_to_time_out: WriteOptions,
    task: TaskName,
    rival_dies: Callable[[WriteOptions, TaskName], None],
) -> None:
    to = slow_to_time_out
    waits = Waits()
    fenced = Rows(A, B, between=(lambda: rival_dies(to, task),))
    assert write_once(to, task, fenced, waits.clock).rows == 2
    assert committed(to) == [b"a", b"b"]
    assert 0 < waits.total_s <= 10


def test_an_attempt_goes_on_soon_if_the_one_before_has_died_before_it_committed(
    slow_to_time_out: WriteOptions, task: TaskName
) -> None:
    to = slow_to_time_out
    rival_dies_before_it_commits(to, task)
    assert write_once(to, task, Rows(A, B), Waits().clock).rows == 2
    assert committed(to) == [b"a", b"b"]


def test_an_attempt_that_is_fenced_while_it_waits_for_acknowledgements_leaves_no_client(
    to: WriteOptions, task: TaskName
) -> None:
    before = running_clients()
    with closing(rival_begins(to, task)) as fenced, MarkGroup(to.client, task.name) as group:
        rival_begins(to, task).close()
        with pytest.raises(FencedError):
            fenced.commit(group, [])
    assert running_clients() <= before


def test_a_fenced_attempt_writes_nothing_if_the_other_commits_while_it_waits(
    to: WriteOptions, task: TaskName
) -> None:
    begun: list[TaskTransaction] = []

    def commit() -> None:
        with closing(begun.pop()) as rival:
            digest = RowsDigest()
            for batch in (A, B):
                digest.add(outgoing_batch(batch, to.topic, with_timestamp=False))
            written = WrittenBatch(task.batch_id, digest.rows, digest.text(), task.run)
            with MarkGroup(to.client, task.name) as group:
                rival.commit(group, written.as_marks(places(to)))

    fenced = Rows(A, B, between=(lambda: begun.append(rival_begins(to, task)),))
    assert write_once(to, task, fenced, Waits(on_sleep=commit).clock).rows == 2
    assert committed(to) == [b"of the rival"]


def test_attempts_that_fence_each_other_wait_longer_each_time(
    to: WriteOptions, task: TaskName
) -> None:
    waits = Waits()
    at: list[float] = []

    def fence() -> None:
        at.append(waits.total_s)
        rival_begins(to, task).close()

    assert write_once(to, task, Rows(A, B, between=(fence,) * 3), waits.clock).rows == 2
    assert committed(to) == [b"a", b"b"]
    first, second, third = at[1] - at[0], at[2] - at[1], waits.total_s - at[2]
    assert second >= 2 * first
    assert third >= 2 * second


def test_an_attempt_gives_up_after_a_wait_as_long_as_a_transaction_may_take(
    to: WriteOptions, task: TaskName
) -> None:
    waits = Waits()
    fences = (lambda: rival_begins(to, task).close(),) * 20
    with pytest.raises(FencedError):
        write_once(to, task, Rows(A, B, between=fences), waits.clock)
    assert 40 <= waits.total_s <= 2 * 40
    assert committed(to) == []


def test_an_attempt_of_a_batch_that_is_written_does_not_fence_the_next_batch(
    to: WriteOptions, task: TaskName
) -> None:
    write_once(to, task, Rows(A))
    waits = Waits()
    next_batch = Rows(B, rows("c"), between=(lambda: write_once(to, task, Rows(A)),))
    assert write_once(to, task._replace(batch_id=1), next_batch, waits.clock).rows == 2
    assert waits.total_s == 0
    with pytest.raises(WriteError, match="already written batch 1, which is later than batch 0"):
        write_once(to, task, Rows(A))
    assert committed(to) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("reads", [1, 2])
def test_an_attempt_does_not_fence_the_next_batch_because_its_coordinator_loads(
    to: WriteOptions, task: TaskName, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    """So many reads of marks are without an answer."""
    write_once(to, task, Rows(A))
    read = MarkGroup.read
    unanswered = [UnsettledError("the coordinator loads")] * reads

    def loading(group: MarkGroup, places: Collection[Place], **more: Any) -> list[Mark]:
        if unanswered:
            raise unanswered.pop()
        return read(group, places, **more)

    def late() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(MarkGroup, "read", loading)
            write_once(to, task, Rows(A))
        assert not unanswered

    waits = Waits()
    next_batch = Rows(B, rows("c"), between=(late,))
    assert write_once(to, task._replace(batch_id=1), next_batch, waits.clock).rows == 2
    assert waits.total_s == 0
    assert committed(to) == [b"a", b"b", b"c"]


def test_a_batch_goes_on_if_an_attempt_of_the_batch_before_fences_it_after_all(
    to: WriteOptions, task: TaskName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt has read the mark before its batch was written, and begins long after that."""
    write_once(to, task, Rows(A))
    read = MarkGroup.read

    def zombie() -> None:
        seen_early: list[list[Mark]] = [[]]

        def late(group: MarkGroup, places: Collection[Place], **more: Any) -> list[Mark]:
            return seen_early.pop() if seen_early else read(group, places, **more)

        monkeypatch.setattr(MarkGroup, "read", late)
        write_once(to, task, Rows(A))
        assert not seen_early
        monkeypatch.setattr(MarkGroup, "read", read)

    waits = Waits()
    next_batch = Rows(B, rows("c"), between=(zombie,))
    assert write_once(to, task._replace(batch_id=1), next_batch, waits.clock).rows == 2
    assert committed(to) == [b"a", b"b", b"c"]
    assert 0 < waits.total_s <= 10


def test_a_late_attempt_of_a_batch_query_that_has_ended_writes_nothing(
    to: WriteOptions, task: TaskName
) -> None:
    task = task._replace(ends=True)
    write_once(to, task, Rows(A))
    end_query(to.client, task.query, [task.name], [to.topic or ""])
    with MarkGroup(to.client, task.name) as group:
        assert group.read(places(to)) == []
    with pytest.raises(WriteError, match="has ended: this attempt is late"):
        write_once(to, task, Rows(A))
    assert committed(to) == [b"a"]


def test_an_attempt_whose_rows_do_not_all_come_does_not_end_another(
    to: WriteOptions, task: TaskName
) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield A
        raise OSError("what makes the rows has failed")

    def fail_beside() -> None:
        with pytest.raises(OSError, match="has failed"):
            write_rows(to, task, failing())

    waits = Waits()
    assert write_once(to, task, Rows(A, B, between=(fail_beside,)), waits.clock).rows == 2
    assert waits.total_s == 0
    assert committed(to) == [b"a", b"b"]


def test_an_attempt_that_takes_longer_than_its_transaction_may_says_so(
    broker: BrokerProcess, to: WriteOptions, task: TaskName
) -> None:
    short = {"kafka.transaction.timeout.ms": "1000", "topic": to.topic or ""}
    to = write_options({"kafka.bootstrap.servers": broker.bootstrap, **short})
    waits = Waits()

    def take_long() -> None:
        waits.clock.sleep(1.1)
        rival_begins(to, task).close()  # it sees the transaction ended, as after the timeout

    with pytest.raises(WriteError, match="took longer than"):
        write_once(to, task, Rows(A, B, between=(take_long,)), waits.clock)
    assert committed(to) == []


def test_an_attempt_without_rows_leaves_no_trace(to: WriteOptions, task: TaskName) -> None:
    assert write_rows(to, task, iter([rows()])).rows == 0
    with MarkGroup(to.client, task.name) as group:
        assert group.read(places(to)) == []


def test_rows_of_one_task_go_to_many_topics(
    broker: BrokerProcess, to: WriteOptions, task: TaskName
) -> None:
    other = f"{to.topic}-other"
    create_topic(broker.bootstrap, other)
    many = write_options({"kafka.bootstrap.servers": broker.bootstrap})
    orders: list[dict[str, str | None]] = [{"a": to.topic, "b": other}, {"c": other}]
    for batch_id, order in enumerate(orders):
        batch = pa.record_batch({"value": list(order), "topic": list(order.values())})
        for _ in range(2):
            write_rows(many, task._replace(batch_id=batch_id), [batch])
    assert committed(to) == [b"a"]
    assert committed_values(broker.bootstrap, other, 1) == [b"b", b"c"]


def test_all_topics_of_a_task_are_created(
    broker: BrokerProcess, topic: str, task: TaskName
) -> None:
    topics = [f"{topic}-{name}" for name in "abc"]
    many = write_options({"kafka.bootstrap.servers": broker.bootstrap})
    write_rows(many, task, [pa.record_batch({"value": list("abc"), "topic": topics})])
    found = [committed_values(broker.bootstrap, each, 1) for each in topics]
    assert found == [[b"a"], [b"b"], [b"c"]]


def test_a_task_of_many_topics_asks_once_for_each_after_the_first_and_has_one_admin_client(
    broker: BrokerProcess, topic: str, task: TaskName, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [f"{topic}-{name}" for name in "abc"]
    for each in topics:
        create_topic(broker.bootstrap, each)
    asked = list[str]()
    admins = list[str]()

    class Counted(Producer):
        def list_topics(self, topic: str, timeout: float) -> ClusterMetadata:
            found = super().list_topics(topic, timeout)
            asked.append(topic)
            return found

    def counted_admin(settings: dict[str, Any]) -> AdminClient:
        admins.append(settings["bootstrap.servers"])
        return AdminClient(settings)

    monkeypatch.setattr(row_sender, "Producer", Counted)
    monkeypatch.setattr(marks, "AdminClient", counted_admin)
    many = write_options({"kafka.bootstrap.servers": broker.bootstrap})
    write_rows(many, task, [pa.record_batch({"value": list("abc"), "topic": topics})])
    assert asked == [topics[0], *topics]
    assert admins == [broker.bootstrap]


def test_a_row_that_is_refused_takes_the_others_with_it(to: WriteOptions, task: TaskName) -> None:
    batch = pa.record_batch({"value": ["a", "b"], "partition": pa.array([0, 17], pa.int32())})
    with pytest.raises(WriteError, match="has no partition 17"):
        write_rows(to, task, [batch])
    assert committed(to) == []


# -- a task with many rows begins before the last has arrived -------------------------------------

MANY = rows(*(f"{number:1000}" for number in range(6000)))
SORTED = sorted(value.encode() for value in [*MANY.column("value").to_pylist(), "z"])


def arriving(between: Hook) -> Iterator[pa.RecordBatch]:
    yield MANY
    between()
    yield rows("z")


def end_offset(to: WriteOptions, isolation: str) -> int:
    settings = {"bootstrap.servers": to.client["bootstrap.servers"], "group.id": "none"}
    with closing(Consumer({**settings, "isolation.level": isolation})) as consumer:
        _, end = consumer.get_watermark_offsets(TopicPartition(str(to.topic), 0), timeout=5)
        return int(end)


def wait_for_many(to: WriteOptions) -> None:
    wait_until(lambda: end_offset(to, "read_uncommitted") >= MANY.num_rows)


def test_many_rows_are_sent_before_the_last_arrives(to: WriteOptions, task: TaskName) -> None:
    def wait_for_rows() -> None:
        wait_for_many(to)
        assert end_offset(to, "read_committed") == 0

    assert write_rows(to, task, arriving(wait_for_rows)).rows == len(SORTED)
    assert committed(to) == SORTED
    assert write_rows(to, task, arriving(lambda: None)).rows == len(SORTED)
    assert committed(to) == SORTED


def test_an_attempt_that_is_fenced_before_its_last_row_writes_all_rows_once(
    to: WriteOptions, task: TaskName
) -> None:
    waits = Waits()
    batches = arriving(lambda: rival_begins(to, task).close())
    assert write_rows(to, task, batches, waits.clock).rows == len(SORTED)
    assert committed(to) == SORTED
    assert 0 < waits.total_s <= 10


def test_a_transaction_does_not_wait_for_long_until_rows_arrive(
    to: WriteOptions, task: TaskName
) -> None:
    waits = Waits()

    def take_long() -> None:
        wait_for_many(to)
        waits.clock.sleep(21)

    def more() -> Iterator[pa.RecordBatch]:
        yield from arriving(take_long)
        # The rows that were sent are aborted by now, so what others have written can be read.
        assert 0 < end_offset(to, "read_uncommitted") == end_offset(to, "read_committed")

    assert write_rows(to, task, more(), waits.clock).rows == len(SORTED)
    assert waits.total_s == 21
    assert committed(to) == SORTED


def test_the_broker_soon_ends_a_transaction_for_which_no_rows_arrive(
    start_broker: Callable[..., BrokerProcess],
    topic: str,
    task: TaskName,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_writing, "_ENDED_AFTER_S", 1.0)
    cleanup = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    servers = start_broker(**cleanup).bootstrap
    create_topic(servers, topic)
    to = write_options({"kafka.bootstrap.servers": servers, "topic": topic})

    def stall() -> None:
        wait_for_many(to)
        wait_until(lambda: end_offset(to, "read_committed") == end_offset(to, "read_uncommitted"))

    assert write_rows(to, task, arriving(stall)).rows == len(SORTED)
    assert committed(to) == SORTED


def test_a_client_may_have_timeouts_that_are_longer_than_rows_are_waited_for(
    broker: BrokerProcess, topic: str, task: TaskName
) -> None:
    create_topic(broker.bootstrap, topic)
    client = {"bootstrap.servers": broker.bootstrap, "delivery.timeout.ms": "300000"}
    client["request.timeout.ms"] = "200000"
    to = write_options({"topic": topic} | {f"kafka.{name}": it for name, it in client.items()})
    assert write_rows(to, task, arriving(lambda: None)).rows == len(SORTED)
    assert committed(to) == SORTED


def test_nothing_is_written_of_many_rows_that_do_not_all_come(
    to: WriteOptions, task: TaskName
) -> None:
    def fail() -> None:
        raise OSError("what makes the rows has failed")

    with pytest.raises(OSError, match="has failed"):
        write_rows(to, task, arriving(fail))
    waits = Waits()
    assert write_rows(to, task, [rows("a")], waits.clock).rows == 1
    assert committed(to) == [b"a"]
    assert waits.total_s == 0
