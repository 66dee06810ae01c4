"""Writes a server.properties from environment variables, and becomes `odradek serve`.

The rules are those of Apache Kafka's image (KafkaDockerWrapper), so its compose files work here:

- KAFKA_LOG_RETENTION_HOURS=5 becomes log.retention.hours=5: KAFKA_ is removed, the rest is lower
  case, _ becomes a dot, __ an underscore, ___ a dash. Variables about the JVM are ignored.
- If one variable begins with KAFKA_CFG_ (Bitnami's image), only those become properties.
- CLUSTER_ID becomes odradek.cluster.id.
- A server.properties mounted at /mnt/shared/config (Kafka's place) or /etc/odradek is read first. A
  variable overrides it.

Defaults of a container: it listens on every interface, on the ports of advertised.listeners if they
are set. Else clients get the address localhost:9092, because the container's own address cannot be
reached from the host. The data is stored in a volume. Only the standard library is used.

The file is written to the directory for temporary files. With a read-only root that is the working
directory, which is a volume. healthcheck.py reads the file.

    entrypoint.py [--print] [arguments of `odradek serve`]
"""

import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

MOUNTED = (Path("/mnt/shared/config/server.properties"), Path("/etc/odradek/server.properties"))
FILE_NAME = "odradek-server.properties"
DATA = "/var/lib/odradek/data"
# Where other images keep their data, by the place where a volume is mounted. A compose file that
# mounts a volume there, and does not set log.dirs, must not lose its data with the container.
DATA_IN_OTHER_IMAGES = {
    "/var/lib/kafka/data": "/var/lib/kafka/data",
    "/tmp/kraft-combined-logs": "/tmp/kraft-combined-logs",
    "/tmp/kafka-logs": "/tmp/kafka-logs",
    "/bitnami/kafka": "/bitnami/kafka/data",
    "/bitnami": "/bitnami/kafka/data",
}
# The first is Kafka's and Confluent's, the others are Bitnami's.
CLUSTER_ID_VARIABLES = ("CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")
BITNAMI_PREFIX = "KAFKA_CFG_"
EXIT_BAD_CONFIG = 2

NOT_PROPERTIES = {
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JMX_PORT",
    *CLUSTER_ID_VARIABLES,
}


def property_name(variable: str) -> str:
    """KAFKA_A_B__C___D -> a.b_c-d."""
    dotted = variable.removeprefix(BITNAMI_PREFIX).removeprefix("KAFKA_").lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")


def variables_of_properties(environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The variables that become properties, and those that Bitnami's image knows and odradek not.

    The second list is empty unless a variable begins with KAFKA_CFG_.
    """
    names = sorted(environment.keys() - NOT_PROPERTIES)
    bitnami = [name for name in names if name.startswith(BITNAMI_PREFIX)]
    others = [name for name in names if name.startswith("KAFKA_") and name not in bitnami]
    return (bitnami, others) if bitnami else (others, [])


def lines_of_environment(environment: Mapping[str, str]) -> list[str]:
    """The property lines of the variables.

    A value is written as it is, so a backslash in it is an escape, as in Kafka's image. Characters
    beyond ASCII are escaped, because a properties file is Latin-1.
    """
    properties = [
        (property_name(name), environment[name]) for name in variables_of_properties(environment)[0]
    ]
    cluster_ids = [environment[name] for name in CLUSTER_ID_VARIABLES if environment.get(name)]
    properties += [("odradek.cluster.id", text) for text in cluster_ids[:1]]
    return [f"{name}={_ascii(value)}" for name, value in properties]


def _ascii(value: str) -> str:
    units = value.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def settings_in(lines: Sequence[str]) -> dict[str, str]:
    """The settings in some lines, precise enough to choose the defaults."""
    pairs = (re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1) for line in lines)
    return {pair[0]: pair[-1] for pair in pairs if pair[0] and pair[0][0] not in "#!"}


def default_lines(
    settings: Mapping[str, str], is_mounted: Callable[[str], bool] = os.path.ismount
) -> list[str]:
    """The properties that a container needs and that are not set."""
    places = (DATA_IN_OTHER_IMAGES[path] for path in DATA_IN_OTHER_IMAGES if is_mounted(path))
    defaults = {
        "log.dirs": next(places, DATA),
        "group.initial.rebalance.delay.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
    }
    if "log.dir" in settings:
        del defaults["log.dirs"]
    if settings.get("advertised.listeners"):
        defaults["listeners"] = on_every_interface(settings["advertised.listeners"])
    elif "listeners" not in settings:
        defaults["listeners"] = "PLAINTEXT://0.0.0.0:9092"
        defaults["advertised.listeners"] = "PLAINTEXT://localhost:9092"
    return [f"{name}={value}" for name, value in defaults.items() if name not in settings]


def on_every_interface(listeners: str) -> str:
    """A://x:1,B://y:2 -> A://0.0.0.0:1,B://0.0.0.0:2."""
    return re.sub(r"://(\[[^\]]*\]|[^:,]*):", "://0.0.0.0:", listeners)


def properties(environment: Mapping[str, str], mounted: Sequence[Path] = MOUNTED) -> str:
    """The text of the server.properties that odradek is started with."""
    file = next((path for path in mounted if path.is_file()), None)
    said = [] if file is None else file.read_text("latin-1").splitlines()
    said += lines_of_environment(environment)
    return "\n".join([*default_lines(settings_in(said)), *said]) + "\n"


def write_file(text: str) -> Path:
    """Write the file, readable by its owner only, because it may hold passwords."""
    path = Path(tempfile.gettempdir()) / FILE_NAME
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, "latin-1")
    return path


def main(arguments: list[str]) -> None:
    """Print the file, or write it and become odradek."""
    text = properties(os.environ)
    if arguments[:1] == ["--print"]:
        sys.stdout.write(text)
        return
    if unused := variables_of_properties(os.environ)[1]:
        sys.stderr.write(
            f"not used, because they do not begin with KAFKA_CFG_: {', '.join(unused)}\n"
        )
    try:
        file = write_file(text)
    except OSError as error:
        sys.stderr.write(
            f"odradek: {FILE_NAME} cannot be written: {error.strerror}; mount a volume at"
            " /var/lib/odradek or a tmpfs at /tmp that this user may write to\n"
        )
        sys.exit(EXIT_BAD_CONFIG)
    # The first process of a container ignores a signal that it has no handler for. A blocked one
    # waits until the broker has a handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    os.execvp("odradek", ["odradek", "serve", str(file), *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
