"""The shards of an internal topic, with a state that has nothing to do with groups."""

import logging
from collections.abc import Sequence

import pytest

from odradek.coordinator.java.java_hash import java_hash, partition_of
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.shards import CoordinatorShards
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from tests.coordinator.test_journal import CODEC, Numbers, put
from tests.support.memory_log import MemoryLog

TOPIC = "__numbers"
NAMES = [f"name-{n}" for n in range(20)]


def shards_of(logs: Sequence[MemoryLog], partition_count: int) -> CoordinatorShards[Numbers]:
    shards = CoordinatorShards(
        TOPIC,
        lambda _partition: Numbers(),
        CODEC,
        compression=CompressionType.NONE,
        logger=logging.getLogger("numbers"),
    )
    shards.open_topic(logs, partition_count)  # type: ignore[arg-type] # a MemoryLog serves a journal
    return shards


def write(shards: CoordinatorShards[Numbers], name: str, number: int) -> None:
    outcome = Outcome(reply=None, records=(put(name, number),))
    shards.of(name).journal.commit(outcome, now_ms=0)


@pytest.mark.parametrize(
    ("text", "hashed", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("console-consumer-12345", 158455506, 6),
        ("gr\u00fcppe", -1233264812, 12),
        ("\U0001f600", 1772899, 49),
        ("polygenelubricants", -(2**31), 0),
    ],
)
def test_the_partition_of_a_key_is_given_by_its_java_hash(
    text: str, hashed: int, partition: int
) -> None:
    assert java_hash(text) == hashed
    assert partition_of(text, 50) == partition


def test_each_key_is_written_to_its_own_shard_and_found_there_again() -> None:
    logs = [MemoryLog(TOPIC, n) for n in range(3)]
    shards = shards_of(logs, 3)
    for number, name in enumerate(NAMES):
        write(shards, name, number)
    for life in (shards, shards_of(logs, 3)):
        for number, name in enumerate(NAMES):
            assert life.of(name).state.of[name] == number
            assert life.of(name).journal.log is logs[partition_of(name, 3)]


def test_a_key_whose_partition_has_no_log_is_refused_and_the_others_are_served() -> None:
    shards = shards_of([MemoryLog(TOPIC, 0)], 2)
    for name in NAMES:
        assert shards.is_served(name) == (partition_of(name, 2) == 0)
    (lost, *_) = [name for name in NAMES if partition_of(name, 2) == 1]
    with pytest.raises(ApiError, match="__numbers-1 is not served") as refusal:
        shards.of(lost)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR


def test_a_failed_append_is_answered_with_the_coordinators_own_error() -> None:
    log = MemoryLog(TOPIC, 0)
    shards = shards_of([log], 1)
    log.fail_next = ApiError(ErrorCode.REQUEST_TIMED_OUT, "the disk is slow")
    with pytest.raises(ApiError) as refusal:
        write(shards, "a", 1)
    assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
