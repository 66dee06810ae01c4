"""A batch that an earlier run has written in part, and that runs again: each row once, or refused.

No Spark here: tasks are called as Spark calls them. A run is one start of a query.
"""

import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.sink.division import Division
from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_name import TaskName
from odradek.pipeline.sink.task_writing import write_once, write_rows
from odradek.pipeline.sink.write_options import WriteOptions, write_options
from tests.support.broker_process import BrokerProcess
from tests.support.committed import committed_values
from tests.support.task_attempts import Hook, Rows, Waits, rows
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

FOUR = [[f"{task}-{number}" for number in range(10)] for task in range(4)]
ONE = [[value for task in FOUR for value in task]]
LAST_THREE = sorted(ONE[0][10:])


class Query(NamedTuple):
    """A stream that writes to a topic, and the batch that all tests here are about."""

    to: WriteOptions
    query: str

    def task(self, number: int, run: str, batch_id: int = 5) -> TaskName:
        return TaskName(self.query, number, batch_id, run, is_stream=True)

    def write(
        self,
        run: str,
        division: list[list[str]],
        numbers: Iterable[int],
        waits: Waits | None = None,
    ) -> None:
        """Run these tasks, one after the other."""
        for number in numbers:
            clock = (waits or Waits()).clock
            write_once(self.to, self.task(number, run), Rows(rows(*division[number])), clock)

    def committed(self) -> list[str]:
        assert self.to.topic is not None
        found = committed_values(self.to.client["bootstrap.servers"], self.to.topic, 1)
        return [value.decode() for value in found]


def options(broker: BrokerProcess, topic: str, **more: str) -> WriteOptions:
    return write_options({"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, **more})


@pytest.fixture
def stream(broker: BrokerProcess, topic: str) -> Query:
    create_topic(broker.bootstrap, topic)
    return Query(options(broker, topic), f"odradek-{topic}")


def test_a_batch_that_comes_back_in_fewer_tasks_is_refused(stream: Query) -> None:
    stream.write("first", FOUR, (1, 2, 3))
    waits = Waits()
    with pytest.raises(WriteError, match=r"1, 2, 3 of the tasks that were written have not come"):
        stream.write("second", ONE, (0,), waits)
    assert stream.committed() == LAST_THREE
    assert 60 <= waits.total_s <= 61


def test_a_batch_that_comes_back_in_more_tasks_is_refused(stream: Query) -> None:
    stream.write("first", [ONE[0][:20], ONE[0][20:]], (1,))
    with pytest.raises(WriteError, match="1 of the tasks that were written have not come"):
        stream.write("second", FOUR, (3,))
    with pytest.raises(WriteError, match="1 of the tasks that were written have not come"):
        stream.write("second", FOUR, (2,))
    # So do files after `spark.sql.files.maxPartitionBytes` was lowered in the query's session.
    with pytest.raises(WriteError, match="wrote 20 rows of batch 5 before, and has 10 rows") as no:
        stream.write("second", FOUR, (1,))
    assert "with files it would write rows twice" in str(no.value)
    assert "the settings spark.sql.files.… of before" in str(no.value)
    assert stream.committed() == sorted(ONE[0][20:])


def test_the_same_number_of_tasks_with_other_rows_is_refused(stream: Query) -> None:
    stream.write("first", FOUR, (1, 2, 3))
    moved = [FOUR[1], FOUR[2], FOUR[3], FOUR[0]]
    with pytest.raises(WriteError, match="1, 2, 3 of the tasks"):
        stream.write("second", moved, (0,))
    with pytest.raises(WriteError, match="which are not the same"):
        stream.write("second", moved, (1,))
    assert stream.committed() == LAST_THREE


@pytest.mark.parametrize("written", [(), (0,), (1, 2, 3), (0, 1, 2, 3)])
def test_a_batch_with_the_same_tasks_goes_on(stream: Query, written: tuple[int, ...]) -> None:
    stream.write("first", FOUR, written)
    waits = Waits()
    stream.write("second", FOUR, sorted(range(4), key=lambda number: number not in written), waits)
    assert stream.committed() == sorted(ONE[0])
    assert waits.total_s == 0


def test_a_task_waits_until_the_tasks_that_were_written_have_come(stream: Query) -> None:
    stream.write("first", FOUR, (1, 2, 3))
    others = [1, 2, 3]

    def one_more_comes() -> None:
        if waits.total_s % 40 == 0:
            stream.write("second", FOUR, (others.pop(),))

    waits = Waits(on_sleep=one_more_comes)
    stream.write("second", FOUR, (0,), waits)
    assert stream.committed() == sorted(ONE[0])
    assert waits.total_s == 120


def test_a_third_run_compares_the_tasks_of_both_before(stream: Query) -> None:
    stream.write("first", FOUR, (0,))
    stream.write("second", FOUR, (0, 1))
    with pytest.raises(WriteError, match="0, 1 of the tasks"):
        stream.write("third", FOUR, (2,))
    stream.write("third", FOUR, (0, 1, 2, 3))
    assert stream.committed() == sorted(ONE[0])


def test_later_batches_of_a_run_are_not_compared(stream: Query) -> None:
    stream.write("first", FOUR, (0, 1, 2, 3))
    stream.write("second", FOUR, (0, 1, 2, 3))
    waits = Waits()
    write_once(stream.to, stream.task(0, "second", 6), Rows(rows("next")), waits.clock)
    assert stream.committed() == sorted([*ONE[0], "next"])
    assert waits.total_s == 0


def test_tasks_do_not_wait_if_the_source_is_said_to_be_repeatable(
    stream: Query, broker: BrokerProcess
) -> None:
    stream.write("first", FOUR, (1, 2, 3))
    said = options(broker, stream.to.topic or "", repeatableTasks="true")
    stream._replace(to=said).write("second", FOUR, (0, 1, 2, 3))
    assert stream.committed() == sorted(ONE[0])


@pytest.mark.parametrize("repeatable", ["false", "true"])
def test_a_batch_that_was_begun_in_another_topic_is_refused(
    stream: Query, broker: BrokerProcess, repeatable: str
) -> None:
    stream.write("first", FOUR, (1,))
    other = f"{stream.to.topic}-other"
    create_topic(broker.bootstrap, other)
    moved = Query(options(broker, other, repeatableTasks=repeatable), stream.query)
    with pytest.raises(
        WriteError, match=f"to {stream.to.topic} before, and now it goes to {other}"
    ):
        moved.write("second", FOUR, (1,))
    assert moved.committed() == []


def test_a_batch_that_was_begun_under_another_prefix_is_refused(stream: Query) -> None:
    stream.write("first", FOUR, (1,))
    renamed = Query(
        write_options(
            {
                "kafka.bootstrap.servers": stream.to.client["bootstrap.servers"],
                "topic": stream.to.topic or "",
                "transactionalIdPrefix": "shop",
            }
        ),
        stream.query.replace("odradek", "shop", 1),
    )
    with pytest.raises(WriteError, match="set 'transactionalIdPrefix' as it was"):
        renamed.write("second", FOUR, (1,))
    assert stream.committed() == sorted(FOUR[1])


def test_tasks_that_write_to_different_topics_are_compared(
    broker: BrokerProcess, topic: str
) -> None:
    topics = [f"{topic}-{name}" for name in "ab"]
    for each in topics:
        create_topic(broker.bootstrap, each)
    to = write_options({"kafka.bootstrap.servers": broker.bootstrap})

    def write(run: str, number: int) -> None:
        batch = pa.record_batch({"value": [str(number)], "topic": [topics[number]]})
        task = TaskName(f"odradek-{topic}", number, 0, run)
        write_once(to, task, Rows(batch), Waits().clock)

    write("first", 1)
    with pytest.raises(WriteError, match="1 of the tasks that were written have not come"):
        write("second", 0)
    write("second", 1)
    write("second", 0)
    found = [committed_values(broker.bootstrap, each, 1) for each in topics]
    assert found == [[b"0"], [b"1"]]


@pytest.mark.parametrize("run", ["first", "second"])
def test_a_task_whose_rows_go_to_other_topics_when_it_runs_again_is_refused(
    broker: BrokerProcess, topic: str, run: str
) -> None:
    before, now = (f"{topic}-{name}" for name in "ab")
    for each in (before, now):
        create_topic(broker.bootstrap, each)
    to = write_options({"kafka.bootstrap.servers": broker.bootstrap})

    def write(run: str, to_topic: str) -> None:
        batch = pa.record_batch({"value": ["a"], "topic": [to_topic]})
        write_once(to, TaskName(f"odradek-{topic}", 0, 0, run), Rows(batch), Waits().clock)

    write("first", before)
    with pytest.raises(WriteError, match=f"to {before} before, and now it goes to {now}"):
        write(run, now)
    assert committed_values(broker.bootstrap, now, 1) == []


# -- runs at the same time -------------------------------------------------------------------------


def late(stream: Query, number: int, between: Hook, run: str = "first") -> None:
    """Run a task, in whose middle something happens."""
    first, *rest = FOUR[number]
    task = stream.task(number, run)
    write_once(stream.to, task, Rows(rows(first), rows(*rest), between=(between,)), Waits().clock)


def test_a_late_task_of_an_earlier_run_writes_nothing(stream: Query) -> None:
    with pytest.raises(WriteError, match="another run of the query has begun"):
        late(stream, 3, lambda: stream.write("second", ONE, (0,)))
    assert stream.committed() == sorted(ONE[0])


def test_a_late_task_that_compares_its_rows_does_not_take_the_mark_of_a_later_batch_back(
    stream: Query,
) -> None:
    stream.write("first", FOUR, (0,))

    def next_batch() -> None:
        write_once(stream.to, stream.task(0, "second", 6), Rows(rows("next")), Waits().clock)

    def another_attempt_goes_on() -> None:
        stream.write("second", FOUR, (0,))
        next_batch()

    with pytest.raises(WriteError, match="has already written batch 6"):
        late(stream, 0, another_attempt_goes_on, "second")
    next_batch()
    assert stream.committed() == sorted([*FOUR[0], "next"])


def test_a_late_task_writes_nothing_even_if_a_later_one_has_claimed_the_query_again(
    stream: Query,
) -> None:
    def between() -> None:
        stream.write("second", ONE, (0,))
        with pytest.raises(WriteError, match="0 of the tasks that were written have not come"):
            stream.write("first", FOUR, (2,))

    with pytest.raises(WriteError, match="0 of the tasks that were written have not come"):
        late(stream, 3, between)
    assert stream.committed() == sorted(ONE[0])


def test_tasks_of_a_run_that_claim_the_query_at_the_same_time_go_on(
    stream: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = Division._claimed

    def both(division: Division) -> object:
        """Another task claims the query after this one has looked."""
        monkeypatch.setattr(Division, "_claimed", claimed)
        with monkeypatch.context() as patch:
            patch.setattr("odradek.pipeline.sink.marks.MarkGroup.read", lambda *_, **__: [])
            found = claimed(division)
            claimed(division)
        return found

    monkeypatch.setattr(Division, "_claimed", both)
    stream.write("first", FOUR, (0, 1, 2, 3))
    assert stream.committed() == sorted(ONE[0])


def test_a_run_waits_for_a_transaction_that_an_earlier_run_is_about_to_commit(
    stream: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = Division.require_claim
    claim = Division._claimed
    has_claimed = threading.Event()
    errors: list[str] = []

    def second() -> None:
        try:
            stream.write("second", ONE, (0,))
        except WriteError as error:
            errors.append(str(error))

    other = threading.Thread(target=second)

    def checked(division: Division) -> None:
        monkeypatch.setattr(Division, "require_claim", check)
        check(division)
        monkeypatch.setattr(Division, "_claimed", claim_and_tell)
        other.start()
        assert has_claimed.wait(30)

    def claim_and_tell(division: Division) -> object:
        found = claim(division)
        has_claimed.set()
        return found

    monkeypatch.setattr(Division, "require_claim", checked)
    stream.write("first", FOUR, (3,))
    other.join(30)
    assert stream.committed() == sorted(FOUR[3])
    assert "3 of the tasks that were written have not come" in errors[0]


def test_many_rows_are_compared_before_the_first_is_sent(stream: Query) -> None:
    many = rows(*(f"{number:1000}" for number in range(6000)))
    stream.write("first", FOUR, (1,))

    def arriving() -> Iterator[pa.RecordBatch]:
        yield many
        pytest.fail("the task has not waited for task 1")

    with pytest.raises(WriteError, match="1 of the tasks that were written have not come"):
        write_rows(stream.to, stream.task(0, "second"), arriving(), Waits().clock)
    assert stream.committed() == sorted(FOUR[1])
