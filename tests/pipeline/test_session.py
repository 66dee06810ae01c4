"""A Spark session can be made, and what is missing is said."""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.pipeline.session import _java, _version_of

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
def test_the_version_of_java_is_what_it_says(said: str, version: int, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    assert _version_of(str(java)) == version


def test_a_session_runs_python_in_its_workers(spark: "SparkSession") -> None:
    assert spark.range(3).rdd.map(lambda row: row.id + 1).collect() == [1, 2, 3]
