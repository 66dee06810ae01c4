"""Metrics of groups, their offsets and lag, and of transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from odradek.broker.broker import Broker
from odradek.coordinator.any_group.group import Group, GroupType
from odradek.coordinator.runtime.steps import stepping
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.transactions.states import IDLE, TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.errors import ApiError

from .metric import Kind, Metric, Sample, gauge
from .observed import Observed

# By type of group: its states, as the label has them.
STATES = {
    GroupType.SHARE: ("empty", "stable", "dead"),
    GroupType.CONSUMER: ("empty", "assigning", "reconciling", "stable", "dead"),
    GroupType.STREAMS: ("empty", "not_ready", "assigning", "reconciling", "stable", "dead"),
}


def _groups(observed: Observed) -> Iterator[Group]:
    """All groups that are loaded."""
    for shard in list(observed.broker.coordinators.groups.shards.serving()):
        yield from stepping(shard.state.groups.values(), observed.step)


def _classic_in_state(state: str | None) -> Callable[[Observed], float]:
    """Count the classic groups, or those in one state."""

    def count(observed: Observed) -> float:
        return sum(
            group.group_type is GroupType.CLASSIC and state in (None, group.state_name)
            for group in _groups(observed)
        )

    return count


def _by_type(observed: Observed) -> Iterator[Sample]:
    counts = Counter(group.group_type for group in _groups(observed))
    for group_type in GroupType:
        yield (group_type.value,), counts[group_type]


def _by_state(group_type: GroupType) -> Callable[[Observed], Iterator[Sample]]:
    """Count the groups of a type by their states."""

    def count(observed: Observed) -> Iterator[Sample]:
        counts = Counter(
            group.state_name.lower()
            for group in _groups(observed)
            if group.group_type is group_type
        )
        for state in STATES[group_type]:
            yield (state,), counts[state.replace("_", "")]

    return count


def _offset_count(observed: Observed) -> float:
    return sum(
        len(shard.state.offsets) for shard in observed.broker.coordinators.groups.shards.serving()
    )


def _committed(observed: Observed) -> Iterator[tuple[str, str, int, int]]:
    """Group, topic, partition and offset of everything that is committed in topics that exist.

    The offsets of a deleted topic may still be there when there is a new one of its name.
    """
    existing = observed.broker.metadata.topics
    for shard in list(observed.broker.coordinators.groups.shards.serving()):
        for group_id in list(shard.state.groups):
            observed.step()
            topics = shard.state.offsets.of_group(group_id)
            for topic, partitions in stepping(topics.items(), observed.step):
                for partition, committed in stepping(partitions.items(), observed.step):
                    known = existing.get(topic)
                    if known is not None and committed.is_of(known.id):
                        yield group_id, topic, partition, committed.offset


def _offsets(observed: Observed) -> Iterator[Sample]:
    for group_id, topic, partition, offset in _committed(observed):
        yield (group_id, topic, str(partition)), offset


def _lags(observed: Observed) -> Iterator[Sample]:
    for group_id, topic, partition, offset in _committed(observed):
        log = observed.broker.log_manager.find(topic, partition)
        if log is not None:
            yield (group_id, topic, str(partition)), max(0, log.high_watermark - offset)


def _share_lags(observed: Observed) -> Iterator[Sample]:
    broker = observed.broker
    for group in _groups(observed):
        if not isinstance(group, ShareGroup):
            continue
        initialized = group.state_partitions.initialized
        for topic_id, topic in stepping(initialized.items(), observed.step):
            for partition in stepping(topic.partitions, observed.step):
                key = SharePartitionKey(group.group_id, topic_id, partition)
                lag = _share_lag(broker, key, topic.name)
                if lag is not None:
                    yield (group.group_id, topic.name, str(partition)), max(0, lag)


def _share_lag(broker: Broker, key: SharePartitionKey, topic: str) -> int | None:
    log = broker.log_manager.find(topic, key.partition)
    try:
        done_count = broker.coordinators.share_states.read_summary(key).done_count
    except ApiError:
        return None  # it is being loaded, or deleted
    if log is None or log.topic_id != key.topic_id or done_count is None:
        return None
    return log.high_watermark - done_count


def _all_transactions(observed: Observed) -> Iterator[Transaction]:
    for shard in list(observed.broker.coordinators.transactions.shards.serving()):
        yield from stepping(list(shard.state.all()), observed.step)


def _transactions(observed: Observed) -> Iterator[Sample]:
    counts = Counter(transaction.state for transaction in _all_transactions(observed))
    for state in TransactionState:
        if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE):
            yield (state.client_name,), counts[state]


def _oldest_transaction_seconds(observed: Observed) -> float:
    starts_ms = (
        transaction.start_ms
        for transaction in _all_transactions(observed)
        if transaction.state not in IDLE
    )
    now_ms = observed.broker.clock.now_ms()
    return max(0, now_ms - min(starts_ms, default=now_ms)) / 1000


def _queue_counts(field: str) -> Callable[[Observed], Iterator[Sample]]:
    """Read a field of QueueCounts, for each group."""

    def read(observed: Observed) -> Iterator[Sample]:
        for group_id, counts in list(observed.broker.coordinators.queues.counts.items()):
            yield (group_id,), getattr(counts, field)

    return read


def _queue_counter(name: str, help_: str, field: str) -> Metric:
    name = f"kafka_server_sharegroupmetrics_deadletterqueue{name}_total"
    return Metric(name, Kind.COUNTER, ("group",), help_, _queue_counts(field))


_MANAGER = "kafka_coordinator_group_groupmetadatamanager"
_IN_STATE = "Groups of the classic protocol in state"

GROUP_METRICS: list[Metric] = [
    gauge(f"{_MANAGER}_numgroups", "Groups of the classic protocol.", _classic_in_state(None)),
    *(
        gauge(
            f"{_MANAGER}_numgroups{state.lower()}",
            f"{_IN_STATE} {state}.",
            _classic_in_state(state),
        )
        for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
    ),
    gauge(f"{_MANAGER}_numoffsets", "Offsets that groups have committed.", _offset_count),
    Metric(
        "kafka_server_group_coordinator_metrics_group_count",
        Kind.GAUGE,
        ("protocol",),
        "Groups by type.",
        _by_type,
    ),
    Metric(
        "kafka_server_group_coordinator_metrics_consumer_group_count",
        Kind.GAUGE,
        ("state",),
        "Groups of the consumer protocol (KIP-848) by state.",
        _by_state(GroupType.CONSUMER),
    ),
    Metric(
        "kafka_server_group_coordinator_metrics_share_group_count",
        Kind.GAUGE,
        ("state",),
        "Share groups (KIP-932) by state.",
        _by_state(GroupType.SHARE),
    ),
    Metric(
        "kafka_server_group_coordinator_metrics_streams_group_count",
        Kind.GAUGE,
        ("state",),
        "Streams groups (KIP-1071) by state.",
        _by_state(GroupType.STREAMS),
    ),
    Metric(
        "kafka_consumergroup_current_offset",
        Kind.GAUGE,
        ("consumergroup", "topic", "partition"),
        "The offset that the group has committed.",
        _offsets,
    ),
    Metric(
        "kafka_consumergroup_lag",
        Kind.GAUGE,
        ("consumergroup", "topic", "partition"),
        "Offsets between the group's committed offset and the high watermark.",
        _lags,
    ),
    Metric(
        "odradek_share_group_lag",
        Kind.GAUGE,
        ("sharegroup", "topic", "partition"),
        "Records up to the high watermark that the share group has not done with.",
        _share_lags,
    ),
    _queue_counter(
        "recordcount", "Records written to the group's dead-letter queue (KIP-1191).", "records"
    ),
    _queue_counter("totalproducerequests", "Attempts to write a batch to it.", "writes"),
    _queue_counter(
        "failedproducerequests", "Batches of it that could not be written.", "failed_writes"
    ),
    Metric(
        "odradek_transactional_ids",
        Kind.GAUGE,
        ("state",),
        "Transactional ids by the state of their transaction.",
        _transactions,
    ),
    gauge(
        "odradek_oldest_transaction_seconds",
        "Age of the oldest transaction that is open or being completed; 0 if there is none.",
        _oldest_transaction_seconds,
    ),
]
