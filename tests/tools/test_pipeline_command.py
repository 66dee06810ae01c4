"""`odradek pipeline`, and its commands archive and replay, without Spark."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from odradek.protocol.compression import CompressionType
from odradek.storage.checkpoints import MetaProperties, write_meta_properties
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.tools.app import app
from odradek.tools.pipeline.group import JOBS
from odradek.tools.pipeline.replay import _time_ms
from odradek.tools.tables import number, size
from tests.support.archives import archive_of_version_0_1, at, data_files
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


def test_an_archive_of_version_0_1_is_migrated(tmp_path: Path) -> None:
    archive_of_version_0_1(tmp_path / "old")
    shown = run("migrate-archive", tmp_path / "old")
    assert "is a Delta table of 12 records in 7 files; 2 files were written again" in shown
    shown = run("migrate-archive", tmp_path / "old", code=1)
    assert "is not an archive of version 0.1" in " ".join(shown.split())


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
        (["replay", "to", "--bootstrap", "h:1", "--topic", "a", "--delivery", "x"], "exactly-once"),
        (["replay", "to", "--bootstrap", "h:1", "--topic", "a", "--to-time", "x"], "isoformat"),
    ],
)
def test_wrong_usage_is_said(arguments: list[str], reason: str) -> None:
    shown = run(*arguments, code=2)
    assert reason in " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["replay", "to", "--bootstrap", "h:1", "--topic", "a"], "is not an archive"),
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
