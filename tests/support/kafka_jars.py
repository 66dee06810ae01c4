"""Apache Kafka's own jars, fetched once with Maven: the specification that the tests ask.

They land in the user's cache directory and stay there. `ODRADEK_KAFKA_LIBS` names a directory that
already holds the broker's jars, `ODRADEK_KAFKA_430_LIBS` one with those of the broker before it;
`ODRADEK_KAFKA_CLIENTS_39` one that holds the clients' jar of 3.9, the last that knows the oldest
formats, and `ODRADEK_KAFKA_STREAMS` one with the jars of Kafka Streams.
Spark's Kafka connector comes the same way (`ODRADEK_SPARK_CONNECTOR`), without what Spark has, and
so does its reader of Avro (`ODRADEK_SPARK_AVRO`).
"""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

BROKER_VERSION = "4.4.0"
PREVIOUS_BROKER_VERSION = "4.3.0"  # which is still served
LEGACY_VERSION = "3.9.1"
OLD_CLIENTS = ("0.9.0.1", "0.10.2.2")
# The last of 2.x whose producers send the group's generation (KIP-447), and the last of 3.x. Both
# are of transaction version 1.
TRANSACTIONAL_CLIENTS = ("2.8.2", "3.9.1")
FETCH_SECONDS = 600

_POM = """\
<project><modelVersion>4.0.0</modelVersion>
<groupId>odradek</groupId><artifactId>{name}</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId>"
    "<version>{2}</version>{3}</dependency>\n"
)
_ALONE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)
_LOGGER = ("org.slf4j", "slf4j-simple", "1.7.36")
_LEGACY_BROKER = (
    ("org.apache.kafka", "kafka_2.13", LEGACY_VERSION),
    ("org.apache.kafka", "kafka-tools", LEGACY_VERSION),
    _LOGGER,
)
# Its connector for files is not on Maven Central for 4.4.0, and that of 4.3.0 does not run there.
_CONNECT = (
    ("org.apache.kafka", "connect-runtime", PREVIOUS_BROKER_VERSION),
    ("org.apache.kafka", "connect-file", PREVIOUS_BROKER_VERSION),
    ("org.apache.kafka", "connect-json", PREVIOUS_BROKER_VERSION),
    _LOGGER,
)
_STREAMS = (("org.apache.kafka", "kafka-streams", BROKER_VERSION), _LOGGER)
_CLIENTS_39 = (("org.apache.kafka", "kafka-clients", LEGACY_VERSION),)
# The newest connector that Maven Central has whole but for its token provider, which is older.
_SPARK_CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.0"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
# The newest that Maven Central has.
_SPARK_AVRO = ("org.apache.spark", "spark-avro_2.13", "4.2.0")


@functools.cache
def kafka_jars(version: str = BROKER_VERSION) -> Path | None:
    """The directory with the jars of Kafka's broker and tools, or None: see `why_no_jars`."""
    number = "" if version == BROKER_VERSION else f"_{version.replace('.', '')}"
    wanted = (
        ("org.apache.kafka", "kafka_2.13", version),
        ("org.apache.kafka", "kafka-tools", version),
        _LOGGER,
    )
    return _jars(f"ODRADEK_KAFKA{number}_LIBS", f"kafka-{version}", wanted)


@functools.cache
def connect_jars() -> Path | None:
    """The directory with the jars of a Kafka Connect worker, or None: see `why_no_jars`."""
    return _jars("ODRADEK_KAFKA_CONNECT_LIBS", f"kafka-connect-{PREVIOUS_BROKER_VERSION}", _CONNECT)


@functools.cache
def streams_jars() -> Path | None:
    """The directory with the jars of Kafka Streams and RocksDB, or None: see `why_no_jars`."""
    return _jars("ODRADEK_KAFKA_STREAMS", f"kafka-streams-{BROKER_VERSION}", _STREAMS)


@functools.cache
def kafka_39_jars() -> Path | None:
    """The jars of the last Kafka that speaks to clients of 0.8 to 0.10, or None."""
    return _jars("ODRADEK_KAFKA_39_LIBS", f"kafka-{LEGACY_VERSION}", _LEGACY_BROKER)


@functools.cache
def old_clients_jars(version: str) -> Path | None:
    """kafka-clients of OLD_CLIENTS or TRANSACTIONAL_CLIENTS, with what it needs, or None."""
    name = f"kafka-clients-{version}"
    wanted = (("org.apache.kafka", "kafka-clients", version), _LOGGER)
    return _jars(f"ODRADEK_KAFKA_CLIENTS_{version.replace('.', '')}", name, wanted)


@functools.cache
def clients_39_jar() -> Path | None:
    """The kafka-clients jar of 3.9, or None. Its codecs are in `kafka_jars`."""
    name = f"kafka-clients-{LEGACY_VERSION}"
    folder = _jars("ODRADEK_KAFKA_CLIENTS_39", name, _CLIENTS_39)
    return folder / f"{name}.jar" if folder else None


@functools.cache
def spark_connector_jars() -> list[Path] | None:
    """What `spark.jars` has to name for `format("kafka")`, or None: see `why_no_jars`."""
    name = f"spark-sql-kafka-{_SPARK_CONNECTOR[0][2]}"
    folder = _jars("ODRADEK_SPARK_CONNECTOR", name, _SPARK_CONNECTOR, alone=True)
    return sorted(folder.glob("*.jar")) if folder else None


@functools.cache
def spark_avro_jars() -> list[Path] | None:
    """What `spark.jars` has to name for `from_avro`, or None: see `why_no_jars`."""
    name = f"spark-avro-{_SPARK_AVRO[2]}"
    folder = _jars("ODRADEK_SPARK_AVRO", name, (_SPARK_AVRO,), alone=True)
    return sorted(folder.glob("*.jar")) if folder else None


def why_no_jars() -> str:
    """What a test says when it is skipped for want of the jars."""
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} not found: Apache Kafka's jars cannot be fetched"
    return "Maven could not fetch Apache Kafka's jars (no network?)"


def cache_directory() -> Path:
    """Where what was fetched or made once stays."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odradek"


def _jars(
    variable: str, name: str, wanted: tuple[tuple[str, str, str], ...], *, alone: bool = False
) -> Path | None:
    """The directory with these artifacts and what they need, or with them `alone`."""
    given = os.environ.get(variable)
    if given:
        return Path(given)
    folder = cache_directory() / name
    if folder.exists():
        return folder
    if shutil.which("mvn") is None or shutil.which("java") is None:
        return None
    needed = "".join(_DEPENDENCY.format(*each, _ALONE if alone else "") for each in wanted)
    return folder if _fetch(folder, name, needed) else None


def _fetch(folder: Path, name: str, dependencies: str) -> bool:
    """Fetch into a directory beside, and rename it: two test runs may do this at a time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=name, dir=folder.parent))
    pom = fresh / "pom.xml"
    pom.write_text(_POM.format(name=name, dependencies=dependencies))
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
