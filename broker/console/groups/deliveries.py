"""The records that a share group has in flight: who has locked them, and how often they were sent.

The leader of a share-partition knows them while a member reads it. Otherwise they are what is
stored, and nothing is locked: locks are not stored (broker/shares/shares.py).
"""

from __future__ import annotations

from itertools import chain, islice

from msgspec import field

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import View
from odradek.broker.shares.led_partition import LedPartition
from odradek.coordinator.share_partitions.in_flight import RecordState
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError

from .lags import stored_state

# Of one partition; they are made in one turn.
MAX_RANGES = 200
MAX_RANGES_IN_ALL = 2000


class DeliveredRange(View):
    """Records, both ends included, that share a state.

    `state` is AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING or ARCHIVED. A record that is acquired
    is locked for a member until `locked_until_ms`.
    """

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None = None
    locked_until_ms: int | None = None


class ShareDelivery(View):
    """A partition of a share group.

    All records before `start_offset` are done; None: it is not decided yet where the group begins.
    `in_flight` counts the records from there to the last one that was delivered. `is_read`: members
    read it, so that there may be locks. `acquired`: the first ranges in flight, of any state;
    `has_more_ranges`: there are more.
    """

    topic: str
    partition: int
    start_offset: int | None
    in_flight: int = 0
    is_read: bool = False
    acquired: list[DeliveredRange] = field(default_factory=list)
    has_more_ranges: bool = False


def start_offset_of(call: Call, key: SharePartitionKey) -> int | None:
    """The first record that is not done; None: it is not decided yet where the group begins.

    It is stored with the next acknowledgement.
    """
    led = _led(call, key)
    if led is not None:
        return led.partition.start_offset
    stored = stored_state(call, key)
    return None if stored is None or stored.start_offset < 0 else stored.start_offset


def _led(call: Call, key: SharePartitionKey) -> LedPartition | None:
    """The share-partition while members read it."""
    try:
        return call.observed.broker.coordinators.shares.find(key)
    except ApiError:  # its log is offline or being recovered
        return None


def delivery_of(call: Call, key: SharePartitionKey, topic: str, max_ranges: int) -> ShareDelivery:
    """Describe a share-partition as it is now, with some of its first ranges."""
    led = _led(call, key)
    if led is None:
        return _stored(call, key, topic, max_ranges)
    partition = led.partition
    ranges = _ranges(call, led, max_ranges + 1)
    return ShareDelivery(
        topic=topic,
        partition=key.partition,
        start_offset=partition.start_offset,
        in_flight=partition.in_flight_count,
        is_read=True,
        acquired=ranges[:max_ranges],
        has_more_ranges=len(ranges) > max_ranges,
    )


def _ranges(call: Call, led: LedPartition, limit: int) -> list[DeliveredRange]:
    now = call.observed.broker.clock.now()
    runs = chain.from_iterable(batch.states() for batch in led.partition.batches)
    return [
        DeliveredRange(
            first_offset=first,
            last_offset=last,
            state=state.state.name,
            delivery_count=state.delivery_count,
            member_id=state.member_id or None,
            locked_until_ms=None
            if state.locked_until_ms is None
            else now.wall_ms + state.locked_until_ms - now.timer_ms,
        )
        for first, last, state in islice(runs, limit)
    ]


def _stored(call: Call, key: SharePartitionKey, topic: str, max_ranges: int) -> ShareDelivery:
    state = stored_state(call, key)
    if state is None or state.start_offset < 0:
        return ShareDelivery(topic=topic, partition=key.partition, start_offset=None)
    batches = state.batches
    return ShareDelivery(
        topic=topic,
        partition=key.partition,
        start_offset=state.start_offset,
        in_flight=batches[-1].last_offset - state.start_offset + 1 if batches else 0,
        acquired=[
            DeliveredRange(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                state=_state_name(batch.delivery_state),
                delivery_count=batch.delivery_count,
            )
            for batch in batches[:max_ranges]
        ],
        has_more_ranges=len(batches) > max_ranges,
    )


def _state_name(number: int) -> str:
    try:
        return RecordState(number).name
    except ValueError:
        return str(number)
