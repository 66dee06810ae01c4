#!/usr/local/bin/python
"""The commands of Kafka's images that compose files call, in health checks and to make topics.

The image has a link for each name: `kafka-topics`, `/opt/kafka/bin/kafka-topics.sh` and so on.
What a command prints, and its exit code, are those of Kafka's. They have the options that compose
files use. For all else there are Kafka's own commands, and `odradek` (docs/docker.md).

A health check starts a process every few seconds. So each function imports what only it needs.

    kafka-topics                 --list, --create, --describe, --alter --partitions, --delete
    kafka-configs                --alter and --describe for topics and brokers, users of SCRAM
    kafka-broker-api-versions    whether the broker answers, and what it serves
    kafka-cluster cluster-id     the id of the cluster
    kafka-storage random-uuid    an id for a new cluster
    cub kafka-ready, zk-ready    wait until so many brokers are there, or a port is open
    nc -z HOST PORT              whether a port is open; without -z it is busybox's

    kafka_commands.py --install ROOT      make the links in the root directory of the image
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from getopt import GetoptError, gnu_getopt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from odradek.tools.client.wire import WireCluster

# Kafka's tools try for so long to reach a broker (default.api.timeout.ms).
LIMIT_S = 60.0
CONNECT_S = 3.0
PAUSE_S = 0.25
EXIT_FAILED = 1
EXIT_NOT_THERE = 127
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
BUSYBOX = "/bin/busybox"
TOPIC, BROKER = 2, 4  # types of resources (ConfigResource.Type)
SET, DELETE = 0, 1  # operations of IncrementalAlterConfigs
# Errors of odradek's clients advise options of `odradek`. Here those have other names.
KAFKA_OPTIONS = {"--bootstrap": "--bootstrap-server", "--config": "--command-config"}
CUB_OPTIONS = {"--bootstrap": "-b", "--config": "-c"}
DEFAULT_CONFIG = 5  # the source of a setting that nobody has set

HERE = Path("/opt/odradek/docker")
# Where the images of Apache, Bitnami and Confluent have the commands. /bin is /usr/bin.
DIRECTORIES = ("/usr/local/bin", "/usr/bin", "/opt/kafka/bin", "/opt/bitnami/kafka/bin")


class FailedError(Exception):
    """A command has failed; the message says why."""


class NotReadyError(FailedError):
    """No broker answers yet."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


# -- the broker ------------------------------------------------------------------------------------


@contextmanager
def connected(
    servers: str,
    file: Path | None,
    limit_s: float = LIMIT_S,
    options: Mapping[str, str] = KAFKA_OPTIONS,
) -> Iterator[WireCluster]:
    """A client of a broker, as soon as one answers. Raises FailedError for what it cannot do.

    Something may accept connections and close them before a broker serves: the broker itself, or
    Docker at a published port. `options` are the command's names of the options of `odradek`.
    """
    from odradek.tools.client.client_config import client_settings
    from odradek.tools.client.failure import CommandError, NoAnswerError

    try:
        with closing(connection_within(limit_s, client_settings(servers, file))) as cluster:
            yield cluster
    except CommandError as error:
        pattern = rf"({'|'.join(options)})(?![\w-])"
        kind = NotReadyError if isinstance(error, NoAnswerError) else FailedError
        raise kind(re.sub(pattern, lambda old: options[old[0]], str(error))) from None


def connection_within(limit_s: float, settings: Mapping[str, str]) -> WireCluster:
    """Connect, and try again while no broker answers. Raises CommandError."""
    from odradek.tools.client.failure import NoAnswerError
    from odradek.tools.client.wire import WireCluster

    deadline = time.monotonic() + limit_s
    while True:
        try:
            return WireCluster(settings)
        except NoAnswerError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(PAUSE_S)


def wait_for_port(places: Sequence[tuple[str, int]], limit_s: float) -> None:
    """Wait until somebody listens at one of the addresses. Raises FailedError."""
    deadline = time.monotonic() + limit_s
    while True:
        for place in places:
            try:
                socket.create_connection(place, CONNECT_S).close()
            except (OSError, UnicodeError) as error:  # the latter: no name of a host
                refused = error
            else:
                return
        if time.monotonic() >= deadline:
            names = ", ".join(f"{host}:{port}" for host, port in places)
            raise FailedError(f"nobody listens at {names}: {refused}")
        time.sleep(PAUSE_S)


def check(error_code: int, message: str | None) -> None:
    """Raise FailedError if the broker has refused."""
    from odradek.protocol.errors import ErrorCode

    if error_code:
        raise FailedError(message or ErrorCode(error_code).name)


class Options(ArgumentParser):
    """The options of a command that talks to a broker.

    `config_names` are further names of the option --command-config.
    """

    def __init__(self, name: str, *config_names: str) -> None:
        super().__init__(name, allow_abbrev=False)
        servers = {"dest": "servers", "metavar": "HOST:PORT", "required": True}
        self.add_argument("-b", "--bootstrap-server", **servers)
        config = ("--command-config", *config_names)
        self.add_argument(*config, dest="file", type=Path, metavar="FILE")

    def parse(self, words: Sequence[str]) -> Namespace:
        """Read options as Kafka's tools do: `-list` is `--list`, and words beside are ignored."""
        asked, rest = self.parse_known_args([re.sub("^-(?=[a-z]{2})", "--", one) for one in words])
        if unknown := [word for word in rest if word.startswith("-")]:
            self.error(f"unknown option {', '.join(unknown)}")
        return asked

    def error(self, message: str) -> NoReturn:
        """Raise FailedError: Kafka's tools end with exit code 1, argparse's with 2."""
        raise FailedError(f"{message}; the image of odradek has a part of {self.prog} only")


# -- kafka-topics ----------------------------------------------------------------------------------


def topics(words: Sequence[str]) -> None:
    if any(word.partition("=")[0] == "--zookeeper" for word in words):
        raise FailedError("there is no ZooKeeper; use --bootstrap-server HOST:PORT")
    options = Options("kafka-topics")
    action = options.add_mutually_exclusive_group(required=True)
    for name in ("list", "create", "describe", "alter", "delete"):
        action.add_argument(f"--{name}", action="store_const", const=name, dest="action")
    options.add_argument("--topic")
    options.add_argument("--partitions", type=int, default=-1)
    options.add_argument("--replication-factor", type=int, default=-1)
    options.add_argument("--config", action="append", default=[], metavar="NAME=VALUE")
    options.add_argument("--if-not-exists", action="store_true")
    options.add_argument("--if-exists", action="store_true")
    options.add_argument("--exclude-internal", action="store_true")
    problem = options.add_mutually_exclusive_group()
    for name in PARTITIONS_WITH_PROBLEMS:
        problem.add_argument(f"--{name}", action="store_const", const=name, dest="problem")
    asked = options.parse(words)
    if asked.topic is None and asked.action not in ("list", "describe"):
        raise FailedError(f"--{asked.action} needs --topic")
    with connected(asked.servers, asked.file) as cluster:
        TOPIC_ACTIONS[asked.action](cluster, asked)


def list_topics(cluster: WireCluster, asked: Namespace) -> None:
    for topic in named(cluster, asked.topic):
        if not (asked.exclude_internal and topic.is_internal):
            say(topic.name)


def create_topic(cluster: WireCluster, asked: Namespace) -> None:
    from odradek.protocol.errors import ErrorCode
    from odradek.protocol.messages.create_topics import (
        CreateTopicsConfig,
        CreateTopicsRequest,
        CreateTopicsResponse,
        CreateTopicsTopic,
    )

    topic = CreateTopicsTopic(
        name=asked.topic,
        num_partitions=asked.partitions,
        replication_factor=asked.replication_factor,
        assignments=[],
        configs=[
            CreateTopicsConfig(name=name, value=value)
            for name, value in (pair_of(text) for text in asked.config)
        ],
    )
    request = CreateTopicsRequest(topics=[topic])
    (result,) = cluster.bootstrap.ask(request, CreateTopicsResponse).topics
    if asked.if_not_exists and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        return
    check(result.error_code, result.error_message)
    say(f"Created topic {asked.topic}.")


def describe_topics(cluster: WireCluster, asked: Namespace) -> None:
    from odradek.protocol.primitives import uuid_text

    found = existing(cluster, asked)
    names = [] if asked.problem else [topic.name for topic in found]
    settings = settings_of(cluster, TOPIC, names)
    partitions_of_topics = partitions_of(cluster, found)
    for topic in found:
        partitions = sorted(partitions_of_topics[topic.name], key=lambda each: each.partition_index)
        if asked.problem:
            has_problem = PARTITIONS_WITH_PROBLEMS[asked.problem]
            describe_partitions(topic, filter(has_problem, partitions))
            continue
        configs = [
            f"{each.name}={java_text(each.value)}"
            for each in settings[topic.name]
            if each.config_source != DEFAULT_CONFIG
        ]
        say(
            f"Topic: {topic.name}\tTopicId: {uuid_text(topic.topic_id)}"
            f"\tPartitionCount: {len(partitions)}"
            f"\tReplicationFactor: {len(partitions[0].replica_nodes)}"
            f"\tConfigs: {','.join(configs)}"
        )
        describe_partitions(topic, partitions)


def partitions_of(cluster: WireCluster, topics: Iterable[Any]) -> dict[str, list[Any]]:
    """The partitions of each topic, by its name.

    Those of DescribeTopicPartitions have eligible leaders (KIP-966). If the broker lacks that API,
    they are those of Metadata, which have none.
    """
    from odradek.protocol.api_keys import ApiKey
    from odradek.protocol.messages.describe_topic_partitions import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsRequestTopic,
        DescribeTopicPartitionsResponse,
    )

    if ApiKey.DESCRIBE_TOPIC_PARTITIONS not in cluster.bootstrap.versions:
        return {topic.name: topic.partitions for topic in topics}
    found: dict[str, list[Any]] = {topic.name: [] for topic in topics}
    wanted = [DescribeTopicPartitionsRequestTopic(name=name) for name in found]
    cursor = None
    while wanted:  # not if there are none: a request without names asks for all topics
        request = DescribeTopicPartitionsRequest(topics=wanted, cursor=cursor)
        page = cluster.bootstrap.ask(request, DescribeTopicPartitionsResponse)
        for topic in page.topics:
            check(topic.error_code, None)
            found[topic.name] += topic.partitions
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def describe_partitions(topic: Any, partitions: Iterable[Any]) -> None:
    for each in partitions:
        leader = "none" if each.leader_id < 0 else each.leader_id
        replicas, isr, eligible, last_known = (
            "N/A" if nodes is None else ",".join(map(str, nodes))
            for nodes in (
                each.replica_nodes,
                each.isr_nodes,
                getattr(each, "eligible_leader_replicas", None),
                getattr(each, "last_known_elr", None),
            )
        )
        say(
            f"\tTopic: {topic.name}\tPartition: {each.partition_index}\tLeader: {leader}"
            f"\tReplicas: {replicas}\tIsr: {isr}\tElr: {eligible}\tLastKnownElr: {last_known}"
        )


def alter_topic(cluster: WireCluster, asked: Namespace) -> None:
    from odradek.protocol.messages.create_partitions import (
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        CreatePartitionsTopic,
    )

    wanted = [
        CreatePartitionsTopic(name=each.name, count=asked.partitions, assignments=None)
        for each in existing(cluster, asked)
    ]
    request = CreatePartitionsRequest(topics=wanted, timeout_ms=60_000, validate_only=False)
    for result in cluster.bootstrap.ask(request, CreatePartitionsResponse).results:
        check(result.error_code, result.error_message)


def delete_topics(cluster: WireCluster, asked: Namespace) -> None:
    from odradek.protocol.messages.delete_topics import (
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        DeleteTopicsTopic,
    )
    from odradek.protocol.primitives import ZERO_UUID

    found = existing(cluster, asked)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsTopic(name=each.name, topic_id=ZERO_UUID) for each in found],
        topic_names=[each.name for each in found],
        timeout_ms=60_000,
    )
    for result in cluster.bootstrap.ask(request, DeleteTopicsResponse).responses:
        check(result.error_code, result.error_message)


def named(cluster: WireCluster, pattern: str | None) -> list[Any]:
    """The topics whose whole name matches a pattern, or one of several with commas between."""
    found = sorted(cluster.metadata().topics, key=lambda topic: topic.name)
    if pattern is None:
        return found
    try:
        compiled = re.compile(pattern.strip("'\"").replace(",", "|").replace(" ", ""))
    except re.error as error:
        raise FailedError(f"{pattern!r} is no regular expression: {error}") from None
    return [topic for topic in found if compiled.fullmatch(topic.name)]


def existing(cluster: WireCluster, asked: Namespace) -> list[Any]:
    """The topics that --topic names; without it all. Raises FailedError if it names none."""
    found = named(cluster, asked.topic)
    if not found and asked.topic is not None and not asked.if_exists:
        raise FailedError(f"Topic '{asked.topic}' does not exist as expected")
    return found


# An option of --describe, and which partitions it shows.
PARTITIONS_WITH_PROBLEMS: Mapping[str, Callable[[Any], bool]] = {
    "unavailable-partitions": lambda partition: partition.leader_id < 0,
    "under-replicated-partitions": lambda partition: (
        len(partition.isr_nodes) < len(partition.replica_nodes)
    ),
}
TOPIC_ACTIONS: Mapping[str, Callable[[WireCluster, Namespace], None]] = {
    "list": list_topics,
    "create": create_topic,
    "describe": describe_topics,
    "alter": alter_topic,
    "delete": delete_topics,
}

# -- kafka-configs ---------------------------------------------------------------------------------


def configs(words: Sequence[str]) -> None:
    options = Options("kafka-configs")
    action = options.add_mutually_exclusive_group(required=True)
    for name in ("alter", "describe"):
        action.add_argument(f"--{name}", action="store_const", const=name, dest="action")
    options.add_argument("--add-config", default="")
    options.add_argument("--delete-config", default="")
    options.add_argument("--entity-type", choices=("topics", "brokers", "users"))
    options.add_argument("--entity-name", default="")
    options.add_argument("--entity-default", action="store_true")
    for kind in ("topic", "broker", "user"):
        options.add_argument(f"--{kind}")
    options.add_argument("--all", action="store_true")
    asked = options.parse(words)
    for kind in ("topic", "broker", "user"):
        if (name := getattr(asked, kind)) is not None:
            asked.entity_type, asked.entity_name = f"{kind}s", name
    needs_name = asked.action == "alter" and not asked.entity_default
    if asked.entity_type is None or (needs_name and not asked.entity_name):
        raise FailedError("--entity-type and --entity-name are needed")
    with connected(asked.servers, asked.file) as cluster:
        if asked.action == "alter":
            alter = alter_user if asked.entity_type == "users" else alter_configs
            alter(cluster, asked)
        elif asked.entity_type == "users":
            describe_users(cluster, asked)
        else:
            describe_configs(cluster, asked)


def alter_configs(cluster: WireCluster, asked: Namespace) -> None:
    from odradek.protocol.messages.incremental_alter_configs import (
        IncrementalAlterConfigsConfig,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResource,
        IncrementalAlterConfigsResponse,
    )

    changes = [
        IncrementalAlterConfigsConfig(name=name, config_operation=SET, value=value)
        for name, value in pairs_of(asked.add_config).items()
    ]
    changes += [
        IncrementalAlterConfigsConfig(name=name.strip(), config_operation=DELETE, value=None)
        for name in filter(None, asked.delete_config.split(","))
    ]
    resource = IncrementalAlterConfigsResource(
        resource_type=kind_of(asked), resource_name=asked.entity_name, configs=changes
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    for result in cluster.bootstrap.ask(request, IncrementalAlterConfigsResponse).responses:
        check(result.error_code, result.error_message)
    default = "" if asked.entity_name else "default "
    say(f"Completed updating {default}config for {entity(asked, asked.entity_name)}.")


def describe_configs(cluster: WireCluster, asked: Namespace) -> None:
    """The settings of one topic or broker, or of each. The name of the brokers' defaults is ""."""
    from odradek.broker.console.config_words import source_name

    kind = kind_of(asked)
    if asked.entity_name or asked.entity_default:
        names = [asked.entity_name]
    elif kind == TOPIC:
        names = [topic.name for topic in named(cluster, None)]
    else:
        names = [*(str(broker.node_id) for broker in cluster.metadata([]).brokers), ""]
    for name, settings in settings_of(cluster, kind, names).items():
        if name:
            say(f"{'All' if asked.all else 'Dynamic'} configs for {entity(asked, name)} are:")
        else:
            say(f"Default configs for {entity(asked, name)} are:")
        # DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG
        source = 1 if kind == TOPIC else 2 if name else 3
        for each in settings:
            if asked.all or each.config_source == source:
                synonyms = ", ".join(
                    f"{source_name(one.source)}:{one.name}={java_text(one.value)}"
                    for one in each.synonyms
                )
                say(
                    f"  {each.name}={java_text(each.value)}"
                    f" sensitive={str(each.is_sensitive).lower()} synonyms={{{synonyms}}}"
                )


def describe_users(cluster: WireCluster, asked: Namespace) -> None:
    """The credentials of SCRAM of a user, or of all."""
    from odradek.coordinator.metadata.scram_mechanisms import SCRAM_MECHANISMS
    from odradek.protocol.errors import ErrorCode
    from odradek.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
        DescribeUserScramCredentialsUser,
    )

    users = [DescribeUserScramCredentialsUser(name=asked.entity_name)]
    request = DescribeUserScramCredentialsRequest(users=users if asked.entity_name else None)
    answer = cluster.bootstrap.ask(request, DescribeUserScramCredentialsResponse)
    check(answer.error_code, answer.error_message)
    names = {number: name for name, number in SCRAM_MECHANISMS.items()}
    for user in answer.results:
        if user.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        check(user.error_code, user.error_message)
        has = [
            f"{names[one.mechanism]}=iterations={one.iterations}" for one in user.credential_infos
        ]
        say(f"SCRAM credential configs for user-principal '{user.user}' are {', '.join(has)}")


def alter_user(cluster: WireCluster, asked: Namespace) -> None:
    """Make or delete the credentials of a user of SCRAM."""
    from odradek.coordinator.metadata.scram_mechanisms import MIN_ITERATIONS, SCRAM_MECHANISMS
    from odradek.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsDeletion,
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
    )
    from odradek.tools.client.users import new_credential

    user = asked.entity_name
    added = {name: pairs_of(text) for name, text in pairs_of(asked.add_config).items()}
    deleted = [name.strip() for name in asked.delete_config.split(",") if name.strip()]
    is_complete = all(
        "password" in given and given.get("iterations", "0").isdecimal() for given in added.values()
    )
    if not is_complete or {*added, *deleted} - {*SCRAM_MECHANISMS}:
        raise FailedError(
            "kafka-configs of the image of odradek only makes and deletes SCRAM credentials of"
            " users: --alter --add-config 'SCRAM-SHA-512=[iterations=8192,password=…]'"
        )

    # Kafka refuses a request that changes two credentials of a user. So each has its own request.
    requests = []
    for name in deleted:
        deletion = AlterUserScramCredentialsDeletion(name=user, mechanism=SCRAM_MECHANISMS[name])
        requests.append(AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[]))
    for name, given in added.items():
        iterations = int(given.get("iterations", MIN_ITERATIONS))
        credential = new_credential(user, SCRAM_MECHANISMS[name], given["password"], iterations)
        requests.append(AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential]))
    for request in requests:
        for result in cluster.bootstrap.ask(request, AlterUserScramCredentialsResponse).results:
            check(result.error_code, result.error_message)
    say(f"Completed updating config for {entity(asked, user)}.")


def settings_of(cluster: WireCluster, kind: int, names: Iterable[str]) -> dict[str, list[Any]]:
    """The settings of each of these topics or brokers, sorted by their names."""
    from odradek.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResponse,
    )

    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for name in names
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    results = cluster.bootstrap.ask(request, DescribeConfigsResponse).results
    for result in results:
        check(result.error_code, result.error_message)
    return {
        result.resource_name: sorted(result.configs, key=lambda config: config.name)
        for result in results
    }


def java_text(value: str | None) -> str:
    """How Java prints a text that may be missing."""
    return "null" if value is None else value


def kind_of(asked: Namespace) -> int:
    return TOPIC if asked.entity_type == "topics" else BROKER


def entity(asked: Namespace, name: str) -> str:
    """As Kafka's tools name it: `topic orders`, `brokers in the cluster`."""
    if not name:
        return f"{asked.entity_type} in the cluster"
    return f"{asked.entity_type.removesuffix('s')} {name}"


def pairs_of(text: str) -> dict[str, str]:
    """`a=1,b=[c,d]` -> {"a": "1", "b": "c,d"}. Raises FailedError."""
    found = re.findall(r"[^,\[]*(?:\[[^\]]*\])?[^,\[]*", text)
    pairs = dict(pair_of(part) for part in found if part.strip())
    return {name: value.removeprefix("[").removesuffix("]") for name, value in pairs.items()}


def pair_of(text: str) -> tuple[str, str]:
    """`a=1` -> ("a", "1"). Raises FailedError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise FailedError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


# -- the others ------------------------------------------------------------------------------------


def api_versions(words: Sequence[str]) -> None:
    from odradek.protocol.api_keys import ApiKey

    asked = Options("kafka-broker-api-versions").parse(words)
    with connected(asked.servers, asked.file) as cluster:
        lines = [
            f"\t{ApiKey(key).display_name}({key}): {lowest} to {highest} [usable: {highest}]"
            for key, (lowest, highest) in cluster.bootstrap.versions.items()
            if key in set(ApiKey)
        ]
        for broker in cluster.metadata([]).brokers:  # all nodes of odradek serve the same versions
            rack = java_text(broker.rack)
            node = (
                f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {rack} isFenced: false)"
            )
            say(f"{node} -> (")
            say(",\n".join(lines) + "\n)")


def cluster(words: Sequence[str]) -> None:
    if words[:1] != ["cluster-id"]:
        raise FailedError("kafka-cluster of the image of odradek has cluster-id only")
    asked = Options("kafka-cluster", "-c", "--config").parse(words[1:])
    with connected(asked.servers, asked.file) as found:
        say(f"Cluster ID: {found.metadata([]).cluster_id}")


def storage(words: Sequence[str]) -> None:
    from odradek.protocol.primitives import random_uuid, uuid_text

    if [*words] != ["random-uuid"]:
        raise FailedError(
            "kafka-storage of the image of odradek has random-uuid only; a new data directory is"
            " formatted when the broker starts, or by `odradek format`"
        )
    say(uuid_text(random_uuid()))


def cub(words: Sequence[str]) -> None:
    """Confluent's utility: wait until a service is ready."""
    try:
        given, rest = gnu_getopt([*words], "b:c:s:", ["bootstrap_broker_list=", "config="])
    except GetoptError as error:
        raise FailedError(f"cub: {error}") from None
    # By the first letter, which is that of the short and of the long name.
    options = {name.lstrip("-")[0]: value for name, value in given}
    match rest:
        case ["zk-ready", places, limit] if limit.isdigit():
            wait_for_port([address_of(place) for place in places.split(",")], int(limit))
        case ["kafka-ready", count, limit] if "b" in options and (count + limit).isdigit():
            file = Path(options["c"]) if "c" in options else None
            wait_for_brokers(options["b"], file, int(count), int(limit))
        case _:
            raise FailedError(
                "cub of the image of odradek has: cub kafka-ready -b HOST:PORT [-c FILE] COUNT"
                " SECONDS, and: cub zk-ready HOST:PORT SECONDS"
            )


def wait_for_brokers(servers: str, config: Path | None, count: int, limit_s: float) -> None:
    """Wait until so many brokers are there. Raises FailedError."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            with connected(servers, config, 0, CUB_OPTIONS) as cluster:
                found = len(cluster.metadata([]).brokers)
            if found >= count:
                return
            failure = FailedError(f"expected {count} brokers, found {found}")
        except NotReadyError as error:
            failure = error
        if time.monotonic() >= deadline:
            raise failure
        time.sleep(PAUSE_S)


def nc(words: Sequence[str]) -> None:
    """Netcat; busybox's knows no -z."""
    try:
        given, rest = gnu_getopt([*words], "zvnw:")
    except GetoptError:
        given, rest = [], []
    options = dict(given)
    if "-z" not in options:
        os.execv(BUSYBOX, ["nc", *words])
    if len(rest) != 2:
        raise FailedError("usage: nc -z [-v] [-w SECONDS] HOST PORT")
    host, port = rest
    try:
        socket.create_connection((host, int(port)), float(options.get("-w", CONNECT_S))).close()
    except (OSError, ValueError) as error:
        raise FailedError(f"nc: connect to {host} port {port} (tcp) failed: {error}") from None
    if "-v" in options:
        sys.stderr.write(f"Connection to {host} {port} port [tcp/*] succeeded!\n")


def address_of(text: str) -> tuple[str, int]:
    """`host:2181/chroot` -> ("host", 2181). Raises FailedError."""
    host, _, port = text.partition("/")[0].rpartition(":")
    if not port.isdigit():
        raise FailedError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


COMMANDS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "kafka-topics": topics,
    "kafka-configs": configs,
    "kafka-broker-api-versions": api_versions,
    "kafka-cluster": cluster,
    "kafka-storage": storage,
    "cub": cub,
    "nc": nc,
}
# Commands that the image lacks, but that are often called. Their links say how to call Kafka's own.
ABSENT = ("kafka-acls", "kafka-console-consumer", "kafka-console-producer", "kafka-consumer-groups")
# What Kafka's tools print before the reason.
FAILED = {"kafka-topics": "Error while executing topic command : "}


def links() -> Iterator[tuple[Path, Path]]:
    """Each link in the image: its path, and the script that it is a link to.

    Links to entrypoint.py are named like the programs that start the broker in other images.
    """
    from entrypoint import RUN

    for directory in DIRECTORIES:
        for name in (*COMMANDS, *ABSENT):
            yield Path(directory, name), HERE / "kafka_commands.py"
            if name.startswith("kafka-"):
                yield Path(directory, f"{name}.sh"), HERE / "kafka_commands.py"
    for path in RUN:
        yield Path(path), HERE / "entrypoint.py"


def install(root: Path) -> None:
    """Make the links."""
    for path, target in links():
        place = root / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


def main(program: str, words: Sequence[str]) -> int:
    """Run the command of that name. Returns the exit code."""
    if words[:1] == ["--install"]:
        install(Path(words[1]))
        return 0
    name = Path(program).name.removesuffix(".sh")
    command = COMMANDS.get(name)
    if command is None:
        sys.stderr.write(
            f"{name}: the image of odradek has only {', '.join(COMMANDS)}; call it in a container"
            " of Kafka's image, with --bootstrap-server\n"
        )
        return EXIT_NOT_THERE
    from odradek.tools.standard_streams import (
        OutputError,
        open_closed_streams,
        reader_may_end,
        watch_streams,
    )

    open_closed_streams()
    watch_streams()
    # The first process of a container ignores a signal that it has no handler for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        with reader_may_end():
            if "--version" in words:
                print_version()
            else:
                command(words)
    except (FailedError, OutputError) as error:
        sys.stderr.write(f"{FAILED.get(name, '')}{error}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def print_version() -> None:
    from importlib.metadata import version

    say(f"odradek {version('odradek')}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[0], sys.argv[1:]))
