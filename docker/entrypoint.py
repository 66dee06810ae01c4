#!/usr/local/bin/python
"""Writes a server.properties from environment variables, and becomes `odradek serve`.

The rules are those of Apache Kafka's image (KafkaDockerWrapper), so its compose files work here:

- KAFKA_LOG_RETENTION_HOURS=5 becomes log.retention.hours=5: KAFKA_ is removed, the rest is lower
  case, _ becomes a dot, __ an underscore, ___ a dash. Variables about the JVM are ignored.
- If one variable begins with KAFKA_CFG_ (Bitnami's image), only those become properties.
- Variables that Apache's, Confluent's, Bitnami's or wurstmeister's image reads itself are in the
  table of other_images.py.
- CLUSTER_ID becomes odradek.cluster.id.
- A server.properties mounted at /mnt/shared/config (Kafka's place), /etc/odradek or a place of
  Bitnami's image is read first. A variable overrides it, and an argument `--override KEY=VALUE`
  both.

Defaults of a container: it listens on every interface, on the ports of advertised.listeners if they
are set. Else clients get the address localhost:9092, because the container's own address cannot be
reached from the host. The data is stored in a volume.

A new data directory is formatted with the SCRAM users of the table. Messages of odradek about a
property name the variable that it comes from. For that the broker runs in this process.

The file is written to the directory for temporary files, or, if that is read-only or full, to the
working directory, which is a volume. healthcheck.py reads the file.

    entrypoint.py [--print] [options of `odradek serve`]
    entrypoint.py COMMAND [ARGUMENT]...     run the command instead, as other images do
"""

import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from healthcheck import FILE_NAME, places
from other_images import (
    BITNAMI_CONFIGS,
    BITNAMI_PREFIX,
    OF_TLS_LISTENER,
    TABLE,
    Draft,
    VariableError,
    apply_table,
    is_property,
    read_values_in_files,
)

from odradek.config.errors import ConfigError
from odradek.config.properties import ENCODING, parse_properties

MOUNTED = (
    Path("/mnt/shared/config/server.properties"),
    Path("/etc/odradek/server.properties"),
    *(directory / "server.properties" for directory in BITNAMI_CONFIGS),
)
DATA = "/var/lib/odradek/data"
# Where other images keep their data, by the place where a volume is mounted. A compose file that
# mounts a volume there, and does not set log.dirs, must not lose its data with the container.
DATA_IN_OTHER_IMAGES = {
    "/var/lib/kafka/data": "/var/lib/kafka/data",
    "/tmp/kraft-combined-logs": "/tmp/kraft-combined-logs",
    "/tmp/kafka-logs": "/tmp/kafka-logs",
    "/bitnami/kafka": "/bitnami/kafka/data",
    "/bitnami": "/bitnami/kafka/data",
    "/kafka": "/kafka/data",
}
# Without a value they are as missing: compose files pass ${KAFKA_LISTENERS:-} on.
LISTENERS = ("listeners", "advertised.listeners")
# The first is Kafka's and Confluent's, the others are Bitnami's.
CLUSTER_ID_VARIABLES = ("CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")
# What starts the broker in other images: links to this file.
RUN = (
    "/etc/kafka/docker/run",
    "/etc/confluent/docker/run",
    "/opt/bitnami/scripts/kafka/entrypoint.sh",
    "/opt/bitnami/scripts/kafka/run.sh",
    "/usr/bin/start-kafka.sh",
)
EXIT_FAILED = 1
EXIT_BAD_CONFIG = 2
EXIT_NOT_THERE = 127

NOT_PROPERTIES = {
    "KAFKA_VERSION",
    "KAFKA_HOME",
    "KAFKA_DEBUG",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
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
# What Kubernetes adds to the environment if there is a service with the name `kafka`.
_SERVICE_LINK = re.compile(r"KAFKA_(SERVICE_(HOST|PORT)|PORT_[0-9]+_TCP)(_.*)?")
# A key in a message, and whether a value follows. `listeners` is the only key without a dot that is
# looked for: other words without a dot are plain English.
_KEY = re.compile(r"((?<![\w./-])[a-z][\w-]*(?:\.[\w-]+)+|(?<=configuration )listeners\b)(=?)")


def property_name(variable: str) -> str:
    """KAFKA_A_B__C___D -> a.b_c-d.

    Bitnami's image has no double underscores; it knows two names of security protocols.
    """
    dotted = variable.removeprefix(BITNAMI_PREFIX).removeprefix("KAFKA_").lower().replace("_", ".")
    if variable.startswith(BITNAMI_PREFIX):
        dotted = re.sub(r"sasl\.(ssl|plaintext)", r"sasl_\1", dotted)
    return dotted.replace("...", "-").replace("..", "_")


def variables_of_properties(environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The variables that become properties, and those that Bitnami's image knows and odradek not.

    The second list is empty unless a variable begins with KAFKA_CFG_.
    """
    read_by_image = NOT_PROPERTIES | {row.variable for row in TABLE if not is_property(row.effect)}
    names = [
        name
        for name in sorted(environment.keys() - read_by_image)
        if name.startswith("KAFKA_") and not _SERVICE_LINK.fullmatch(name)
    ]
    bitnami = [name for name in names if name.startswith(BITNAMI_PREFIX)]
    if not bitnami:
        return names, []
    known = {*bitnami, *(row.variable for row in TABLE)}
    return bitnami, [
        name for name in names if name not in known and not OF_TLS_LISTENER.fullmatch(name)
    ]


def _ascii(value: str) -> str:
    units = value.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


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


def draft_of(environment: Mapping[str, str], mounted: Sequence[Path] = MOUNTED) -> Draft:
    """The properties of the variables and of a mounted file. Raises ConfigError, VariableError."""
    file = next((path for path in mounted if path.is_file()), None)
    text, settings = ("", {}) if file is None else _read_mounted(file)
    draft = Draft(environment, settings, text)
    read_values_in_files(draft)
    names, unused = variables_of_properties(draft.environment)
    for name in names:
        key, text = property_name(name), draft.environment[name]
        if text.strip() or key not in LISTENERS:
            draft.put_text(key, text, name)
    for name in CLUSTER_ID_VARIABLES:
        if draft.variable(name) and "odradek.cluster.id" not in draft.lines:
            draft.put_text("odradek.cluster.id", draft.environment[name], name)
    if unused:
        words = "not used, because they do not begin with KAFKA_CFG_"
        draft.notes.append(f"{words}: {', '.join(unused)}")
    apply_table(draft)
    return draft


def put_overrides(draft: Draft, arguments: Sequence[str]) -> None:
    """Put the overrides among the arguments of `odradek serve` into the draft.

    The broker has them from its arguments. Here they replace defaults, and healthcheck.py finds the
    listener in the file.
    """
    for option, following in pairwise([*arguments, ""]):
        override = following if option == "--override" else option.removeprefix("--override=")
        name, equals, value = override.partition("=")
        if override != option and equals:
            draft.put(name.strip(), value, "--override")


def _read_mounted(file: Path) -> tuple[str, dict[str, str]]:
    """The text and the settings of a file. Raises ConfigError."""
    try:
        data = file.read_bytes()
        return data.decode(ENCODING), parse_properties(data)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None


def text_of(draft: Draft) -> str:
    """The text of the server.properties that odradek is started with.

    A value is written as it is, so a backslash in it is an escape, as in Kafka's image. Characters
    beyond ASCII are escaped, because a properties file is Latin-1. The mounted file is copied
    unchanged. The empty line after it ends a value that its last line continues.
    """
    defaults = default_lines({**draft.mounted, **draft.lines})
    mounted = [f"{draft.mounted_text}\n"] if draft.mounted_text else []
    of_variables = [f"{name}={_ascii(value)}" for name, value in draft.lines.items()]
    return "".join(f"{line}\n" for line in [*defaults, *mounted, *of_variables])


def with_variables(message: str, draft: Draft) -> str:
    """A message of odradek in which a property has the variable beside it that the user wrote.

    A property that is not set has the variable that would set it.
    """

    def named(hit: re.Match[str]) -> str:
        name, equals = hit.groups()
        variable = draft.origins.get(name)
        if variable is None:
            if name in draft.mounted or not _is_key(name):
                return hit[0]
            variable = variable_of(name, BITNAMI_PREFIX if draft.is_bitnami else "KAFKA_")
        return f"{variable}: {hit[0]}" if equals else f"{name} ({variable})"

    return _KEY.sub(named, message)


def variable_of(name: str, prefix: str) -> str:
    """a.b_c-d -> KAFKA_A_B__C___D."""
    separated = name.replace("_", "__").replace("-", "___").replace(".", "_")
    return prefix + separated.upper()


def _is_key(name: str) -> bool:
    # Imported here: it takes a while, and is needed only for messages.
    from odradek.config.broker_keys import broker_keys, without_listener

    return without_listener(name) in broker_keys()


def write_file(text: str) -> Path:
    """Write the file in the first place that allows it. Raises OSError.

    It is readable by its owner only, because it may hold passwords.
    """
    *others, last = places()
    for place in others:
        with suppress(OSError):
            return _write_at(place / FILE_NAME, text)
    return _write_at(last / FILE_NAME, text)


def _write_at(path: Path, text: str) -> Path:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    try:
        path.write_text(text, ENCODING)
    except OSError:
        path.unlink()  # healthcheck.py would read it
        raise
    return path


def format_directories(file: Path, draft: Draft, explain: Callable[[str], str]) -> int:
    """Format new data directories with the SCRAM users. Returns the exit code."""
    if not draft.users:
        return 0
    from odradek.config.loading import load_config
    from odradek.tools.format.command import is_formatted, run

    try:
        if is_formatted(load_config(file).config):
            return 0
    except ConfigError:
        return 0  # the broker says what is wrong, and ends
    except OSError as error:
        sys.stderr.write(f"odradek: {error}\n")
        return EXIT_FAILED
    return run(file, [], credentials=draft.users, ignore_formatted=True, explain=explain)


def run_command(arguments: Sequence[str]) -> None:
    """Become another program."""
    try:
        os.execvp(arguments[0], arguments)
    except OSError as error:
        sys.stderr.write(f"odradek: {arguments[0]}: {error.strerror}\n")
        sys.exit(EXIT_NOT_THERE)


def main(arguments: list[str]) -> None:
    """Print the file, or write it and run the broker, or run another command."""
    while arguments and arguments[0] in RUN:
        arguments = arguments[1:]
    if arguments and not arguments[0].startswith("-"):
        run_command(arguments)
    try:
        draft = draft_of(os.environ)
        put_overrides(draft, arguments)
    except (ConfigError, VariableError) as error:
        sys.stderr.write(f"odradek: {error}\n")
        sys.exit(EXIT_BAD_CONFIG)
    text = text_of(draft)
    if arguments[:1] == ["--print"]:
        sys.stdout.write(text)
        return
    sys.stderr.writelines(f"{note}\n" for note in draft.notes)
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

    def explain(message: str) -> str:
        return with_variables(message, draft)

    if code := format_directories(file, draft, explain):
        sys.exit(code)
    sys.argv = ["odradek", "serve", str(file), *arguments]
    from odradek.tools.cli import main as odradek

    odradek(explain)


if __name__ == "__main__":
    main(sys.argv[1:])
