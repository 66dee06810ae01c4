"""What the container starts: environment variables become a server.properties, then odradek runs.

The rules are those of Apache Kafka's own image (KafkaDockerWrapper); its compose files work here:

- KAFKA_LOG_RETENTION_HOURS=5 becomes log.retention.hours=5: KAFKA_ goes, the rest is lower case,
  _ becomes a dot, __ an underscore, ___ a dash. Variables that are about the JVM are left out.
- A server.properties mounted at /mnt/shared/config (Kafka's place) or /etc/odradek comes first, the
  variables after it, so that a variable wins over the file.

What neither of them says is filled in for a container: every interface is listened on, clients are
told localhost:9092 (the address that they reached is the container's own, of no use outside), and
the data lies in the volume. Only the standard library is used: this runs before odradek does.

    entrypoint.py [--print] [arguments of `odradek serve`]
"""

import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MOUNTED = (Path("/mnt/shared/config/server.properties"), Path("/etc/odradek/server.properties"))
FINAL = Path(tempfile.gettempdir()) / "odradek-server.properties"

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
}


def property_name(variable: str) -> str:
    """KAFKA_A_B__C___D -> a.b_c-d."""
    dotted = variable.removeprefix("KAFKA_").lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")


def lines_of_environment(environment: Mapping[str, str]) -> list[str]:
    """The property lines of the KAFKA_ variables.

    A value is written as it is, so a backslash in it is an escape, as in Kafka's image. Characters
    beyond ASCII are escaped: a properties file has none.
    """
    return [
        f"{property_name(variable)}={_ascii(value)}"
        for variable, value in sorted(environment.items())
        if variable.startswith("KAFKA_") and variable not in NOT_PROPERTIES
    ]


def _ascii(value: str) -> str:
    units = value.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def names_in(lines: Sequence[str]) -> set[str]:
    """The keys that are set in some lines, near enough to know which defaults are wanted."""
    keys = (re.split(r"[=:\s]", line.strip(), maxsplit=1)[0] for line in lines)
    return {key for key in keys if key and key[0] not in "#!"}


def default_lines(names: set[str]) -> list[str]:
    """What a container needs and nobody said."""
    defaults = {"log.dirs": "/var/lib/odradek/data", "group.initial.rebalance.delay.ms": "0"}
    if "log.dir" in names:
        del defaults["log.dirs"]
    if "listeners" not in names:
        defaults["listeners"] = "PLAINTEXT://0.0.0.0:9092"
        defaults["advertised.listeners"] = "PLAINTEXT://localhost:9092"
    return [f"{name}={value}" for name, value in defaults.items() if name not in names]


def properties(environment: Mapping[str, str], mounted: Sequence[Path] = MOUNTED) -> str:
    """The text of the server.properties that odradek is started with."""
    file = next((path for path in mounted if path.is_file()), None)
    said = [] if file is None else file.read_text("latin-1").splitlines()
    said += lines_of_environment(environment)
    return "\n".join([*default_lines(names_in(said)), *said]) + "\n"


def main(arguments: list[str]) -> None:
    """Print the file, or write it and become odradek."""
    text = properties(os.environ)
    if arguments[:1] == ["--print"]:
        sys.stdout.write(text)
        return
    if "CLUSTER_ID" in os.environ:
        sys.stderr.write("CLUSTER_ID is not used: an empty data directory gets an id of its own\n")
    FINAL.write_text(text, "latin-1")
    os.execvp("odradek", ["odradek", "serve", str(FINAL), *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
