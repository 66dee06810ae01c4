"""`odradek pipeline`, and its commands archive and replay, without Spark."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from odradek.pipeline.jobs.archive.job import ArchiveRun
from odradek.pipeline.jobs.replay.job import ReplaySettings, ReplaySummary
from odradek.protocol.compression import CompressionType
from odradek.storage.checkpoints import MetaProperties, write_meta_properties
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.tools.app import app
from odradek.tools.pipeline import tables
from odradek.tools.pipeline.group import JOBS
from odradek.tools.pipeline.replay import _time_ms
from odradek.tools.tables import number, size
from tests.support.archives import at, data_files
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer
from tests.support.log_box import NOW_MS, LogBox


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Of several segments, in tmp_path/log."""
    box = LogBox(tmp_path / "log", files=QuickFiles(), segment_bytes=4000)
    log = box.open()
    Writer(1, codecs=tuple(CompressionType)).write(log, 60)
    return log


def run(*arguments: object, code: int = 0) -> str:
    """What the command says."""
    done = CliRunner().invoke(app, ["pipeline", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


def test_the_help_names_the_jobs() -> None:
    shown = run("--help")
    for job in JOBS:
        assert f" {job} " in shown


def test_an_unknown_job_is_refused() -> None:
    assert "No such command" in run("nothing", code=2)


def test_the_help_of_no_job_loads_anything_of_spark() -> None:
    program = (
        "import sys\nfrom odradek.tools.app import app\n"
        "for job in sys.argv[1:]:\n"
        "    try:\n        app(['pipeline', job, '--help'])\n"
        "    except SystemExit as end:\n        assert end.code == 0, job\n"
        "    heavy = {'pyspark', 'pyarrow', 'numpy', 'confluent_kafka', 'deltalake'}\n"
        "    assert not heavy & set(sys.modules), (job, heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, *JOBS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for job in JOBS:
        assert f"pipeline {job} [OPTIONS]" in done.stdout


def test_a_dry_run_says_what_is_missing_and_writes_nothing(
    tmp_path: Path, log: PartitionLog
) -> None:
    log.close(NOW_MS)
    shown = run("archive", tmp_path / "to", "--path", tmp_path / "log", "--until-end", "--dry-run")
    assert "would be archived (nothing was written)" in shown
    assert "orders" in shown
    assert str(log.log_end_offset) in shown
    assert not (tmp_path / "to").exists()


def test_an_archive_is_made_and_summed_up(tmp_path: Path, log: PartitionLog) -> None:
    log.close(NOW_MS)
    shown = run("archive", tmp_path / "to", "--log-dirs", tmp_path / "log", "--compact")
    assert f"archived into {tmp_path / 'to'} in" in shown
    assert data_files(at(tmp_path / "to"))
    plan = run("replay", tmp_path / "to", "--bootstrap", "h:1", "--topics", ".*", "--dry-run")
    assert "would be replayed (nothing was sent)" in plan
    assert "orders-0" in plan


def test_what_was_lost_has_an_exit_code_of_its_own(tmp_path: Path, log: PartitionLog) -> None:
    arguments = ("archive", tmp_path / "to", "--path", tmp_path / "log")
    run(*arguments)
    Writer(2, producers=False).write(log, 90)
    log.delete_first_segments(len(list((tmp_path / "log").rglob("*.log"))) - 2, NOW_MS)
    shown = run(*arguments, code=3)
    assert "lost, because it was deleted before it could be archived: orders-0: offsets" in shown
    run(*arguments)


def run_apart(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    program = "from odradek.tools.cli import main; main()"
    command = [sys.executable, "-c", program, "pipeline", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


@pytest.mark.slow
def test_spark_is_started_only_for_work_and_says_that_java_is_missing(
    tmp_path: Path, log: PartitionLog
) -> None:
    arguments = ("archive", tmp_path / "to", "--path", tmp_path / "log")
    done = run_apart(*arguments, "--master", "local[1]", JAVA_HOME="/nowhere")
    assert done.returncode == 2
    assert "java not found: Spark needs Java 17" in done.stderr
    assert "Traceback" not in done.stderr
    run(*arguments)
    done = run_apart(*arguments, "--master", "local[1]", JAVA_HOME="/nowhere")
    assert (done.returncode, done.stderr) == (0, "")


def without(package: str, place: Path) -> dict[str, str]:
    """The environment of a Python in which the package is not installed."""
    (place / package).mkdir(parents=True)
    (place / package / "__init__.py").write_text(
        f"raise ModuleNotFoundError('No module named {package!r}', name={package!r})"
    )
    return {"PYTHONPATH": os.pathsep.join((str(place), os.environ.get("PYTHONPATH", "")))}


@pytest.mark.slow
def test_jobs_in_processes_need_no_pyspark(tmp_path: Path, log: PartitionLog) -> None:
    log.close(NOW_MS)
    write_meta_properties(Files(), tmp_path / "log", MetaProperties("c", 1, b"d" * 16))
    environment = without("pyspark", tmp_path / "site")
    for job in (("archive", tmp_path / "to"), ("stats",)):
        done = run_apart(*job, "--path", tmp_path / "log", "--processes", 1, **environment)
        assert (done.returncode, done.stderr) == (0, ""), job
    assert data_files(at(tmp_path / "to"))


@pytest.mark.parametrize(
    ("missing", "extra"), [("pyarrow", "pipeline"), ("numpy", "pipeline"), ("pyspark", "spark")]
)
def test_a_package_that_is_missing_is_named(
    missing: str, extra: str, tmp_path: Path, log: PartitionLog
) -> None:
    program = (
        f"import sys\nsys.modules[{missing!r}] = None\n"
        "import importlib.util\nfind = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name: None if name == {missing!r} else find(name)\n"
        "from odradek.tools.cli import main\nmain()"
    )
    arguments = ["pipeline", "archive", str(tmp_path / "to"), "--path", str(tmp_path / "log")]
    place = ["--master", "local[1]"] if extra == "spark" else []
    command = [sys.executable, "-c", program, *arguments, *place]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"{missing} " in done.stderr
    assert f"pip install 'odradek[{extra}]'" in done.stderr


TWICE = ("--client-config", "a=2")
AVRO = ("--value-format", "avro", "--registry", "http://a")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["archive", "to", "--path", ".", "--storage", "a"], "is not KEY=VALUE"),
        (["archive", "to", "--path", "no/such"], "is not a directory"),
        (["archive", "to", "--path", ".", "--conf", "a"], "is not KEY=VALUE"),
        (["archive", "to", "--path", ".", "--conf", "a=b"], "needs --master"),
        (["archive", "to", "--path", ".", "--master", "x", "--processes", "2"], "local[N]"),
        (["archive", "to", "--path", ".", "--drop-value"], "needs --schema"),
        (["replay", "to", "--bootstrap", "h:1"], "name a topic"),
        (["replay", "to", "--bootstrap", "h:1", "--topic", "a", "--job-id", "../x"], "only"),
        (
            ["replay", "to", "--bootstrap", "h:1", "--topic", "a", "--delivery", "x"],
            "at-least-once",
        ),
        (["replay", "to", "--bootstrap", "h:1", "--topic", "a", "--to-time", "x"], "isoformat"),
        (
            ["replay", "to", "--topic", "a", "--from-offset", "2", "--to-offset", "2"],
            "is not after",
        ),
        (["replay", "to", "--topic", "a", "--from-time", "2", "--to-time", "1"], "is not after"),
        (["replay", "to", "--topic", "a", "--topic-config", "a=b"], "needs --create"),
        (["replay", "to", "--topic", "a", "--client-config", "bootstrap.servers=b"], "--bootstrap"),
        (["replay", "to", "--topic", "a", "--client-config", "a=1", *TWICE], "has two values"),
        (["replay", "to", "--topic", "a", "--storage", "a=b"], "is no object store"),
        (["archive", "to", "--path", ".", "--storage", "a=b"], "is no object store"),
        (["tables", "to", "--path", ".", "--value-subject", "a"], "needs --value-format"),
        (["tables", "to", "--path", ".", *AVRO, "--registry-conf", "url=b"], "by --registry"),
        (["tables", "to", "--path", ".", *AVRO, "--schema", "a"], "excludes --value-format"),
        (["tables", "to", "--path", ".", "--metrics-listener", "9404"], "is not HOST:PORT"),
        (
            ["archive", "to", "--path", ".", "--master", "x", "--conf", "spark.master=y"],
            "of --master",
        ),
    ],
)
def test_wrong_usage_is_said(arguments: list[str], reason: str) -> None:
    shown = run(*arguments, code=2)
    assert reason in " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["replay", "to", "--bootstrap", "h:1", "--topic", "a"], "is not an archive"),
        (["replay", "to", "--config", "no", "--topic", "a"], "no cannot be read"),
        (["archive", "to", "--path", ".", "--topic", "a"], "no topic a in"),
        (["archive", "to", "--path", ".", "--topics", "("], "invalid pattern"),
        (["archive", "to", "--path", ".", "--schema", "no"], "cannot read the schema"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    arguments: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(*arguments, code=1)
    assert shown.startswith("error: ")
    assert reason in shown


def test_a_second_archive_at_once_has_an_exit_code_of_its_own(
    tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ("archive", tmp_path / "to", "--path", tmp_path / "log", "--processes", 1)
    plans = ArchiveRun._plans

    def overtaken(self: ArchiveRun) -> object:
        found = plans(self)
        monkeypatch.undo()
        run(*first)
        return found

    monkeypatch.setattr(ArchiveRun, "_plans", overtaken)
    shown = " ".join(run(*first, code=4).split())
    assert "another process is archiving to the same table: it has archived orders-0" in shown
    run(*first)


def damaged(log: PartitionLog) -> Path:
    """Damage the last bytes of a closed segment; return its path."""
    path = sorted(log.directory.glob("*.log"))[1]
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)
    return path


def test_what_is_skipped_is_named_and_has_an_exit_code(tmp_path: Path, log: PartitionLog) -> None:
    log.close(NOW_MS)
    path = damaged(log)
    arguments = ("archive", tmp_path / "to", "--path", tmp_path / "log", "--processes", 1)
    assert f"problem: orders-0: {path}" in run(*arguments, code=1)
    shown = run(*arguments, "--skip-unreadable", code=3)
    assert "skipped, because it cannot be read: orders-0: offsets" in shown
    run(*arguments)


def test_tables_with_open_problems_exits_with_1(
    tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.close(NOW_MS)
    damaged(log)

    def stopped_after_a_round() -> threading.Event:
        stop = threading.Event()
        monkeypatch.setattr(stop, "wait", lambda _: stop.set())
        return stop

    monkeypatch.setattr(tables, "_stopped_by_signals", stopped_after_a_round)
    arguments = ("tables", tmp_path / "to", "--path", tmp_path / "log", "--processes", 1)
    shown = run(*arguments, "--metrics-listener", "127.0.0.1:0", code=1)
    assert "problem: orders-0: " in shown
    assert "skipped: orders-0: offsets" in run(*arguments, "--skip-unreadable", code=3)
    run(*arguments)


@pytest.mark.parametrize("job", [("archive", "to"), ("archive", "to", "--dry-run"), ("stats",)])
def test_a_damaged_checkpoint_is_an_error_in_a_line(
    job: tuple[str, ...], tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 x\n")
    shown = run(*job, "--path", tmp_path / "log", code=1)
    kind = "error" if job == ("stats",) else "problem: orders-0"
    reason = f"{kind}: {tmp_path / 'log' / 'log-start-offset-checkpoint'}, line 3: "
    assert len([line for line in shown.splitlines() if line.startswith(reason)]) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20.5+01:00", 1_700_000_000_500),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_a_time_is_iso_8601_or_milliseconds(text: str | None, expected: Any) -> None:
    assert _time_ms(text, "--from-time") == expected


def test_numbers_and_sizes_are_for_people() -> None:
    assert (number(1234567), number(0)) == ("1,234,567", "")
    assert [size(each) for each in (5, 2048, 3 << 30, 5 << 40)] == [
        "5 B",
        "2.0 KiB",
        "3.0 GiB",
        "5.0 TiB",
    ]


def test_replay_finds_its_broker_as_the_other_commands_do(
    tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.close(NOW_MS)
    run("archive", tmp_path / "to", "--path", tmp_path / "log", "--processes", 1)
    clients: list[Mapping[str, str]] = []

    def replayed(_: object, settings: ReplaySettings, *__: object, **___: object) -> ReplaySummary:
        clients.append(settings.client)
        return ReplaySummary()

    monkeypatch.setattr("odradek.pipeline.jobs.replay.job.run_replay", replayed)
    (tmp_path / "client").write_text("bootstrap.servers=file:1\nsasl.username=u\n")
    command = ("replay", tmp_path / "to", "--topic", "orders")
    run(*command)
    run(*command, "--config", tmp_path / "client", "--client-config", "linger.ms=1")
    monkeypatch.setenv("ODRADEK_BOOTSTRAP", "variable:1")
    run(*command, "--config", tmp_path / "client")
    run(*command, "--bootstrap", "option:1")
    assert clients == [
        {"bootstrap.servers": "localhost:9092"},
        {"bootstrap.servers": "file:1", "sasl.username": "u", "linger.ms": "1"},
        {"bootstrap.servers": "variable:1", "sasl.username": "u"},
        {"bootstrap.servers": "option:1"},
    ]
