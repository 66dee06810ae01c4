"""A Spark session can be made, and what is missing is said."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.pipeline.session import _java, _version_of, why_no_spark
from tests.support.dirty_logs import Writer
from tests.support.lengths import only_long
from tests.support.log_box import NOW_MS, LogBox
from tests.support.quick_spark import quick_java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_importing_the_pipeline_imports_neither_pyspark_nor_pyarrow() -> None:
    program = (
        "import sys, odradek.pipeline, odradek.pipeline.session\n"
        "assert not {'pyspark', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_java_is_that_of_java_home_as_spark_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/java/here")
    assert _java() is None


@pytest.mark.parametrize(
    ("said", "version"), [('openjdk version "17.0.15"', 17), ('java version "1.8.0_1"', 8)]
)
def test_the_version_of_java_is_parsed(said: str, version: int, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    assert _version_of(str(java)) == version


def test_a_session_runs_python_in_its_workers(spark: "SparkSession") -> None:
    assert spark.range(3).rdd.map(lambda row: row.id + 1).collect() == [1, 2, 3]


IN_ANOTHERS_SESSION = """
import sys
from pyspark.sql import SparkSession
from odradek.pipeline import register

path, java_options = sys.argv[1:]
settings = {"spark.driver.extraJavaOptions": java_options, "spark.ui.enabled": "false"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
register(spark)
assert spark.read.format("odradek").options(path=path, subscribe="orders").load().count()
assert spark.sparkContext.pythonExec == "python3"
"""


@pytest.mark.slow
@pytest.mark.skipif(why_no_spark() is not None, reason=why_no_spark() or "")
@only_long("sessions are made in all tests of Spark")
def test_where_python_is_another_one_a_local_session_finds_odradek(tmp_path: Path) -> None:
    log = LogBox(tmp_path / "data").open()
    Writer(1).write(log, 10)
    log.close(NOW_MS)
    another = tmp_path / "python3"
    another.write_text("#!/bin/sh\necho there is no odradek here >&2\nexit 1\n")
    another.chmod(0o755)
    environment = {name: text for name, text in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment |= {"PATH": f"{tmp_path}:{environment['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    arguments = [str(tmp_path / "data"), quick_java_options()]
    program = [sys.executable, "-c", IN_ANOTHERS_SESSION, *arguments]
    done = subprocess.run(program, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
