"""What producers say: values that become requests of one broker. See random_groups/steps.py.

A producer id is `own`, `none`, `wrong`, or another producer's name: the one it has. An epoch or a
sequence is what the producer would say, and so much more ("+0", "-1"), or a number. A
transactional id is `own`, another one without its tag, empty, or None: null.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from odradek.protocol.batch_header import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import Message
from tests.conformance.random_groups.steps import (
    HEARD,
    OWN,
    Epoch,
    Step,
    classic_id,
    consumer_id,
    number,
)
from tests.conformance.random_transactions.participants import (
    WRONG_ID,
    Place,
    Producer,
    TransactionParticipants,
)
from tests.conformance.requests import batch_of

NONE, WRONG = "none", "wrong"
LONG_MS = 600_000  # longer than all conversations that share their restarts
# Transactions with this timeout are aborted after the step that begins them.
SHORT_MS = 50
# Versions at which something begins.
BUMPS_SINCE, TOPIC_IDS_SINCE, BATCHED_SINCE, EXPECTED_SINCE, TWO_PHASE_SINCE = 5, 13, 4, 3, 6
MEMBERS_SINCE, TRANSACTIONAL_SINCE = 3, 3
_OUT = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.TRANSACTION_ABORTABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProducerStep(Step):
    """One request of a producer, which says who it is."""

    who: str = "p1"
    txn: str | None = OWN
    id: str = OWN
    epoch: Epoch = HEARD

    def seat(self, participants: TransactionParticipants) -> Producer:
        return participants.producers[self.who]

    @property
    def is_own(self) -> bool:
        """Whether it says what the producer was told."""
        return (self.txn, self.id, self.epoch) == (OWN, OWN, HEARD)

    def transactional_id(self, participants: TransactionParticipants) -> str | None:
        name = self.seat(participants).transactional_id if self.txn == OWN else self.txn
        return None if name is None else participants.full(name)

    def producer(self, participants: TransactionParticipants) -> tuple[int, int]:
        """The producer id and epoch that it says."""
        return said_producer(participants, self.who, self.id, self.epoch)

    def note_error(self, participants: TransactionParticipants, code: int) -> None:
        if self.is_own and code in _OUT:
            self.seat(participants).is_fenced = True


def said_producer(
    participants: TransactionParticipants, who: str, said: str, epoch: Epoch
) -> tuple[int, int]:
    """What the words for a producer id and an epoch stand for."""
    if said == NONE:
        heard = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
    else:
        seat = participants.producers.get(said, participants.producers[who])
        heard = seat.producer_id + (WRONG_ID if said == WRONG else 0), seat.epoch
    return heard[0], number(epoch, heard[1])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Init(ProducerStep):
    """An InitProducerId; `id`: what the producer has already, since version 3."""

    id: str = NONE
    timeout_ms: int = LONG_MS
    two_phase: bool = False
    keep: bool = False
    version: int = 5

    def request(self, participants: Any) -> tuple[Message, int]:
        producer_id, epoch = self.producer(participants)
        has_expected = self.version >= EXPECTED_SINCE
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id(participants),
            transaction_timeout_ms=self.timeout_ms,
            producer_id=producer_id if has_expected else NO_PRODUCER_ID,
            producer_epoch=epoch if has_expected else NO_PRODUCER_EPOCH,
            enable2_pc=self.two_phase and self.version >= TWO_PHASE_SINCE,
            keep_prepared_txn=self.keep and self.version >= TWO_PHASE_SINCE,
        )
        return request, self.version

    def heard(self, participants: Any, answer: Any) -> None:
        participants.note_producer_id(answer.producer_id)
        if self.txn == OWN and answer.error_code == ErrorCode.NONE:
            self.seat(participants).start(answer.producer_id, answer.producer_epoch)
        elif answer.error_code == ErrorCode.PRODUCER_FENCED:
            self.seat(participants).is_fenced = True


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AddPartitions(ProducerStep):
    """An AddPartitionsToTxn; since version 4 as a broker says it, then also for `others`.

    `verify`: it is only asked whether the partitions are in the transaction. `others` are producers
    whose transactions get the same partitions.
    """

    places: tuple[Place, ...] = (("a", 0),)
    verify: bool = False
    others: tuple[str, ...] = ()
    version: int = 3

    def request(self, participants: Any) -> tuple[Message, int]:
        if self.version < BATCHED_SINCE:
            producer_id, epoch = self.producer(participants)
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id(participants) or "",
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=self._topics(participants),
            )
            return request, self.version
        transactions = [
            self._transaction(
                participants, self.transactional_id(participants), self.producer(participants)
            ),
            *(self._of_other(participants, participants.producers[name]) for name in self.others),
        ]
        return AddPartitionsToTxnRequest(transactions=transactions), self.version

    def _of_other(
        self, participants: TransactionParticipants, other: Producer
    ) -> AddPartitionsToTxnTransaction:
        full = participants.full(other.transactional_id or "")
        return self._transaction(participants, full, (other.producer_id, other.epoch))

    def _transaction(
        self, participants: TransactionParticipants, full: str | None, producer: tuple[int, int]
    ) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=full or "",
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=self.verify,
            topics=self._topics(participants),
        )

    def _topics(self, participants: TransactionParticipants) -> list[AddPartitionsToTxnTopic]:
        return [
            AddPartitionsToTxnTopic(name=participants.full(topic), partitions=indexes)
            for topic, indexes in by_topic(self.places)
        ]

    def heard(self, participants: Any, answer: Any) -> None:
        topics = answer.results_by_topic_v3_and_below
        if self.version >= BATCHED_SINCE:
            topics = answer.results_by_transaction[0].topic_results
        codes = {
            each.partition_error_code for topic in topics for each in topic.results_by_partition
        }
        if self.is_own and codes == {ErrorCode.NONE} and not self.verify:
            seat = self.seat(participants)
            seat.added |= set(self.places)
            seat.is_open = True
        for code in codes:
            self.note_error(participants, code)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AddOffsets(ProducerStep):
    """An AddOffsetsToTxn."""

    of: str = "g"
    version: int = 4

    def request(self, participants: Any) -> tuple[Message, int]:
        producer_id, epoch = self.producer(participants)
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id(participants) or "",
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=participants.full(self.of),
        )
        return request, self.version

    def heard(self, participants: Any, answer: Any) -> None:
        if self.is_own and answer.error_code == ErrorCode.NONE:
            seat = self.seat(participants)
            seat.added_groups.add(self.of)
            seat.is_open = True
        self.note_error(participants, answer.error_code)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommitOffsets(ProducerStep):
    """A TxnOffsetCommit; `member`: whose id and generation are sent along, None: nobody's.

    `classic`: with the member id and the generation of that protocol.
    """

    of: str = "g"
    member: str | None = None
    classic: bool = True
    member_id: str = OWN
    generation: Epoch = HEARD
    instance: str | None = None
    places: tuple[Place, ...] = (("a", 0),)
    offset: int = 5
    metadata: str | None = "m"
    version: int = 5

    def request(self, participants: Any) -> tuple[Message, int]:
        producer_id, epoch = self.producer(participants)
        member_id, generation = self._member(participants)
        says_member = self.version >= MEMBERS_SINCE
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id(participants) or "",
            group_id=participants.full(self.of),
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id_or_member_epoch=generation if says_member else -1,
            member_id=member_id if says_member else "",
            group_instance_id=self.instance if says_member else None,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=participants.full(topic),
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=self.offset,
                            committed_metadata=self.metadata,
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(self.places)
            ],
        )
        return request, self.version

    def _member(self, participants: TransactionParticipants) -> tuple[str, int]:
        seat = participants.seats.get((self.of, self.member or ""))
        if seat is None:
            said = "" if self.member_id == OWN else self.member_id
            return said, number(self.generation, -1)
        if self.classic:
            heard, member_id = (
                seat.generation,
                classic_id(participants, self.of, seat.name, self.member_id),
            )
        else:
            heard, member_id = (
                seat.epoch,
                consumer_id(participants, self.of, seat.name, self.member_id),
            )
        return member_id, number(self.generation, heard)

    def heard(self, participants: Any, answer: Any) -> None:
        codes = {each.error_code for topic in answer.topics for each in topic.partitions}
        if self.is_own and ErrorCode.NONE in codes:
            self.seat(participants).is_open = True
        for code in codes:
            self.note_error(participants, code)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Write(ProducerStep):
    """A Produce of one batch to each place; `last_by`: the producer of the last one, if another."""

    sequence: Epoch = HEARD
    transactional: bool = True
    places: tuple[Place, ...] = (("a", 0),)
    count: int = 1
    last_by: str | None = None
    acks: int = -1
    version: int = 12

    def request(self, participants: Any) -> tuple[Message, int]:
        by_id = self.version >= TOPIC_IDS_SINCE
        request = ProduceRequest(
            transactional_id=self.transactional_id(participants),
            acks=self.acks,
            timeout_ms=5_000,
            topic_data=[
                ProduceTopicData(
                    name="" if by_id else participants.full(topic),
                    topic_id=participants.topic_id(topic) if by_id else ZERO_UUID,
                    partition_data=[
                        ProducePartitionData(
                            index=index, records=self._batch(participants, (topic, index))
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(self.places)
            ],
        )
        return request, self.version

    def _batch(self, participants: TransactionParticipants, place: Place) -> bytes:
        producer_id, epoch = self.producer(participants)
        if self.last_by is not None and place == self.places[-1]:
            producer_id, epoch = said_producer(participants, self.last_by, OWN, HEARD)
        sequence = number(self.sequence, self.seat(participants).sequences.get(place, 0))
        if producer_id == NO_PRODUCER_ID:
            sequence = NO_SEQUENCE
        batch = batch_of(
            *(f"{self.who} {sequence + index}" for index in range(self.count)),
            producer=(producer_id, epoch, sequence),
            transactional=self.transactional,
        )
        return bytes(batch)

    def heard(self, participants: Any, answer: Any) -> None:
        seat = self.seat(participants)
        for topic in answer.responses:
            name = topic.name.removeprefix(f"{participants.tag}-") or participants.topic_name(
                topic.topic_id
            )
            for each in topic.partition_responses:
                self.note_error(participants, each.error_code)
                is_own = (self.id, self.epoch, self.last_by) == (OWN, HEARD, None)
                if is_own and each.error_code == ErrorCode.NONE:
                    before = seat.sequences.get((name, each.index), 0)
                    last = number(self.sequence, before) + self.count
                    seat.sequences[name, each.index] = max(before, last) & MAX_SEQUENCE
                    seat.is_open |= self.transactional


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class End(ProducerStep):
    """An EndTxn; `waits`: the next step comes when its markers are written."""

    commit: bool = True
    waits: bool = True
    version: int = 5

    def request(self, participants: Any) -> tuple[Message, int]:
        producer_id, epoch = self.producer(participants)
        request = EndTxnRequest(
            transactional_id=self.transactional_id(participants) or "",
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=self.commit,
        )
        return request, self.version

    def heard(self, participants: Any, answer: Any) -> None:
        participants.note_producer_id(answer.producer_id)
        self.note_error(participants, answer.error_code)
        if not self.is_own or answer.error_code != ErrorCode.NONE:
            return
        seat = self.seat(participants)
        if self.version >= BUMPS_SINCE:
            seat.start(answer.producer_id, answer.producer_epoch)
        else:
            seat.end()


def by_topic(places: Sequence[Place]) -> Iterator[tuple[str, list[int]]]:
    """The partitions of each topic."""
    for topic in dict.fromkeys(topic for topic, _ in places):
        yield topic, [index for other, index in places if other == topic]
