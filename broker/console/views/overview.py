"""The overview: what this broker is, what it does, and what is wrong now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest

from odradek.broker.common.durations import BOUNDS_MS, Durations
from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.view import View
from odradek.broker.http.own_version import OWN_VERSION
from odradek.broker.metrics.log_metrics import partition_count
from odradek.broker.metrics.observed import Observed
from odradek.broker.metrics.readiness import problems
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.features import METADATA_VERSION
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from odradek.storage.time_text import rounded

EVERY_S = 2.0
LITTLE_SPACE_BYTES = 1 << 30
SOME_TRANSACTIONS = 20
LONG_TRANSACTION_MS = 60_000
SOME_TOPICS = 3
PART = 500  # logs that are counted between two steps


class OverviewListener(View):
    """`address` is where the broker listens, `advertised` what clients are told."""

    name: str
    protocol: str
    address: str
    advertised: str


class Feature(View):
    name: str
    level: int


class Counts(View):
    """How many there are now."""

    topics: int
    partitions: int
    groups: int
    connections: int
    open_transactions: int


class Totals(View):
    """Counts since the broker's start."""

    messages_in: int
    bytes_in: int
    bytes_out: int
    requests: int
    failed_produce: int
    failed_fetch: int


class ApiTimes(View):
    """The requests of an API since the start. `errors` had no response.

    `p50_ms` and `p99_ms` are the bounds of `buckets` below which they lie; None above the last, and
    if no request had a response.
    """

    name: str
    requests: int
    errors: int
    p50_ms: float | None
    p99_ms: float | None
    buckets: list[tuple[float, int]]


class LoopDelays(View):
    """How late the timers of the event loop were, as bounds; None above the last one.

    `measured` counts the timers. Before the first one all bounds are None.
    """

    measured: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


class Directory(View):
    """A log directory. Sizes are None if it is offline."""

    path: str
    is_online: bool
    reason: str | None
    size_bytes: int
    free_bytes: int | None
    total_bytes: int | None
    min_free_bytes: int


class OverviewFinding(View):
    """Something that was checked. `health` is ok, warning or problem.

    `view` is the page that shows more, if one does.
    """

    health: str
    text: str
    advice: str = ""
    view: str = ""


class Overview(View):
    """The whole view."""

    cluster_id: str
    node_id: int
    version: str
    metadata_version: int
    started_ms: int
    uptime_ms: int
    listeners: list[OverviewListener]
    features: list[Feature]
    counts: Counts
    totals: Totals
    apis: list[ApiTimes]
    loop_delay: LoopDelays
    directories: list[Directory]
    memory_bytes: int | None
    open_files: int | None
    findings: list[OverviewFinding]


async def overview(call: Call, _: Nothing) -> Overview:
    """Make the view. Needs DESCRIBE on the cluster."""
    call.check_cluster()
    observed = call.observed
    broker = observed.broker
    surveyed = await call.survey.get(call.slices)
    directories = await _directories(call, surveyed.log_bytes)
    open_transactions = [
        transaction
        for shard in broker.coordinators.transactions.shards.serving()
        for transaction in call.sliced(shard.state.all())
        if transaction.state is TransactionState.ONGOING
    ]
    uptime_ms = broker.clock.timer_ms() - observed.started_ms
    served = _count_logs(call)
    return Overview(
        cluster_id=broker.metadata.cluster_id,
        node_id=broker.nodes.own_id,
        version=OWN_VERSION,
        metadata_version=broker.metadata.features.level(METADATA_VERSION),
        started_ms=broker.clock.now_ms() - uptime_ms,
        uptime_ms=uptime_ms,
        listeners=list(_listeners(observed)),
        features=[
            Feature(name=name, level=level)
            for name, level in sorted(broker.metadata.features.finalized.items())
        ],
        counts=_counts(observed, len(open_transactions)),
        totals=_totals(call),
        apis=sorted(_apis(observed), key=lambda each: -each.requests),
        loop_delay=_loop_delays(observed.loop_delay.durations),
        directories=directories,
        memory_bytes=surveyed.memory_bytes,
        open_files=surveyed.open_files,
        findings=[
            *_findings(observed, directories, served),
            *_long_transactions(call, open_transactions),
        ],
    )


def _count_logs(call: Call) -> int:
    """Count what was appended to all logs. Returns how many logs are served."""
    observed = call.observed
    logs = observed.broker.log_manager.logs()
    served = 0
    for start in call.sliced(iter(range(0, len(logs), PART))):
        part = logs[start : start + PART]
        observed.traffic.count_appends(part)
        served += sum([log.is_online for log in part])
    return served


def _listeners(observed: Observed) -> Iterator[OverviewListener]:
    broker = observed.broker
    for listener in broker.config.open_listeners:
        host, port = broker.nodes.own_address(listener, "")
        own_port = broker.nodes.ports[listener.name]
        yield OverviewListener(
            name=listener.name,
            protocol=listener.security_protocol.value,
            address=f"{listener.host or '*'}:{own_port}",
            advertised=f"{host}:{port}" if host else f"the address that they used, port {port}",
        )


def _counts(observed: Observed, open_transactions: int) -> Counts:
    broker = observed.broker
    topics = broker.metadata.topics
    return Counts(
        topics=len(topics),
        partitions=topics.partition_count(),
        groups=sum(
            len(shard.state.groups) for shard in broker.coordinators.groups.shards.serving()
        ),
        connections=len(observed.connections),
        open_transactions=open_transactions,
    )


def _totals(call: Call) -> Totals:
    traffic = call.observed.traffic
    of_topics = traffic.totals(call.slices.step)
    return Totals(
        messages_in=of_topics.messages_in,
        bytes_in=of_topics.bytes_in,
        bytes_out=of_topics.bytes_out,
        requests=sum(
            counts.count
            for by_version in traffic.requests.values()
            for counts in by_version.values()
        ),
        failed_produce=of_topics.failed_produce,
        failed_fetch=of_topics.failed_fetch,
    )


def _apis(observed: Observed) -> Iterator[ApiTimes]:
    for key, by_version in list(observed.traffic.requests.items()):
        durations = Durations()
        errors = 0
        for counts in by_version.values():
            durations.merge(counts.answered)
            errors += counts.unanswered
        if durations.count + errors:
            yield ApiTimes(
                name=key.display_name,
                requests=durations.count + errors,
                errors=errors,
                p50_ms=_quantile(durations, 0.5),
                p99_ms=_quantile(durations, 0.99),
                buckets=list(zip((*BOUNDS_MS, -1.0), durations.counts, strict=True)),
            )


def _quantile(durations: Durations, share: float) -> float | None:
    """The lowest bound below which so large a share of the durations lies.

    None if that is above the last bound, or if there are no durations.
    """
    if not durations.count:
        return None
    wanted = durations.count * share
    seen = 0
    for bound_ms, count in zip(BOUNDS_MS, durations.counts[:-1], strict=True):
        seen += count
        if seen >= wanted:
            return bound_ms
    return None


def _loop_delays(durations: Durations) -> LoopDelays:
    return LoopDelays(
        measured=durations.count,
        p50_ms=_quantile(durations, 0.5),
        p99_ms=_quantile(durations, 0.99),
        max_ms=_quantile(durations, 1.0),
    )


async def _directories(call: Call, log_bytes: Mapping[str, int]) -> list[Directory]:
    broker = call.observed.broker
    reasons = {str(path): reason for path, reason in broker.log_manager.offline.items()}
    request = DescribeLogDirsRequest(topics=[])  # of no topic: the disks only
    answer = await call.ask(request, DescribeLogDirsResponse)
    return [
        Directory(
            path=each.log_dir,
            is_online=not each.error_code,
            reason=reasons.get(each.log_dir),
            size_bytes=log_bytes.get(each.log_dir, 0),
            free_bytes=each.usable_bytes if each.usable_bytes >= 0 else None,
            total_bytes=each.total_bytes if each.total_bytes >= 0 else None,
            min_free_bytes=broker.config.odradek_min_free_bytes,
        )
        for each in answer.results
    ]


def _findings(
    observed: Observed, directories: list[Directory], served: int
) -> Iterator[OverviewFinding]:
    for text in problems(observed):
        yield _in_the_log(text)
    offline = partition_count(observed) - served
    if offline > 0:
        yield _in_the_log(f"{offline} partitions are not served")
    for reason in observed.broker.disk_space.low.values():
        yield OverviewFinding(
            health="problem",
            text=reason,
            advice="delete topics, shorten retention.ms, or make room on the disk",
        )
    for each in directories:
        if each.free_bytes is not None and each.free_bytes < LITTLE_SPACE_BYTES:
            yield OverviewFinding(
                health="warning",
                text=f"log directory {each.path} has {each.free_bytes >> 20} MiB left",
                advice="delete topics, shorten retention.ms, or make room on the disk",
            )


def _in_the_log(text: str) -> OverviewFinding:
    advice = "look into the broker's log"
    return OverviewFinding(health="problem", text=text, advice=advice, view="log")


def _long_transactions(
    call: Call, open_transactions: Iterable[Transaction]
) -> Iterator[OverviewFinding]:
    """Those that are open for long. Consumers of committed records wait behind their offsets."""
    now_ms = call.observed.broker.clock.now_ms()
    resource = ResourceType.TRANSACTIONAL_ID
    long = [
        each
        for each in call.sliced(open_transactions)
        if now_ms - each.start_ms >= LONG_TRANSACTION_MS
        and call.may(AclOperation.DESCRIBE, resource, each.transactional_id)
    ]
    for transaction in nsmallest(SOME_TRANSACTIONS, long, key=lambda each: each.start_ms):
        yield OverviewFinding(
            health="warning",
            text=f"the transaction of {transaction.transactional_id} has been open for"
            f" {rounded(now_ms - transaction.start_ms)}; consumers"
            f" of committed records wait for its end{_where(call, transaction)}",
            advice="end it in its producer, or abort it",
            view="transactions",
        )
    if len(long) > SOME_TRANSACTIONS:
        yield OverviewFinding(
            health="warning",
            text=f"{len(long) - SOME_TRANSACTIONS} other transactions have been open for long",
            advice="end them in their producers, or abort them",
            view="transactions",
        )


def _where(call: Call, transaction: Transaction) -> str:
    """The topics of a transaction that the client may describe, or some of them."""
    topics = [
        topic
        for topic in call.sliced(iter(transaction.partitions_by_topic(call.slices.step)))
        if call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
    ]
    more = f" and {len(topics) - SOME_TOPICS} others" if len(topics) > SOME_TOPICS else ""
    return f" in {', '.join(topics[:SOME_TOPICS])}{more}" if topics else ""


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/overview",
        summary="What the broker is, what it does, and what is wrong now.",
        handle=overview,
        response=Overview,
        every_s=EVERY_S,
    ),
)
