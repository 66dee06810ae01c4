"""The jobs as Python calls, in processes: what they return."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from odradek.pipeline.calls import archive, replay, stats
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.progress import progress_bar
from tests.support.archives import logged
from tests.support.broker_in_thread import broker_in_thread
from tests.support.crashing_files import QuickFiles
from tests.support.log_box import NOW_MS, LogBox, put


def test_the_calls_return_what_was_done(tmp_path: Path) -> None:
    box = LogBox(tmp_path / "log", files=QuickFiles())
    log = box.open()
    put(log, b'{"id": 1}', b"bad", b'{"id": 3}')
    log.close(NOW_MS)
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0"}
    made = archive(
        tmp_path / "archive", tmp_path / "log", until_end=True, schema={"id": "long"}, processes=1
    )
    assert (made.total().records, made.total().dead_letters, made.problems) == (2, 1, [])
    (counted,) = stats(str(tmp_path / "log"), topics="orders", processes=1).topics
    assert counted.offsets == 3
    with broker_in_thread(tmp_path / "broker", settings) as broker:
        client = {"bootstrap.servers": f"127.0.0.1:{broker.ports['PLAINTEXT']}"}
        where = (tmp_path / "archive", client)
        sent = replay(*where, topics=["orders"], to_topic="again", create=True, processes=1)
        assert (sent.records, sent.notes) == (3, [])
        later = datetime.fromtimestamp(NOW_MS / 1000 + 60, UTC)
        none = replay(*where, topics="orders", create=True, from_time=later, processes=1)
        assert none.records == 0
        with pytest.raises(JobError) as failure:
            replay(*where, topics=["orders"], to_topic="other", processes=1)
    assert "continued with job_id='2" in failure.value.__notes__[0]
    sent_rows = logged(tmp_path / "broker" / "again-0")
    assert [row[3:6] for row in sent_rows] == [row[3:6] for row in logged(box.directory)]


def test_a_replay_must_name_topics(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="name topics"):
        replay(tmp_path, {})
    with pytest.raises(JobError, match="is no object store"):
        archive(tmp_path, tmp_path, storage={"a": "b"})


@pytest.mark.parametrize("processes", [0, -1])
def test_no_processes_are_refused(processes: int, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=f"processes must be 1 or more, not {processes}"):
        stats(tmp_path, processes=processes)


def test_another_delivery_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="must be exactly-once or at-least-once, not 'once'"):
        replay(tmp_path, {}, topics="orders", delivery="once")


def test_a_bar_is_shown_only_where_somebody_sees_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("tasks") as bar:
        bar.total("archiving", 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_bar("tasks") as bar:
        bar.total("archiving", 2)
        bar.done(1)
    assert "archiving" in capsys.readouterr().err
