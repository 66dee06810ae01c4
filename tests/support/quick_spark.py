"""A Spark that starts in a third of its time and CPU, for tests; benchmarks have it as it is.

Only the first compiler, no parallel collector, and an archive of the loaded classes (AppCDS) that
is made once per version of Spark and Java and kept in the user's cache directory.
"""

import functools
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.support.kafka_jars import cache_directory

_QUICK = "-Xlog:disable -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_MAKING_SECONDS = 300.0
# What most tests load; the query in the middle has classes of the code generator loaded too.
_PROGRAM = """\
import sys
from odradek.pipeline.session import make_session
spark = make_session("local[1]", "archive", {"spark.driver.extraJavaOptions": sys.argv[1]})
spark.range(9).selectExpr("cast(id as string) as a").groupBy("a").count().collect()
stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
query = stream.writeStream.format("noop").option("checkpointLocation", sys.argv[2])
query.trigger(once=True).start().awaitTermination(60)
spark.stop()
"""


@functools.cache
def quick_java_options() -> str:
    """For the driver, executors and daemons. The first call of all may take half a minute."""
    archive = cache_directory() / f"spark-{version('pyspark')}-{_java_version()}.jsa"
    if not archive.exists():
        _make(archive)
    return f"{_QUICK} -XX:SharedArchiveFile={archive}" if archive.exists() else _QUICK


def _java_version() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    said = subprocess.run([java, "-version"], check=False, capture_output=True, text=True).stderr
    return said.partition('"')[2].partition('"')[0]


def _make(archive: Path) -> None:
    """Make it beside, and rename it: two test runs may do this at a time. It may fail: then not."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(f".{os.getpid()}")
    options = f"{_QUICK} -XX:ArchiveClassesAtExit={fresh}"
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-c", _PROGRAM, options, f"{scratch}/checkpoint"]
        subprocess.run(
            command, check=False, capture_output=True, cwd=scratch, timeout=_MAKING_SECONDS
        )
    if fresh.exists():
        fresh.rename(archive)
