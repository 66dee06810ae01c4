"""Random conversations of a share group's members: Apache Kafka and odradek deliver alike.

Members fetch, acknowledge what they have or have not, and leave; records are written and deleted
meanwhile.
What a member does next follows from the answers so far. A difference is reported with the number
of its conversation, which `ODRADEK_TEST_SEED` repeats in a long run.
"""

import time
from random import Random
from typing import Any

import pytest

from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.conformance.compared_conversations import Kafka
from tests.conformance.conversation import Conversation
from tests.conformance.random_talks import compare
from tests.conformance.share_reader import (
    ACCEPT,
    AT_ONCE,
    GAP,
    GROUP_RESOURCE,
    REJECT,
    RELEASE,
    ShareReader,
)
from tests.conformance.stored_states import await_share_coordinator
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import produce_request
from tests.support.config_requests import alter_configs_request
from tests.support.lengths import by_length

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

CONVERSATIONS = by_length(5, 400)
STEPS = 60
NOW_MS = 1_700_000_000_000
TOPIC = "random-shares"
# Kafka answers a member that leaves, and then stores that its records are released.
KAFKAS_LAG_S = 0.1


def test_members_at_random_get_what_kafka_delivers(
    kafka_if_asked: Kafka, broker: BrokerProcess
) -> None:
    compare(kafka_if_asked, broker, RandomShares, CONVERSATIONS)


class RandomShares:
    """One conversation of three members who read a partition of their own topic."""

    def __init__(self, talk: Conversation, number: int) -> None:
        self._talk, self._chance = talk, Random(number)
        name = f"{TOPIC}-{number}"
        topic = talk.create_topic(name)
        talk.transcript.write("topic", [{"topic_id": topic.topic_id}])
        await_share_coordinator(talk, topic.topic_id)
        talk.wait_for_coordinator(name)
        limit = str(self._chance.randint(2, 10))
        settings = AT_ONCE | {"share.delivery.count.limit": limit}
        talk.silently(alter_configs_request(GROUP_RESOURCE, name, dict(settings)), 1)
        self._topic = name
        self._readers = [
            ShareReader(self._ask, name, f"m{each}", name, topic.topic_id) for each in range(3)
        ]
        self._readers[0].join(talk.silently)
        self._has: dict[str, set[int]] = {reader.member: set() for reader in self._readers}
        self._steps = 0
        self._end = 0
        self._ends = [0]

    def _ask(self, request: Any, version: int) -> Any:
        """The number of the step in its title says where a difference begins."""
        title = f"step {self._steps}: {request!r}"
        return self._talk.ask(request, version, title=title[:1000])

    def hold(self) -> None:
        self._write()
        self._fetch(self._readers[0])
        steps = [self._write, self._acknowledge, self._acknowledge, self._fetch_on, self._fetch_on]
        for self._steps in range(1, STEPS):
            seldom = [self._leave, self._delete] if self._steps % 5 == 0 else []
            self._chance.choice([*steps, *seldom])()

    def _write(self) -> None:
        for _ in range(self._chance.randint(1, 3)):
            count = self._chance.randint(1, 8)
            records = [Record(None, b"%d" % each, NOW_MS) for each in range(count)]
            self._talk.silently(produce_request(self._topic, bytes(build_batch(records))), 9)
            self._end += count
            self._ends.append(self._end)

    def _fetch_on(self) -> None:
        reader = self._chance.choice(self._readers)
        acknowledged = []
        if self._chance.random() < 0.4 and reader.epoch:
            # Kafka fetches while it stores what is released: it may come with this answer or not.
            acknowledged = self._drawn(reader, [ACCEPT, REJECT, GAP])
        self._fetch(reader, acknowledged)

    def _fetch(self, reader: ShareReader, acknowledged: Any = ()) -> None:
        answer = reader.fetch(
            *((0,) if not reader.epoch or acknowledged else ()),
            acknowledge=acknowledged,
            max_records=self._chance.randint(1, 12),
            batch_size=self._chance.randint(1, 12),
            share_acquire_mode=self._chance.randint(0, 1),
            max_wait_ms=1 if self._steps else 2_000,
        )
        for topic in answer.responses:
            for partition in topic.partitions:
                for one in partition.acquired_records:
                    got = range(one.first_offset, one.last_offset + 1)
                    self._has[reader.member].update(got)

    def _acknowledge(self) -> None:
        reader = self._chance.choice(self._readers)
        drawn = self._drawn(reader, [ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP])
        if drawn and reader.epoch:
            reader.acknowledge(*drawn)

    def _drawn(self, reader: ShareReader, kinds: list[int]) -> list[tuple[int, int, list[int]]]:
        """Acknowledgements, mostly of records that the member has got once."""
        has = self._has[reader.member]
        drawn: list[tuple[int, int, list[int]]] = []
        after = 0
        for _ in range(self._chance.randint(1, 3)):
            choice = sorted(each for each in has if each >= after)
            if not choice or self._chance.random() < 0.05:
                choice = list(range(min(after, self._end), self._end + 2))
            first = last = self._chance.choice(choice)
            while last + 1 in has and self._chance.random() < 0.7:
                last += 1
            count = last - first + 1 if self._chance.random() < 0.5 else 1
            drawn.append((first, last, [self._chance.choice(kinds) for _ in range(count)]))
            has.difference_update(range(first, last + 1))
            after = last + 1
        return drawn

    def _delete(self) -> None:
        """Delete the oldest batches, whoever has them.

        If a part of a batch is deleted, Kafka delivers its beginning and then nothing for good.
        """
        offset = self._chance.choice(self._ends)
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = DeleteRecordsTopic(name=self._topic, partitions=[partition])
        self._talk.silently(DeleteRecordsRequest(topics=[topic], timeout_ms=9_000), 2)

    def _leave(self) -> None:
        reader = self._chance.choice(self._readers)
        if reader.epoch:
            reader.leave()
            time.sleep(KAFKAS_LAG_S)
            self._has[reader.member].clear()
