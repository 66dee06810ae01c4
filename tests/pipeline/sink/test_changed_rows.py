"""A task that has written its batch runs again, and its source has lost records in between."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_writing import TaskName, write_rows
from odradek.pipeline.sink.write_options import write_options
from odradek.pipeline.source.broker_reader import BrokerReader
from odradek.storage.topic_partition import TopicPartition
from tests.support.broker_in_thread import broker_in_thread
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
    with pytest.raises(WriteError, match="the same: the query is not deterministic"):
        write_rows(kept, task, [rows("b", "c")])
    write_rows(kept, TaskName("compacted", 0, 8), [rows("c")])
    assert written(bootstrap) == [b"a", b"b", b"c"]
