"""A SparkSession as the data pipeline wants it, on this machine or on a cluster.

    workers     run the Python that runs the driver (`PYSPARK_PYTHON`), or would not find odradek
    addresses   a `local` master speaks over loopback only: no name lookup, no open port
    the web UI  is off on a `local` master: two jobs side by side would quarrel about its port
    filters     are pushed down into Python data sources: Spark has that off by default

A setting that the caller gives wins over these. pyspark is only imported when a session is made.
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
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
_LOOPBACK = "127.0.0.1"
_ALWAYS = {
    "spark.sql.python.filterPushdown.enabled": "true",
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
    master: str | None = None,
    app_name: str = "odradek",
    conf: Mapping[str, str] | None = None,
) -> "SparkSession":
    """The session of this process, made if there is none, in which the data source is registered.

    Without a `master`: that of spark-submit, else `local[*]`. Raises NoSparkError.
    """
    reason = why_no_spark()
    if reason:
        raise NoSparkError(reason)
    from pyspark.sql import SparkSession  # as late as possible: see above

    from . import register

    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:  # which spark-submit sets
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
        # That of pandas 3, which is not used here.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
        session = builder.getOrCreate()
    register(session)
    return session


@functools.cache
def why_no_spark() -> str | None:
    """Why no session can be made here, or None."""
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
    """The one that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(Path(home) / "bin" / "java") if home else shutil.which("java")


def _version_of(java: str) -> int | None:
    """17 for 17.0.1, 8 for 1.8.0; None where it does not tell."""
    try:
        said = subprocess.run([java, "-version"], check=False, capture_output=True, text=True)
    except OSError:
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(match[1]) if match else None
