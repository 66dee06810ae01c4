"""Connects as a client does: what is advertised, whether it can be reached, and what is served."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC
from odradek.tools.client.failure import CommandError
from odradek.tools.client.listener_probe import find_mismatch
from odradek.tools.client.security_protocol import uses_tls
from odradek.tools.client.servers import parse_servers
from odradek.tools.client.wire import WireCluster
from odradek.tools.tables import size

from .findings import Finding, ok, problem, warning

NOT_REACHED = "start the broker (odradek serve), or correct --bootstrap"
CONNECT_S = 3.0
CLOCK_WARNING_MS = 2_000
CLOCK_PROBLEM_MS = 60_000
FREE_WARNING_BYTES = 1 << 30
FREE_PROBLEM_BYTES = 64 << 20  # the default of odradek.min.free.bytes
_FEATURES = ("metadata.version", "group.version", "streams.version", "transaction.version")


def check_as_client(settings: Mapping[str, str]) -> Iterator[Finding]:
    """All checks that a client can make, up to one whose failure makes the others pointless.

    A check has failed if its finding has advice.
    """
    try:
        _, host, port = parse_servers(settings["bootstrap.servers"])[0]
    except CommandError as error:
        yield problem(str(error), "give --bootstrap HOST:PORT")
        return
    yield (reached := _check_reached(host, port, NOT_REACHED))
    if reached.advice:
        return
    yield (spoken := _check_encryption(host, port, settings))
    if spoken.advice:
        return
    try:
        cluster = WireCluster(settings)
    except CommandError as error:
        yield problem(str(error), "check the settings in the file of --config")
        return
    try:
        yield from _check_cluster(cluster)
    except CommandError as error:
        yield problem(str(error), "look into the broker's log")
    finally:
        cluster.close()


def _check_reached(host: str, port: int, advice: str) -> Finding:
    """Whether the name has an address, and something listens there."""
    try:
        addresses = sorted({str(each[4][0]) for each in socket.getaddrinfo(host, port)})
    except UnicodeError:
        return problem(f"{host} is no name of a host", advice)
    except OSError as error:
        return problem(f"the name {host} has no address here: {error.strerror}", advice)
    try:
        with socket.create_connection((host, port), CONNECT_S) as found:
            return ok(f"{host}:{port} accepts connections ({found.getpeername()[0]})")
    except TimeoutError:
        text = f"{host}:{port} ({', '.join(addresses)}) does not answer"
        return problem(f"{text}: there is a firewall, or it is on another network", advice)
    except OSError as error:
        return problem(f"{host}:{port} ({', '.join(addresses)}): {error.strerror}", advice)


def _check_encryption(host: str, port: int, settings: Mapping[str, str]) -> Finding:
    """Whether the port speaks what the client does: TLS, or Kafka's protocol in plain."""
    is_encrypted = uses_tls(settings)
    mismatch = find_mismatch(host, port, uses_tls=is_encrypted)
    if mismatch is not None:
        return problem(mismatch.text, mismatch.advice)
    return ok(f"{host}:{port} speaks Kafka's protocol{' over TLS' if is_encrypted else ''}")


# -- a broker that answers ------------------------------------------------------------------------


def _check_cluster(cluster: WireCluster) -> Iterator[Finding]:
    yield from _check_versions(cluster)
    yield from _check_advertised(cluster)
    yield from _check_clock(cluster)
    yield from _check_disks(cluster)


def _check_versions(cluster: WireCluster) -> Iterator[Finding]:
    request = ApiVersionsRequest(client_software_name="odradek", client_software_version="1")
    answer = cluster.bootstrap.ask(request, ApiVersionsResponse, 3)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    known = ", ".join(f"{name} {levels[name]}" for name in _FEATURES if name in levels)
    yield ok(f"{len(answer.api_keys)} APIs are served" + (f"; {known}" if known else ""))
    for name, wanted, what in (
        ("group.version", 1, "consumers with group.protocol=consumer are refused"),
        ("streams.version", 1, "Kafka Streams with group.protocol=streams is refused"),
        ("transaction.version", 2, "transactions have no epochs of their own (KIP-890)"),
    ):
        level = levels.get(name, 0)
        if levels and level < wanted:
            advice = f"kafka-features.sh upgrade --feature {name}={wanted}, once all clients can"
            yield warning(f"{name} is {level}: {what}", advice)


def _check_advertised(cluster: WireCluster) -> Iterator[Finding]:
    metadata = cluster.metadata([])
    for broker in metadata.brokers:
        found = _check_reached(
            broker.host,
            broker.port,
            "set advertised.listeners in server.properties to an address that this client reaches",
        )
        text = f"clients are told {broker.host}:{broker.port} (node {broker.node_id})"
        if not found.advice:
            yield ok(f"{text}, which accepts connections")
            continue
        yield problem(f"{text}, but {found.text}", found.advice)


def _check_clock(cluster: WireCluster) -> Iterator[Finding]:
    """Compare the clocks: the leader of the metadata quorum says what time it is.

    Apache Kafka with ZooKeeper has none.
    """
    if ApiKey.DESCRIBE_QUORUM not in cluster.bootstrap.versions:
        return
    request = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name=CLUSTER_METADATA_TOPIC,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
            )
        ]
    )
    before_ms = time.time() * 1000
    answer = cluster.bootstrap.ask(request, DescribeQuorumResponse)
    after_ms = time.time() * 1000
    times = [
        voter.last_caught_up_timestamp
        for topic in answer.topics
        for partition in topic.partitions
        for voter in partition.current_voters
        if voter.replica_id == partition.leader_id
    ]
    if not times or times[0] < 0:
        return  # this client may not ask the broker, or the broker is too old
    ahead_ms = times[0] - min(max(times[0], before_ms), after_ms)
    advice = "set both clocks, for example by NTP"
    if abs(ahead_ms) < CLOCK_WARNING_MS:
        yield ok("the clocks of broker and client agree")
        return
    direction = "ahead of" if ahead_ms > 0 else "behind"
    text = f"the broker's clock is {abs(ahead_ms) / 1000:.0f} s {direction} the client's"
    if abs(ahead_ms) < CLOCK_PROBLEM_MS:
        yield warning(text, advice)
    else:
        yield problem(f"{text}: retention and timeouts will be wrong", advice)


def _check_disks(cluster: WireCluster) -> Iterator[Finding]:
    answer = cluster.bootstrap.ask(DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse)
    for each in answer.results:
        if each.error_code:
            yield problem(
                f"log directory {each.log_dir} is offline",
                "look into the broker's log; it comes back with a restart once the disk is sound",
            )
        elif 0 <= each.usable_bytes < FREE_WARNING_BYTES:
            is_full = each.usable_bytes < FREE_PROBLEM_BYTES
            yield (problem if is_full else warning)(
                f"log directory {each.log_dir} has {size(each.usable_bytes)} left of"
                f" {size(each.total_bytes)}" + (": records are refused" if is_full else ""),
                "delete topics, shorten retention.ms, or make room on the disk",
            )
        elif each.usable_bytes >= 0:
            yield ok(f"log directory {each.log_dir} has {size(each.usable_bytes)} left")
