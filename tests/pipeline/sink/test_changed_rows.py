"""A task that has written its batch runs again, and its source has lost records in between."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_name import TaskName
from odradek.pipeline.sink.task_writing import write_once, write_rows
from odradek.pipeline.sink.write_options import write_options
from odradek.pipeline.source.broker_reader import BrokerReader
from odradek.storage.topic_partition import TopicPartition
from tests.support.broker_in_thread import broker_in_thread
from tests.support.committed import committed_values
from tests.support.task_attempts import Rows, Waits
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow
OUT = TopicPartition("out", 0)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with broker_in_thread(tmp_path, {"listeners": "PLAINTEXT://127.0.0.1:0"}) as broker:
        yield f"127.0.0.1:{broker.ports['PLAINTEXT']}"


def rows(*values: str) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.string())})


def written(bootstrap: str) -> list[bytes]:
    client = {"bootstrap.servers": bootstrap}
    wanted = OffsetRange(OUT, 0, 4)  # the marker of the first transaction is at 2
    reader = BrokerReader(client, wanted, ("value",), read_committed=True)
    return [value for batch in reader.read() for value in batch["value"].to_pylist()]


def test_the_error_names_the_reason_and_what_is_written_can_be_kept(bootstrap: str) -> None:
    """The task has written a and b of a compacted topic. Then a is removed."""
    create_topic(bootstrap, "out")
    given = {"kafka.bootstrap.servers": bootstrap, "topic": "out"}
    task = TaskName("compacted", 0, 7)
    write_rows(write_options(given), task, [rows("a", "b")])
    with pytest.raises(WriteError, match=r"has lost records .*changedRows=keep-written"):
        write_rows(write_options(given), task, [rows("b")])
    kept = write_options({**given, "changedRows": "keep-written"})
    write_rows(kept, task, [rows("b")])
    with pytest.raises(WriteError, match="the same: the batch is divided into different tasks"):
        write_rows(kept, task, [rows("b", "c")])
    write_rows(kept, TaskName("compacted", 0, 8), [rows("c")])
    assert written(bootstrap) == [b"a", b"b", b"c"]


def test_a_task_whose_topics_are_a_column_may_have_lost_all_of_its_rows(bootstrap: str) -> None:
    """A run has written task 0 of two. Then all of its rows are removed."""
    create_topic(bootstrap, "out")
    given = {"kafka.bootstrap.servers": bootstrap}
    first, second = rows("a", "b"), rows("c")
    column = pa.array(["out"] * 2)
    first = first.append_column("topic", column)
    second = second.append_column("topic", column[:1])
    write_rows(write_options(given), TaskName("columns", 0, 7, "before"), [first])

    def run(run: str, **more: str) -> None:
        options = write_options({**given, **more})
        for number, batch in enumerate((first[:0], second)):
            task = TaskName("columns", number, 7, run)
            write_once(options, task, Rows(batch), Waits().clock)

    for again in ("before", "after"):
        with pytest.raises(WriteError, match=r"wrote 2 rows .* has 0 rows now.*keep-written"):
            run(again)
    run("kept", changedRows="keep-written")
    write_once(write_options(given), TaskName("columns", 0, 8, "kept"), Rows(first), Waits().clock)
    with pytest.raises(WriteError, match="already written batch 8, which is later than batch 7"):
        run("kept")
    assert written(bootstrap) == [b"a", b"b", b"c"]


def test_a_task_may_have_lost_its_rows_of_one_of_its_topics(bootstrap: str) -> None:
    for topic in ("left", "lost"):
        create_topic(bootstrap, topic)
    kept = write_options({"kafka.bootstrap.servers": bootstrap, "changedRows": "keep-written"})

    def write(run: str, number: int, **by_topic: str) -> None:
        columns = {"value": list(by_topic.values()), "topic": list(by_topic)}
        task = TaskName("columns", number, 7, run)
        write_once(kept, task, Rows(pa.record_batch(columns)), Waits().clock)

    write("before", 0, left="a", lost="b")
    write("now", 0, left="a")
    write("now", 1, lost="c")
    found = [committed_values(bootstrap, each, 1) for each in ("left", "lost")]
    assert found == [[b"a"], [b"b", b"c"]]
