"""A decision about acknowledgements that is made in steps, and what others do meanwhile."""

from collections.abc import Callable, Sequence

import pytest

from odradek.coordinator.share_partitions.acquisition import AcquireCall, FetchedBatch, acquire
from odradek.coordinator.share_partitions.changes import (
    AcknowledgeCall,
    Acknowledgement,
    AcknowledgeType,
    Changes,
    StaleDecisionError,
    acknowledge,
    release,
)
from odradek.coordinator.share_partitions.in_flight import DeliveryRules
from odradek.coordinator.share_partitions.share_partition import Limits, SharePartition
from odradek.coordinator.share_state.state import ShareState
from odradek.protocol.errors import ApiError

LIMITS = Limits(max_delivery_count=5, max_in_flight=2_000)
LOCK_END_MS = 100
RENEWED_MS = 200
RECORDS = 10
ACCEPT, RELEASE, RENEW = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.RENEW


def acquired() -> SharePartition:
    """A share-partition of which member "m" has the first ten records."""
    partition = SharePartition(ShareState(), 0)
    fetch(partition, "m", RECORDS)
    return partition


def fetch(partition: SharePartition, member: str, count: int) -> list[tuple[int, int]]:
    offset = partition.offset_to_fetch(LIMITS)
    assert offset is not None
    call = AcquireCall(member, count, count, True, LOCK_END_MS)
    batch = FetchedBatch(offset, offset + count - 1)
    got = acquire(partition, call, LIMITS, offset, [batch])
    return [(one.first_offset, one.last_offset) for one in got]


def decide(
    partition: SharePartition,
    *wanted: tuple[int, int, Sequence[int]],
    member: str = "m",
    step: Callable[[], object] = lambda: None,
) -> Changes:
    call = AcknowledgeCall(member, DeliveryRules(LIMITS.max_delivery_count), RENEWED_MS)
    return acknowledge(partition, call, [Acknowledgement(*one) for one in wanted], step)


def other_member_fetches(partition: SharePartition) -> object:
    return fetch(partition, "other", 5)


def session_ends(partition: SharePartition) -> object:
    return release(partition, "m", DeliveryRules(LIMITS.max_delivery_count)).apply()


def same_is_accepted(partition: SharePartition) -> object:
    return decide(partition, (0, 4, [ACCEPT])).apply()


def log_loses_records(partition: SharePartition) -> object:
    partition.log_start_moved(3)
    return None


@pytest.mark.parametrize(
    "other", [other_member_fetches, session_ends, same_is_accepted, log_loses_records]
)
@pytest.mark.parametrize("at", [1, 4, 9])
def test_a_decision_that_another_one_overtakes_is_stale(
    other: Callable[[SharePartition], object], at: int
) -> None:
    partition = acquired()
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == at:
            other(partition)

    kinds = [ACCEPT, RELEASE] * 5
    with pytest.raises(StaleDecisionError):
        decide(partition, (0, RECORDS - 1, kinds), step=step)


def test_a_decision_in_steps_is_the_same_as_one_at_once() -> None:
    kinds = [ACCEPT, RELEASE, RENEW, ACCEPT, ACCEPT, RENEW, RELEASE, ACCEPT, RELEASE, ACCEPT]
    found = []
    for step in (lambda: None, lambda: "another function"):
        partition = acquired()
        changes = decide(partition, (0, RECORDS - 1, kinds), step=step)
        assert changes.is_current
        changes.apply()
        [batch] = partition.batches
        found.append((changes.batches, list(batch.states()), partition.start_offset))
    assert found[0] == found[1]


def test_a_lock_that_is_renewed_very_often_is_renewed_once() -> None:
    partition = acquired()
    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1

    once = decide(partition, (5, 5, [RENEW]), step=step)
    cost, calls = calls, 0
    often = decide(partition, *[(5, 5, [RENEW])] * 1_000, step=step)
    assert calls == 1_000 + cost - 1  # it is looked at, and nothing more
    assert once.renews
    assert often.renews
    with pytest.raises(ApiError):
        decide(partition, *[(5, 5, [ACCEPT])] * 2)
