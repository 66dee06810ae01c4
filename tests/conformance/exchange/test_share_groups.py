"""A share group in one directory: each broker goes on where the other has stopped.

What one has not written to the dead-letter queue, the other writes.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.record import read_records
from tests.conformance.conversation import Conversation, advertised_versions, patiently
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.conformance.requests import batch_of, produce
from tests.conformance.share_reader import ACCEPT, REJECT, RELEASE, ShareReader
from tests.conformance.stored_states import await_share_coordinator
from tests.conformance.transcript import each_batch
from tests.support.broker_process import BrokerProcess
from tests.support.config_requests import alter_configs_request
from tests.support.java_tools import why_no_java
from tests.support.stored_batches import fetch
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
]

GROUP_RESOURCE = 32
CLEAN, KILLED = False, True
# The limit of deliveries is high, so that no record is held back because it was delivered often.
SETTINGS = {
    "share.assignment.interval.ms": "0",
    "share.auto.offset.reset": "earliest",
    "share.delivery.count.limit": "10",
    "errors.deadletterqueue.topic.name": "dlq.orders",
}
TURNS = [("kafka", CLEAN), ("odradek", KILLED), ("kafka", KILLED), ("odradek", CLEAN)]


@pytest.mark.parametrize("turns", [TURNS, TURNS[1:]], ids=["kafka-first", "odradek-first"])
def test_each_delivers_what_the_other_has_left(
    turns: list[tuple[str, bool]], tmp_path: Path
) -> None:
    shared = SharedDirectory(tmp_path)
    expected = dict.fromkeys(range(12), 1)  # delivery counts by offset
    given_up = set()
    for number, (name, killed) in enumerate(turns):
        with shared.served_by(name, killed=killed) as broker, conversation(broker) as talk:
            reader = member(talk, is_first=number == 0)
            assert delivered(reader, len(expected)) == expected
            accepted, rejected, *others = sorted(expected)
            answer = reader.acknowledge(
                (accepted, accepted, [ACCEPT]),
                (rejected, rejected, [REJECT]),
                (others[0], others[-1], [RELEASE]),
            )
            assert [one.error_code for one in answer.responses[0].partitions] == [0]
            expected = {offset: expected[offset] + 1 for offset in others}
            given_up.add(rejected)
            if number == len(turns) - 1:
                patiently(lambda: given_up <= queued(broker) or None)
                assert queued(broker) == given_up


def queued(broker: BrokerProcess) -> set[int]:
    """The offsets of the records that are in the dead-letter queue, perhaps twice."""
    with WireClient(broker.port) as client:
        data = fetch(client, "dlq.orders", 0, 0)
    return {
        int(dict(record.headers)["__dlq.errors.offset"] or b"")
        for batch in each_batch(data)
        for record in read_records(batch)
    }


def conversation(broker: BrokerProcess) -> closing[Conversation]:
    return closing(Conversation(broker.port, advertised_versions(broker.port)))


def member(talk: Conversation, *, is_first: bool) -> ShareReader:
    """Join the group; the first time, create what it reads."""
    if is_first:
        topic_id = talk.create_topic("orders").topic_id
        talk.create_topic("dlq.orders", errors_deadletterqueue_group_enable="true")
        for _ in range(3):
            produce(talk, "orders", batch_of("1", "2", "3", "4"))
    else:
        topic_id = talk.wait_for_topic("orders").topic_id
    talk.wait_for_coordinator("cooks")
    await_share_coordinator(talk, topic_id)
    talk.silently(alter_configs_request(GROUP_RESOURCE, "cooks", dict(SETTINGS)), 1)
    reader = ShareReader(talk.ask, "cooks", "m", "orders", topic_id)
    reader.join(talk.silently)
    return reader


def delivered(reader: ShareReader, count: int) -> dict[int, int]:
    """Fetch until so many records have come. Returns their delivery counts by offset."""
    found: dict[int, int] = {}

    def is_complete() -> bool | None:
        found.update(acquired(reader.fetch(*(() if reader.epoch else (0,)))))
        return len(found) >= count or None

    patiently(is_complete)
    return found


def acquired(answer: Any) -> dict[int, int]:
    return {
        offset: one.delivery_count
        for topic in answer.responses
        for partition in topic.partitions
        for one in partition.acquired_records
        for offset in range(one.first_offset, one.last_offset + 1)
    }
