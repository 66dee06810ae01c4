"""The variables of other images that are no properties: one table of image, variable and effect.

apache/kafka, confluentinc/cp-kafka, bitnami/kafka and wurstmeister/kafka each have a script that
reads some variables itself. A row says what such a variable does there, and so here. Any other
variable is a property (entrypoint.py). Sources, by the name of the image:

- apache, confluent: `configure`, which reads TLS stores below /etc/kafka/secrets. The JVM reads the
  JAAS file in KAFKA_OPTS.
- bitnami: `libkafka.sh` and `kafka-env.sh` of bitnami/containers. KAFKA_CFG_X is a property. Before
  2020 it was KAFKA_X, and these names still work: they override the others.
- wurstmeister: `start-kafka.sh` and `create-topics.sh` of wurstmeister/kafka-docker.
- debezium: `docker-entrypoint.sh` of debezium/container-images.

An error names the variable and what to do, and never a password. odradek is imported only to parse
a JAAS file.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SECRETS = Path("/etc/kafka/secrets")
BITNAMI_CONFIGS = (Path("/opt/bitnami/kafka/config"), Path("/bitnami/kafka/config"))
BITNAMI_PREFIX = "KAFKA_CFG_"
DEFAULT_PORT = "9092"

# Bitnami's list of variables whose value may be in a file, named by a variable that ends in _FILE.
IN_FILES = (
    *("KAFKA_CLIENT_USERS", "KAFKA_CLIENT_PASSWORDS", "KAFKA_INTER_BROKER_USER"),
    *("KAFKA_INTER_BROKER_PASSWORD", "KAFKA_CERTIFICATE_PASSWORD", "KAFKA_TLS_TYPE"),
    *("KAFKA_TLS_TRUSTSTORE_FILE", "KAFKA_TLS_CLIENT_AUTH", "KAFKA_OPTS", "KAFKA_CLUSTER_ID"),
    *("KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CFG_SASL_ENABLED_MECHANISMS"),
)
# Bitnami's names of properties before there was KAFKA_CFG_.
OLD_NAMES = (
    *("ADVERTISED_LISTENERS", "AUTO_CREATE_TOPICS_ENABLE", "BROKER_ID", "NODE_ID"),
    *("CONTROLLER_QUORUM_BOOTSTRAP_SERVERS", "CONTROLLER_QUORUM_VOTERS", "PROCESS_ROLES"),
    *("DEFAULT_REPLICATION_FACTOR", "DELETE_TOPIC_ENABLE", "INTER_BROKER_LISTENER_NAME"),
    *("LISTENERS", "LISTENER_SECURITY_PROTOCOL_MAP", "LOG_DIRS", "LOG_FLUSH_INTERVAL_MESSAGES"),
    *("LOG_FLUSH_INTERVAL_MS", "LOG_MESSAGE_FORMAT_VERSION", "LOG_RETENTION_BYTES"),
    *("LOG_RETENTION_CHECK_INTERVALS_MS", "LOG_RETENTION_HOURS", "LOG_SEGMENT_BYTES"),
    *("MESSAGE_MAX_BYTES", "NUM_IO_THREADS", "NUM_NETWORK_THREADS", "NUM_PARTITIONS"),
    *("NUM_RECOVERY_THREADS_PER_DATA_DIR", "OFFSETS_TOPIC_REPLICATION_FACTOR"),
    *("SOCKET_RECEIVE_BUFFER_BYTES", "SOCKET_REQUEST_MAX_BYTES", "SOCKET_SEND_BUFFER_BYTES"),
    *("SSL_ENDPOINT_IDENTIFICATION_ALGORITHM", "TRANSACTION_STATE_LOG_MIN_ISR"),
    *("TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "ZOOKEEPER_CONNECT"),
    "ZOOKEEPER_CONNECTION_TIMEOUT_MS",
)

_LOGIN_MODULES = "org.apache.kafka.common.security"
PLAIN = "PLAIN"
LOGIN_MODULES = {
    PLAIN: f"{_LOGIN_MODULES}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_LOGIN_MODULES}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_LOGIN_MODULES}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_LOGIN_MODULES}.oauthbearer.OAuthBearerLoginModule",
}
BITNAMI_MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OLD_AUTHORIZERS = (
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
OF_TLS_LISTENER = re.compile("KAFKA_TLS_.+_CLIENT_AUTH")
_JAAS_FILE = re.compile(r"-Djava\.security\.auth\.login\.config==?[\"']?([^\s\"']+)")


class VariableError(Exception):
    """A variable cannot be served. The message is one line that names it."""


class Draft:
    """The properties that variables have led to so far.

    `lines` are values as they are written in a file. `origins` are the variables that they come
    from. `users` are SCRAM credentials for a new data directory, in the syntax of `odradek format`.
    `notes` are messages for the user. `mounted` are the settings of a file that is read first, and
    `mounted_text` is its text.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        mounted: Mapping[str, str],
        mounted_text: str = "",
    ) -> None:
        self.environment = dict(environment)
        self.mounted = mounted
        self.mounted_text = mounted_text
        self.lines: dict[str, str] = {}
        self.origins: dict[str, str] = {}
        self.users: list[str] = []
        self.notes: list[str] = []
        self.is_bitnami = any(name.startswith(BITNAMI_PREFIX) for name in environment)

    def setting(self, name: str) -> str:
        """The value of a property, or an empty text."""
        return self.lines.get(name, self.mounted.get(name, ""))

    def variable(self, name: str) -> str:
        """The value of a variable, or an empty text."""
        return self.environment.get(name, "")

    def put_text(self, name: str, text: str, variable: str) -> None:
        """Set a property to a text in which a backslash is an escape."""
        self.lines[name] = text
        self.origins[name] = variable

    def put(self, name: str, value: str, variable: str) -> None:
        """Set a property to a value."""
        self.put_text(name, value.replace("\\", r"\\").replace("\n", r"\n"), variable)

    def listeners(self, *protocols: str) -> list[str]:
        """The names, in upper case, of the broker's listeners with one of the protocols."""
        written = self.setting("listeners") or self.setting("advertised.listeners")
        names = [entry.strip().partition("://")[0].upper() for entry in written.split(",")]
        pairs = self.setting("listener.security.protocol.map").upper().split(",")
        protocol_of = {name.strip(): text for name, _, text in (x.partition(":") for x in pairs)}
        of_controllers = self.setting("controller.listener.names").upper().split(",")
        return [
            name
            for name in names
            if name not in of_controllers and protocol_of.get(name, name).strip() in protocols
        ]


Effect = Callable[[Draft, str], None]


def is_property(effect: Effect) -> bool:
    """Whether a variable with this effect is also a property of its name."""
    return effect in (old_name, authorizer)


class Row(NamedTuple):
    """The images that have a variable, and its effect, which is called if the variable is set."""

    images: str
    variable: str
    effect: Effect


# -- effects --------------------------------------------------------------------------------------


def property_named(name: str) -> Effect:
    """The property of another name."""
    return lambda draft, variable: draft.put_text(name, draft.environment[variable], variable)


def old_name(draft: Draft, variable: str) -> None:
    """In a file with KAFKA_CFG_ variables: the property of the same name, which it overrides."""
    if draft.is_bitnami:
        name = variable.removeprefix("KAFKA_").lower().replace("_", ".")
        draft.put_text(name, draft.environment[variable], variable)


def _is_read(draft: Draft, name: str, path: Path) -> bool:
    """Whether the images read this file of a store.

    They read a key store if a listener has TLS, and a trust store if clients need a certificate as
    well. odradek also reads a trust store that is there, because one listener can ask for it.
    """
    if not draft.listeners("SSL", "SASL_SSL"):
        return False
    asks = draft.setting("ssl.client.auth") in ("required", "requested")
    return asks or "truststore" not in name or path.exists()


def secret_file(name: str) -> Effect:
    """The property is the path of a file below /etc/kafka/secrets."""

    def effect(draft: Draft, variable: str) -> None:
        path = SECRETS / draft.environment[variable]
        if not _is_read(draft, name, path):
            return
        if not path.exists():
            raise VariableError(f"{variable}: {path} does not exist; mount it there")
        draft.put(name, str(path), variable)

    return effect


def secret_in_file(name: str) -> Effect:
    """The property is what is in a file below /etc/kafka/secrets."""

    def effect(draft: Draft, variable: str) -> None:
        path = SECRETS / draft.environment[variable]
        if _is_read(draft, name, path):
            draft.put_text(name, _read(path, variable).rstrip("\n"), variable)

    return effect


def read_together(_draft: Draft, _variable: str) -> None:
    """Read by one of the functions below, together with others."""


def no_effect(_draft: Draft, _variable: str) -> None:
    """About the JVM, other brokers, ZooKeeper or the image's own tools."""


def not_served(advice: str) -> Effect:
    """A message with the way out."""

    def effect(draft: Draft, variable: str) -> None:
        draft.notes.append(f"{variable} has no effect: {advice}")

    return effect


def topics(draft: Draft, variable: str) -> None:
    """NAME:PARTITIONS:REPLICAS:POLICY, separated by any character of KAFKA_CREATE_TOPICS_SEPARATOR.

    There a missing number is an error, and the topic is not created.
    """
    separators = draft.variable("KAFKA_CREATE_TOPICS_SEPARATOR") or ","
    entries = re.split(f"[{re.escape(separators)}]", draft.environment[variable])
    named = [entry.strip() for entry in entries if entry.strip()]
    draft.put("odradek.create.topics", ",".join(named), variable)


def old_address(draft: Draft, variable: str) -> None:
    """The host and port of the only listener, as in Kafka before 0.9; advertised.listeners wins."""
    port = draft.variable("KAFKA_PORT")
    if draft.setting("advertised.listeners") or (variable == "KAFKA_PORT" and not port.isdecimal()):
        return
    if not port.isdecimal():  # Kubernetes sets KAFKA_PORT=tcp://… if there is a service `kafka`
        port = DEFAULT_PORT
    if not draft.setting("listeners"):
        host = draft.variable("KAFKA_HOST_NAME")
        draft.put("listeners", f"PLAINTEXT://{host or '0.0.0.0'}:{port}", variable)
    host = draft.variable("KAFKA_ADVERTISED_HOST_NAME") or "localhost"
    port = draft.variable("KAFKA_ADVERTISED_PORT") or port
    draft.put("advertised.listeners", f"PLAINTEXT://{host}:{port}", variable)


def authorizer(draft: Draft, variable: str) -> None:
    """The authorizers of Kafka with ZooKeeper have a successor with the same ACLs."""
    if draft.environment[variable] in OLD_AUTHORIZERS:
        draft.put("authorizer.class.name", AUTHORIZER, variable)
        draft.notes.append(f"{variable}: {AUTHORIZER} is used, the successor of this class")


def command(instead: str) -> Effect:
    """A command of a shell whose output is put into the variables."""

    def effect(draft: Draft, variable: str) -> None:
        placeholder = "_{" + variable + "}"
        using = [name for name, text in draft.environment.items() if placeholder in text]
        if using:
            raise VariableError(
                f"{variable} is not run: write its output into {', '.join(using)} in place of"
                f" {placeholder}"
            )
        if not draft.variable(instead):
            raise VariableError(f"{variable} is not run: set {instead} to its output")

    return effect


# -- the table ------------------------------------------------------------------------------------

KAFKAS = "apache, confluent"
TABLE = (
    Row(KAFKAS, "KAFKA_OPTS", read_together),
    Row(KAFKAS, "KAFKA_SSL_KEYSTORE_FILENAME", secret_file("ssl.keystore.location")),
    Row(KAFKAS, "KAFKA_SSL_KEYSTORE_CREDENTIALS", secret_in_file("ssl.keystore.password")),
    Row(KAFKAS, "KAFKA_SSL_KEY_CREDENTIALS", secret_in_file("ssl.key.password")),
    Row(KAFKAS, "KAFKA_SSL_TRUSTSTORE_FILENAME", secret_file("ssl.truststore.location")),
    Row(KAFKAS, "KAFKA_SSL_TRUSTSTORE_CREDENTIALS", secret_in_file("ssl.truststore.password")),
    Row(KAFKAS, "KAFKA_AUTHORIZER_CLASS_NAME", authorizer),
    Row("bitnami", "KAFKA_CFG_AUTHORIZER_CLASS_NAME", authorizer),
    *(Row("bitnami", f"KAFKA_{name}", old_name) for name in OLD_NAMES),
    Row("bitnami", "KAFKA_LOGS_DIRS", property_named("log.dirs")),
    Row("bitnami", "KAFKA_SEGMENT_BYTES", property_named("log.segment.bytes")),
    Row("bitnami", "KAFKA_MAX_MESSAGE_BYTES", property_named("message.max.bytes")),
    Row("bitnami", "KAFKA_CLIENT_USERS", read_together),
    Row("bitnami", "KAFKA_CLIENT_PASSWORDS", read_together),
    Row("bitnami", "KAFKA_BROKER_USER", read_together),
    Row("bitnami", "KAFKA_BROKER_PASSWORD", read_together),
    Row("bitnami", "KAFKA_INTER_BROKER_USER", read_together),
    Row("bitnami", "KAFKA_INTER_BROKER_PASSWORD", read_together),
    Row("bitnami", "KAFKA_TLS_TYPE", read_together),
    Row("bitnami", "KAFKA_TLS_CLIENT_AUTH", read_together),
    Row("bitnami", "KAFKA_TLS_TRUSTSTORE_FILE", read_together),
    Row("bitnami", "KAFKA_CERTIFICATE_PASSWORD", read_together),
    Row("bitnami", "KAFKA_CONTROLLER_USER", no_effect),
    Row("bitnami", "KAFKA_CONTROLLER_PASSWORD", no_effect),
    Row("bitnami", "KAFKA_CLIENT_LISTENER_NAME", no_effect),
    Row("bitnami", "KAFKA_CLIENT_LISTENER", no_effect),
    Row("bitnami", "KAFKA_ENABLE_KRAFT", no_effect),
    Row("bitnami", "KAFKA_SKIP_KRAFT_STORAGE_INIT", no_effect),
    Row("bitnami", "KAFKA_KRAFT_VERSION", no_effect),
    Row("bitnami", "KAFKA_INITIAL_CONTROLLERS", no_effect),
    Row("bitnami", "KAFKA_ZOOKEEPER_PROTOCOL", no_effect),
    Row("bitnami", "KAFKA_ZOOKEEPER_USER", no_effect),
    Row("bitnami", "KAFKA_ZOOKEEPER_PASSWORD", no_effect),
    Row("bitnami", "KAFKA_ZOOKEEPER_CONNECT_TIMEOUT_MS", no_effect),
    Row("bitnami", "KAFKA_NODE_ID_COMMAND", command("KAFKA_CFG_NODE_ID")),
    Row("bitnami", "KAFKA_BROKER_ID_COMMAND", command("KAFKA_CFG_BROKER_ID")),
    Row("bitnami", "KAFKA_MOUNTED_CONF_DIR", not_served("mount the file at /etc/odradek")),
    Row("wurstmeister", "KAFKA_CREATE_TOPICS", topics),
    Row("wurstmeister", "KAFKA_CREATE_TOPICS_SEPARATOR", read_together),
    Row("debezium", "CREATE_TOPICS", topics),
    Row("wurstmeister", "KAFKA_ADVERTISED_HOST_NAME", old_address),
    Row("wurstmeister", "KAFKA_ADVERTISED_PORT", old_address),
    Row("wurstmeister", "KAFKA_HOST_NAME", old_address),
    Row("wurstmeister", "KAFKA_PORT", old_address),
    Row("wurstmeister", "HOSTNAME_COMMAND", command("KAFKA_ADVERTISED_HOST_NAME")),
    Row("wurstmeister", "PORT_COMMAND", command("KAFKA_ADVERTISED_PORT")),
    Row("wurstmeister", "RACK_COMMAND", command("KAFKA_BROKER_RACK")),
    Row("wurstmeister", "BROKER_ID_COMMAND", command("KAFKA_BROKER_ID")),
    Row("wurstmeister", "CUSTOM_INIT_SCRIPT", not_served("the image runs no scripts of its users")),
)


def read_values_in_files(draft: Draft) -> None:
    """Replace each of bitnami's variables X_FILE by X with what is in the file."""
    for name in IN_FILES:
        variable = f"{name}_FILE"
        if draft.variable(variable):
            path = Path(draft.environment.pop(variable))
            draft.environment[name] = _read(path, variable).rstrip("\n")


def apply_table(draft: Draft) -> None:
    """Apply the rows whose variable is set, then what several variables say together."""
    for row in TABLE:
        if draft.variable(row.variable):
            row.effect(draft, row.variable)
    _set_tls(draft)
    _set_logins(draft)


# -- bitnami's TLS --------------------------------------------------------------------------------


def _set_tls(draft: Draft) -> None:
    """The stores of bitnami's TLS listeners, which are found by their names."""
    listeners = draft.listeners("SSL", "SASL_SSL")
    has_store = any(draft.setting(f"ssl.keystore.{name}") for name in ("location", "key"))
    if not draft.is_bitnami or not listeners or has_store:
        return
    for listener in listeners:
        variable = f"KAFKA_TLS_{listener}_CLIENT_AUTH"
        if draft.variable(variable):
            name = f"listener.name.{listener.lower()}.ssl.client.auth"
            draft.put(name, draft.environment[variable], variable)
    if "ssl.client.auth" not in draft.lines:
        client_auth = draft.variable("KAFKA_TLS_CLIENT_AUTH") or "required"
        draft.put("ssl.client.auth", client_auth, "KAFKA_TLS_CLIENT_AUTH")
    kind = draft.variable("KAFKA_TLS_TYPE").upper() or "JKS"
    for store in ("keystore", "truststore"):
        draft.put(f"ssl.{store}.type", kind, "KAFKA_TLS_TYPE")
    password, variable = draft.variable("KAFKA_CERTIFICATE_PASSWORD"), "KAFKA_CERTIFICATE_PASSWORD"
    if password:
        draft.put("ssl.key.password", password, variable)
    trusted = draft.variable("KAFKA_TLS_TRUSTSTORE_FILE")
    if kind == "PEM":
        for name, file in (("key", "key"), ("certificate.chain", "pem")):
            text = _read(_certificate(f"kafka.keystore.{file}"), "KAFKA_TLS_TYPE")
            draft.put(f"ssl.keystore.{name}", text, "KAFKA_TLS_TYPE")
        path = Path(trusted) if trusted else _certificate("kafka.truststore.pem")
        variable = "KAFKA_TLS_TRUSTSTORE_FILE"
        draft.put("ssl.truststore.certificates", _read(path, variable), variable)
        return
    draft.put("ssl.keystore.location", str(_certificate("kafka.keystore.jks")), "KAFKA_TLS_TYPE")
    path = Path(trusted) if trusted else _certificate("kafka.truststore.jks")
    draft.put("ssl.truststore.location", str(path), "KAFKA_TLS_TRUSTSTORE_FILE")
    if password:
        for store in ("keystore", "truststore"):
            draft.put(f"ssl.{store}.password", password, variable)


def _certificate(name: str) -> Path:
    """The path of a file of this name. Raises VariableError."""
    places = [directory / "certs" / name for directory in BITNAMI_CONFIGS]
    for path in places:
        if path.exists():
            return path
    raise VariableError(
        f"a TLS listener needs {' or '.join(map(str, places))}: mount it there, or set"
        " KAFKA_CFG_SSL_KEYSTORE_LOCATION and the variables beside it"
    )


# -- logins ---------------------------------------------------------------------------------------


def _set_logins(draft: Draft) -> None:
    """JAAS lines for the SASL listeners that have none, and SCRAM users for a new directory."""
    listeners = draft.listeners("SASL_PLAINTEXT", "SASL_SSL")
    sections = _sections(draft) if listeners else {}
    clients = _clients(draft)
    enabled = "sasl.enabled.mechanisms"
    if listeners and (draft.is_bitnami or clients) and not draft.setting(enabled):
        draft.put(enabled, BITNAMI_MECHANISMS, "KAFKA_CLIENT_USERS")
    mechanisms_of_all = []
    for listener in listeners:
        prefix = f"listener.name.{listener.lower()}."
        written = draft.setting(prefix + enabled) or draft.setting(enabled)
        mechanisms = [name.strip() for name in written.split(",") if name.strip() in LOGIN_MODULES]
        mechanisms_of_all += mechanisms
        users = clients | _inter_broker_user(draft, listener)
        for mechanism in mechanisms:
            name = f"{prefix}{mechanism.lower()}.sasl.jaas.config"
            if draft.setting(name):
                continue
            if sections:
                draft.put(name, _of_section(sections, listener, mechanism), "KAFKA_OPTS")
            elif users:
                options = {f"user_{user}": password for user, password in users.items()}
                options = options if mechanism == PLAIN else {}
                draft.put(name, _jaas(LOGIN_MODULES[mechanism], options), "KAFKA_CLIENT_USERS")
            elif draft.is_bitnami:
                raise VariableError(
                    f"the listener {listener} needs a login, and nobody could log in: set"
                    " KAFKA_CLIENT_USERS and KAFKA_CLIENT_PASSWORDS"
                )
    scram_users = dict(clients)
    for listener in listeners:
        scram_users |= _inter_broker_user(draft, listener)
    draft.users += [
        f"{mechanism}=[name={user},password={password}]"
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        if mechanism in mechanisms_of_all
        for user, password in scram_users.items()
    ]


def _clients(draft: Draft) -> dict[str, str]:
    """The passwords of KAFKA_CLIENT_USERS, by name. Raises VariableError."""
    users, passwords = (
        re.split(r"[,;\s]+", (draft.variable(old) or draft.variable(new)).strip())
        for old, new in (
            ("KAFKA_BROKER_USER", "KAFKA_CLIENT_USERS"),
            ("KAFKA_BROKER_PASSWORD", "KAFKA_CLIENT_PASSWORDS"),
        )
    )
    users, passwords = list(filter(None, users)), list(filter(None, passwords))
    if len(users) != len(passwords):
        raise VariableError(
            f"KAFKA_CLIENT_USERS has {len(users)} names, and KAFKA_CLIENT_PASSWORDS"
            f" {len(passwords)} passwords: each user needs one"
        )
    return dict(zip(users, passwords, strict=True))


def _inter_broker_user(draft: Draft, listener: str) -> dict[str, str]:
    """The user that logs in at the brokers' own listener, with the password."""
    password = draft.variable("KAFKA_INTER_BROKER_PASSWORD")
    if not password or draft.setting("inter.broker.listener.name").upper() != listener:
        return {}
    return {draft.variable("KAFKA_INTER_BROKER_USER") or "user": password}


def _sections(draft: Draft) -> Mapping[str, Sequence[tuple[str, Mapping[str, str]]]]:
    """The login modules of each section of the JAAS file, with their options, if there is a file.

    Bitnami's image finds a kafka_jaas.conf in its directory of configurations.
    """
    hit = _JAAS_FILE.search(draft.variable("KAFKA_OPTS"))
    paths = [Path(hit[1])] if hit else [each / "kafka_jaas.conf" for each in BITNAMI_CONFIGS]
    path = next((path for path in paths if hit or path.is_file()), None)
    if path is None:
        return {}
    from odradek.config.errors import ConfigError
    from odradek.config.jaas import parse_jaas_file

    try:
        return parse_jaas_file(str(path), _read(path, "KAFKA_OPTS"))
    except ConfigError as error:
        raise VariableError(f"KAFKA_OPTS: {error}") from None


def _of_section(
    sections: Mapping[str, Sequence[tuple[str, Mapping[str, str]]]],
    listener: str,
    mechanism: str,
) -> str:
    """The JAAS line of a mechanism. Raises VariableError. Kafka: JaasContext.loadServerContext."""
    names = (f"{listener.lower()}.KafkaServer", "KafkaServer")
    entries = next((sections[name] for name in names if name in sections), ())
    for module, options in entries:
        if module == LOGIN_MODULES[mechanism]:
            return _jaas(module, options)
    raise VariableError(
        f"KAFKA_OPTS: {mechanism} is enabled, and the JAAS file has no {LOGIN_MODULES[mechanism]}"
        f" in a section {' or '.join(names)}: add it, or set KAFKA_SASL_ENABLED_MECHANISMS"
    )


def _jaas(module: str, options: Mapping[str, str]) -> str:
    return " ".join([module, "required", *_options(options)]) + ";"


def _options(options: Mapping[str, str]) -> Iterator[str]:
    for name, value in options.items():
        quoted = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        yield f'"{name}"="{quoted}"'


def _read(path: Path, variable: str) -> str:
    """The text of a file. Raises VariableError."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise VariableError(f"{variable}: {path} cannot be read: {why}") from None
