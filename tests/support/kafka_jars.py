"""Apache Kafka's own jars, fetched once with Maven: the specification that the tests ask.

They land in the user's cache directory and stay there. `ODRADEK_KAFKA_LIBS` names a directory that
already holds the broker's jars; `ODRADEK_KAFKA_CLIENTS` one that holds the newest clients' jar.
"""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

BROKER_VERSION = "4.3.0"
CLIENTS_VERSION = "4.4.0"
FETCH_SECONDS = 600

_POM = """\
<project><modelVersion>4.0.0</modelVersion>
<groupId>odradek</groupId><artifactId>{name}</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId>"
    "<version>{2}</version></dependency>\n"
)
_BROKER = (
    ("org.apache.kafka", "kafka_2.13", BROKER_VERSION),
    ("org.apache.kafka", "kafka-tools", BROKER_VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
_CLIENTS = (("org.apache.kafka", "kafka-clients", CLIENTS_VERSION),)


@functools.cache
def kafka_jars() -> Path | None:
    """The directory with the jars of Kafka's broker and tools, or None: see `why_no_jars`."""
    return _jars("ODRADEK_KAFKA_LIBS", f"kafka-{BROKER_VERSION}", _BROKER)


@functools.cache
def clients_44_jar() -> Path | None:
    """The newest kafka-clients jar, or None: see `why_no_jars`."""
    folder = _jars("ODRADEK_KAFKA_CLIENTS", f"kafka-clients-{CLIENTS_VERSION}", _CLIENTS)
    return folder / f"kafka-clients-{CLIENTS_VERSION}.jar" if folder else None


def why_no_jars() -> str:
    """What a test says when it is skipped for want of the jars."""
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} not found: Apache Kafka's jars cannot be fetched"
    return "Maven could not fetch Apache Kafka's jars (no network?)"


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odradek"


def _jars(variable: str, name: str, wanted: tuple[tuple[str, str, str], ...]) -> Path | None:
    given = os.environ.get(variable)
    if given:
        return Path(given)
    folder = _cache() / name
    if folder.exists():
        return folder
    if shutil.which("mvn") is None or shutil.which("java") is None:
        return None
    return folder if _fetch(folder, name, wanted) else None


def _fetch(folder: Path, name: str, wanted: tuple[tuple[str, str, str], ...]) -> bool:
    """Fetch into a directory beside, and rename it: two test runs may do this at a time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=name, dir=folder.parent))
    pom = fresh / "pom.xml"
    pom.write_text(
        _POM.format(name=name, dependencies="".join(_DEPENDENCY.format(*each) for each in wanted))
    )
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    try:
        subprocess.run(
            [*command, f"-DoutputDirectory={fresh}"],
            check=True,
            capture_output=True,
            timeout=FETCH_SECONDS,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        shutil.rmtree(fresh)
        return False
    try:
        fresh.rename(folder)
    except OSError:  # the other was first
        shutil.rmtree(fresh)
    return True
