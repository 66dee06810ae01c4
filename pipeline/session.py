"""Makes the SparkSession that the pipeline needs, on this machine or on a cluster.

    workers     run the driver's Python (`PYSPARK_PYTHON`), because odradek is installed there
    addresses   a `local` master uses loopback only: no name lookup, no open port
    the web UI  is off on a `local` master, so two jobs at a time do not compete for its port

A setting that the caller gives overrides these. pyspark is imported only when a session is made.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"  # spark-submit sets this environment variable
_LOOPBACK = "127.0.0.1"
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}
_ON_THIS_MACHINE = {
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.ui.enabled": "false",
}


class NoSparkError(RuntimeError):
    """Spark cannot run here; the message says what to install."""


def make_session(
    master: str | None = None, app_name: str = "odradek", conf: Mapping[str, str] | None = None
) -> "SparkSession":
    """Return this process's session with the data source registered; create it if there is none.

    Without a `master`, that of spark-submit is used, else `local[*]`. Raises NoSparkError.
    """
    reason = why_no_spark()
    if reason:
        raise NoSparkError(reason)
    from pyspark.sql import SparkSession  # only after the check above

    from odradek.pipeline import register

    if master is None and SPARK_SUBMIT not in os.environ:
        master = "local[*]"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = dict(_ALWAYS)
    if master is not None and master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        settings |= _ON_THIS_MACHINE
    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    for name, value in (settings | dict(conf or {})).items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        # pandas 3 makes pyspark warn. pandas is not used here.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
        session = builder.getOrCreate()
    register(session)
    return session


def classic_context(spark: "SparkSession") -> "SparkContext":
    """Return the session's context. Raises NoSparkError for a session of Spark Connect."""
    context: SparkContext | None = getattr(spark, "sparkContext", None)
    if context is None:
        raise NoSparkError(
            "jobs need a SparkContext, which a session of Spark Connect does not have: give them a "
            "session of the cluster itself (--master spark://HOST:7077)"
        )
    return context


@functools.cache
def why_no_spark() -> str | None:
    """Return the reason why no session can be made here, or None."""
    missing = [name for name in ("pyspark", "pyarrow", "numpy") if find_spec(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed: pip install 'odradek[spark]'"
    java = _java()
    if java is None:
        return f"java not found: Spark needs Java {OLDEST_JAVA} or newer (JAVA_HOME, or on PATH)"
    version = _version_of(java)
    if version is not None and version < OLDEST_JAVA:
        return f"{java} is Java {version}: Spark needs Java {OLDEST_JAVA} or newer"
    return None


def _java() -> str | None:
    """Return the path of the Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(Path(home) / "bin" / "java") if home else shutil.which("java")


def _version_of(java: str) -> int | None:
    """Return 17 for 17.0.1 and 8 for 1.8.0; None if the version cannot be determined."""
    try:
        completed = subprocess.run([java, "-version"], check=False, capture_output=True, text=True)
    except OSError:
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', completed.stderr + completed.stdout)
    return int(match[1]) if match else None
