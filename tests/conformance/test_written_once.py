"""The sink's tasks on Apache Kafka: a reader of committed records sees each row once.

No Spark here: a task is called as Spark calls it, again, or twice at a time.
"""

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.sink.marks import Mark, MarkGroup, delete_groups
from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_name import TaskName
from odradek.pipeline.sink.task_transaction import TaskTransaction
from odradek.pipeline.sink.task_writing import write_once, write_rows
from odradek.pipeline.sink.write_options import WriteOptions, write_options
from odradek.pipeline.sink.written_batches import last_batch, places_of
from tests.support.broker_process import ApacheKafkaProcess
from tests.support.committed import committed_values, wait_until_decided
from tests.support.lengths import only_long
from tests.support.task_attempts import Rows, Waits, rows
from tests.support.topics import create_topic

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("odradek is written to so in pipeline/sink"),
]


@pytest.fixture
def options(
    kafka: ApacheKafkaProcess, request: pytest.FixtureRequest
) -> Callable[..., WriteOptions]:
    """Options that write to a new topic of two partitions, named like the test."""
    topic = request.node.name[:200].replace("[", ".").replace("]", "")
    create_topic(kafka.bootstrap, topic, 2)
    # Producers that a test left in the middle would go on to say that the broker has gone.
    quiet = {"kafka.log_level": "0"}
    said = {"kafka.bootstrap.servers": kafka.bootstrap, "topic": topic, **quiet}
    return lambda **more: write_options({**said, **more})


def placed(partition: int, *values: str) -> pa.RecordBatch:
    numbers = pa.array([partition] * len(values), pa.int32())
    return pa.record_batch({"value": list(values), "partition": numbers})


def committed(options: WriteOptions) -> list[str]:
    """What a reader of committed records finds in the topic, sorted; no transaction is open."""
    assert options.topic is not None
    topic = options.client["bootstrap.servers"], options.topic, 2
    wait_until_decided(*topic)
    found = committed_values(*topic)
    return [value.decode() for value in found]


def marks_of(options: WriteOptions, name: str) -> list[Mark]:
    assert options.topic is not None
    with MarkGroup(options.client, name) as group:
        return group.read(places_of([options.topic]))


def fail() -> None:
    raise OSError("the executor is gone")


def test_a_task_that_runs_again_writes_nothing(options: Callable[..., WriteOptions]) -> None:
    to = options()
    for batch_id, batch in enumerate((rows("a", "b"), rows("c"))):
        task = TaskName("again", 0, batch_id)
        assert write_rows(to, task, [batch]).rows == batch.num_rows
        last = last_batch(marks_of(to, task.name))
        assert last is not None
        assert (last.batch_id, last.rows) == (batch_id, batch.num_rows)
        assert write_rows(to, task, [batch]).rows == batch.num_rows
    assert committed(to) == ["a", "b", "c"]


def test_what_an_attempt_leaves_behind_that_dies_is_not_seen(
    options: Callable[..., WriteOptions],
) -> None:
    to, task = options(), TaskName("dies", 0, 4)
    with pytest.raises(OSError, match="the executor is gone"):
        write_once(to, task, Rows(rows("a", "b"), rows("c"), between=(fail,)))
    assert marks_of(to, task.name) == []
    write_rows(to, task, [rows("a", "b")])
    assert committed(to) == ["a", "b"]


@pytest.mark.parametrize("partition", [0, 1])
def test_an_attempt_that_is_overtaken_waits_for_the_other(
    options: Callable[..., WriteOptions], partition: int
) -> None:
    to, task = options(), TaskName("overtaken", partition, 0)
    # The first partition is part of the transaction by then; the second is refused to it.
    first, rest = placed(0, "a", "b"), placed(partition, "c")

    def overtake() -> None:
        assert write_rows(to, task, [first, rest]).rows == 3

    waits = Waits()
    assert write_once(to, task, Rows(first, rest, between=(overtake,)), waits.clock).rows == 3
    assert waits.total_s == 0
    assert committed(to) == ["a", "b", "c"]


def test_an_attempt_whose_rows_do_not_all_come_does_not_end_another(
    options: Callable[..., WriteOptions],
) -> None:
    to, task = options(), TaskName("late", 0, 0)

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows("a")
        raise OSError("what makes the rows has failed")

    def fail_beside() -> None:
        with pytest.raises(OSError, match="has failed"):
            write_rows(to, task, failing())

    waits = Waits()
    slow = Rows(rows("a"), rows("b"), between=(fail_beside,))
    assert write_once(to, task, slow, waits.clock).rows == 2
    assert waits.total_s == 0
    assert committed(to) == ["a", "b"]


def test_an_attempt_that_is_overtaken_by_one_that_dies_takes_over(
    options: Callable[..., WriteOptions],
) -> None:
    to, task, both = options(), TaskName("one-dies", 0, 0), (rows("a"), rows("b"))

    def overtake_and_die() -> None:
        with pytest.raises(OSError, match="gone"):
            write_once(to, task, Rows(*both, between=(fail,)))

    waits = Waits()
    assert write_once(to, task, Rows(*both, between=(overtake_and_die,)), waits.clock).rows == 2
    assert 0 < waits.total_s <= 10
    assert committed(to) == ["a", "b"]


def test_a_batch_that_is_cut_otherwise_than_before_is_not_taken_for_written(
    options: Callable[..., WriteOptions],
) -> None:
    to, task = options(), TaskName("cut", 0, 7)
    write_rows(to, task, [rows("a", "b")])
    with pytest.raises(WriteError, match="wrote 2 rows of batch 7 before, and has 1 rows now"):
        write_rows(to, task, [rows("a")])
    with pytest.raises(WriteError, match="has 0 rows now"):
        write_rows(to, task, [])
    with pytest.raises(
        WriteError, match="which are not the same: the batch is divided into different tasks"
    ):
        write_rows(to, task, [rows("a", "c")])
    assert write_rows(to, task, [rows("b"), rows("a")]).rows == 2
    assert committed(to) == ["a", "b"]


def test_a_checkpoint_that_is_older_than_what_is_written_is_an_error(
    options: Callable[..., WriteOptions],
) -> None:
    to = options()
    write_rows(to, TaskName("old", 0, 7), [rows("a")])
    with pytest.raises(
        WriteError, match="has already written batch 7, which is later than batch 6"
    ):
        write_rows(to, TaskName("old", 0, 6), [rows("b")])
    assert committed(to) == ["a"]


def test_a_task_without_rows_leaves_no_trace(options: Callable[..., WriteOptions]) -> None:
    to = options()
    assert write_rows(to, TaskName("empty", 0, 0), iter([rows()])).rows == 0
    assert marks_of(to, "empty-0") == []


def test_rows_of_one_task_go_to_many_topics(
    kafka: ApacheKafkaProcess, options: Callable[..., WriteOptions]
) -> None:
    first = options()
    create_topic(kafka.bootstrap, "another-topic", 2)
    many = write_options({"kafka.bootstrap.servers": kafka.bootstrap})
    another = write_options({"kafka.bootstrap.servers": kafka.bootstrap, "topic": "another-topic"})
    orders = (("a", first.topic), ("b", "another-topic")), (("c", "another-topic"),)
    for batch_id, order in enumerate(orders):
        values, topics = zip(*order, strict=True)
        batch = pa.record_batch({"value": list(values), "topic": list(topics)})
        for _ in range(2):
            write_rows(many, TaskName("many", 0, batch_id), [batch])
    assert (committed(first), committed(another)) == (["a"], ["b", "c"])


def test_a_row_that_is_refused_takes_the_others_with_it(
    options: Callable[..., WriteOptions],
) -> None:
    to = options()
    batch = pa.record_batch({"value": ["a", "b"], "partition": pa.array([0, 17], pa.int32())})
    with pytest.raises(WriteError, match="has no partition 17"):
        write_rows(to, TaskName("refused", 0, 0), [batch])
    assert committed(to) == []
    large = pa.record_batch({"value": ["x" * 3_000_000]})
    with pytest.raises(WriteError, match="MSG_SIZE_TOO_LARGE"):
        write_rows(to, TaskName("refused", 1, 0), [large])
    with pytest.raises(WriteError, match="too large to send"):
        write_rows(to, TaskName("refused", 2, 0), [pa.record_batch({"value": ["x" * 70_000_000]})])


def test_many_rows_are_written_in_their_order(options: Callable[..., WriteOptions]) -> None:
    to = options()
    numbers = [f"{number:06}" for number in range(30_000)]
    batches = (
        pa.record_batch({"value": numbers[at : at + 10_000]}) for at in range(0, 30_000, 10_000)
    )
    write_rows(to, TaskName("many-rows", 0, 0), batches)
    assert committed(to) == numbers


def test_at_least_once_needs_no_transaction(options: Callable[..., WriteOptions]) -> None:
    to = options(delivery="at-least-once")
    for _ in range(2):
        assert write_rows(to, TaskName("plain", 0, 0), [rows("a")]).rows == 1
    assert committed(to) == ["a", "a"]
    assert marks_of(to, "plain-0") == []


def test_groups_that_are_no_longer_needed_are_deleted(options: Callable[..., WriteOptions]) -> None:
    to = options()
    write_rows(to, TaskName("gone", 0, 0), [rows("a")])
    delete_groups(to.client, ["gone-0", "never-was-0"])
    assert marks_of(to, "gone-0") == []


def test_a_task_that_takes_longer_than_its_transaction_may_says_so(
    options: Callable[..., WriteOptions],
) -> None:
    to = options(**{"kafka.transaction.timeout.ms": "1000"})

    waits = Waits()

    def take_long() -> None:
        waits.clock.sleep(1.1)
        # A second producer sees the transaction ended, as the broker would do it in a while.
        transaction = TaskTransaction(to.client, "slow-0", str(to.topic), waits.clock)
        transaction.take_over()
        transaction.close()

    slow = Rows(rows("a"), rows("b"), between=(take_long,))
    with pytest.raises(WriteError, match="took longer than"):
        write_once(to, TaskName("slow", 0, 0), slow, waits.clock)
    assert committed(to) == []


def test_many_rows_of_an_attempt_that_is_overtaken_do_not_hide_why(
    options: Callable[..., WriteOptions],
) -> None:
    to, task = options(), TaskName("many-overtaken", 0, 0)
    many = rows(*(f"{number:06}" for number in range(150_000)))

    def overtake() -> None:
        write_rows(to, task, [many, many])

    assert write_once(to, task, Rows(many, many, between=(overtake,))).rows == 300_000
    assert len(committed(to)) == 300_000


def test_a_batch_that_was_written_in_part_goes_on_only_with_the_same_tasks(
    options: Callable[..., WriteOptions],
) -> None:
    to, waits = options(), Waits()
    parts, whole = [rows("a", "b"), rows("c", "d")], rows("a", "b", "c", "d")

    def write(run: str, number: int, batch: pa.RecordBatch) -> None:
        write_once(to, TaskName("divided", number, 3, run), Rows(batch), waits.clock)

    write("first", 1, parts[1])
    with pytest.raises(WriteError, match="1 of the tasks that were written have not come again"):
        write("second", 0, whole)
    assert committed(to) == ["c", "d"]
    for number in (1, 0):
        write("third", number, parts[number])
    assert committed(to) == ["a", "b", "c", "d"]


def test_a_late_task_of_an_earlier_run_writes_nothing(options: Callable[..., WriteOptions]) -> None:
    to, clock = options(), Waits().clock

    def next_run() -> None:
        write_once(to, TaskName("late-run", 0, 3, "second"), Rows(rows("a", "b")), clock)

    late = Rows(rows("a"), rows("b"), between=(next_run,))
    with pytest.raises(WriteError, match="another run of the query has begun"):
        write_once(to, TaskName("late-run", 1, 3, "first"), late, clock)
    assert committed(to) == ["a", "b"]
