"""Metrics of requests, topics, connections and the event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from odradek.broker.common.durations import Durations
from odradek.coordinator.runtime.steps import stepping

from .metric import Kind, Metric, Sample, counter
from .observed import Observed


def _requests(observed: Observed) -> Iterator[Sample]:
    for key, by_version in list(observed.traffic.requests.items()):
        for version, counts in sorted(by_version.items()):
            yield (key.display_name, str(version)), counts.count


def _times(observed: Observed) -> Iterator[Sample]:
    for key, by_version in list(observed.traffic.requests.items()):
        if by_version:
            durations = Durations()
            for counts in by_version.values():
                durations.merge(counts.answered)
            yield (key.display_name,), durations


def _by_topic(field: str) -> Callable[[Observed], Iterator[Sample]]:
    """Read a field of TopicTraffic: in total, and for each topic."""

    def read(observed: Observed) -> Iterator[Sample]:
        traffic = observed.traffic
        yield ("",), getattr(traffic.totals(observed.step), field)
        for name, counts in list(traffic.topics.items()):
            yield (name,), getattr(counts, field)

    return read


def _topic_counter(name: str, help_: str, field: str) -> Metric:
    name = f"kafka_server_brokertopicmetrics_{name}_total"
    return Metric(name, Kind.COUNTER, ("topic",), help_, _by_topic(field))


def _software(observed: Observed) -> Iterator[Sample]:
    counts: Counter[tuple[str, ...]] = Counter()
    for connection in stepping(observed.connections, observed.step):
        session = connection.session
        counts[*(session.software or ("unknown", "unknown")), session.listener.name] += 1
    yield from counts.items()


def _connections(observed: Observed) -> Iterator[Sample]:
    counts = Counter({item.name: 0 for item in observed.broker.config.open_listeners})
    connections = stepping(observed.connections, observed.step)
    counts.update(connection.session.listener.name for connection in connections)
    for name, count in counts.items():
        yield (name,), count


_SOCKET_SERVER = "kafka_server_socket_server_metrics"

TRAFFIC_METRICS: list[Metric] = [
    _topic_counter(
        "messagesin",
        "Records appended: also markers, and what coordinators write to internal topics.",
        "messages_in",
    ),
    _topic_counter("bytesin", "Bytes of the batches appended.", "bytes_in"),
    _topic_counter("bytesout", "Bytes of batches sent to consumers.", "bytes_out"),
    _topic_counter(
        "failedproducerequests", "Partitions in Produce requests that failed.", "failed_produce"
    ),
    _topic_counter(
        "failedfetchrequests", "Partitions in Fetch responses with an error.", "failed_fetch"
    ),
    Metric(
        "kafka_network_requestmetrics_requests_total",
        Kind.COUNTER,
        ("request", "version"),
        "Requests by API and version.",
        _requests,
    ),
    Metric(
        "kafka_network_requestmetrics_totaltimems",
        Kind.HISTOGRAM,
        ("request",),
        "Milliseconds from the decoded request to the response, waiting included.",
        _times,
    ),
    Metric(
        f"{_SOCKET_SERVER}_connection_count",
        Kind.GAUGE,
        ("listener",),
        "Connections of clients that are open.",
        _connections,
    ),
    counter(
        f"{_SOCKET_SERVER}_connection_creation_total",
        "Connections of clients that were accepted.",
        lambda observed: observed.opened_count,
    ),
    counter(
        f"{_SOCKET_SERVER}_connection_close_total",
        "Connections of clients that were closed.",
        lambda observed: observed.opened_count - len(observed.connections),
    ),
    Metric(
        f"{_SOCKET_SERVER}_connections_software",
        Kind.GAUGE,
        ("clientSoftwareName", "clientSoftwareVersion", "listener"),
        "Open connections by the software that the client names (KIP-511).",
        _software,
    ),
    Metric(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        Kind.GAUGE,
        ("delayedOperation",),
        "Fetch requests that wait for records.",
        lambda observed: [(("Fetch",), observed.broker.fetching.waiters.count)],
    ),
    Metric(
        "odradek_loop_delay_ms",
        Kind.HISTOGRAM,
        (),
        "Milliseconds by which timers of the event loop are late; every request waits as long.",
        lambda observed: [((), observed.loop_delay.durations)],
    ),
]
