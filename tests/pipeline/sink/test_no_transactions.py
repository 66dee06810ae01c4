"""Exactly-once delivery to a broker that has no transactions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.broker.handlers import HANDLERS
from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_name import TaskName
from odradek.pipeline.sink.task_writing import write_rows
from odradek.pipeline.sink.write_options import write_options
from odradek.protocol.api_keys import ApiKey
from tests.support.broker_in_thread import broker_in_thread

pytestmark = pytest.mark.slow


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delitem(HANDLERS, ApiKey.INIT_PRODUCER_ID)
    with broker_in_thread(tmp_path, {"listeners": "PLAINTEXT://127.0.0.1:0"}) as broker:
        yield f"127.0.0.1:{broker.ports['PLAINTEXT']}"


def test_a_broker_without_transactions_is_an_error(bootstrap: str) -> None:
    to = write_options({"kafka.bootstrap.servers": bootstrap, "topic": "t"})
    with pytest.raises(WriteError, match=r"no transactions .*delivery=at-least-once"):
        write_rows(to, TaskName("task", 0, 0), [pa.record_batch({"value": ["a"]})])
