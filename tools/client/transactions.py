"""`odradek transactions`: what is open, who holds it, what hangs, and how to end it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass

import typer

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsTransaction,
)
from odradek.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsTransaction,
)
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WriteTxnMarkersTopic,
)
from odradek.tools.tables import counted, print_json, show_rows, show_table

from .answers import check_answer
from .cluster_commands import ClusterCommands
from .failure import CommandError, first_of
from .request_parts import request_parts
from .wire import TIMEOUT_S, check_topic

NO_TRANSACTION = -1
# Kafka's coordinator must store the new epoch within this time. Kafka's admin client sends its
# request timeout (FenceProducersHandler). The id keeps its own timeout if that is shorter.
FENCING_TIMEOUT_MS = 30_000
# As Kafka's admin client. CONCURRENT_TRANSACTIONS may come before the producer is fenced.
RETRIED = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
RETRY_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that is open in a partition. `transactional_id` None: no coordinator has it."""

    topic: str
    partition: int
    producer_id: int
    start_offset: int
    last_write_ms: int
    transactional_id: str | None
    state: str


class TransactionCommands(ClusterCommands):
    """The commands. Each raises CommandError."""

    def show_all(self, states: Sequence[str], *, as_json: bool) -> None:
        """Print the transactional ids with their states."""
        header = ("transactional id", "state", "producer id")
        rows = sorted(
            (each.transactional_id, each.transaction_state, each.producer_id)
            for each in self._list(states)
        )
        title = counted(len(rows), "transactional id")
        show_rows(title, header, rows, as_json=as_json, texts=2)

    def describe(self, transactional_ids: Sequence[str], *, as_json: bool) -> None:
        """Print the state of transactional ids, and the partitions of their transactions."""
        described = [self._describe(each) for each in transactional_ids]
        if as_json:
            print_json([_as_json(each) for each in described])
            return
        for each in described:
            typer.echo(f"{each.transactional_id}: {each.transaction_state}")
            typer.echo(f"  producer {each.producer_id}, epoch {each.producer_epoch}")
            if each.transaction_start_time_ms >= 0:
                age_s = time.time() - each.transaction_start_time_ms / 1000
                timeout_s = each.transaction_timeout_ms / 1000
                typer.echo(f"  open for {age_s:.0f} s, timeout {timeout_s:.0f} s")
            for topic in each.topics:
                partitions = ", ".join(map(str, sorted(topic.partitions)))
                typer.echo(f"  {topic.topic}: {partitions}")

    def show_open(self, topics: Sequence[str], *, only_hanging: bool, as_json: bool) -> None:
        """Print the transactions that are open in partitions.

        `only_hanging`: only those that no coordinator will end. Raises CommandError after that if a
        partition does not answer.
        """
        failures: list[CommandError] = []
        found = [
            each
            for each in self._open(topics, failures)
            if not only_hanging or each.transactional_id is None
        ]
        if as_json:
            print_json([asdict(each) for each in found])
        else:
            _show(found, "hanging" if only_hanging else "open")
        if failures:
            raise first_of(failures)

    def abort(self, topic: str, partition: int, start_offset: int | None) -> None:
        """Abort a hanging transaction: write its marker to a partition.

        `start_offset` may be None if only one is open there.
        """
        producers = [
            each
            for each in self._open_producers(topic, partition)
            if start_offset in (None, each.current_txn_start_offset)
        ]
        if not producers:
            raise CommandError(f"no such transaction is open in {topic}-{partition}")
        if len(producers) > 1:
            offsets = ", ".join(str(each.current_txn_start_offset) for each in producers)
            raise CommandError(
                f"{len(producers)} transactions are open in {topic}-{partition}, from offsets"
                f" {offsets}; choose one with --start-offset"
            )
        (producer,) = producers
        marker = WriteTxnMarkersMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            topics=[WriteTxnMarkersTopic(name=topic, partition_indexes=[partition])],
            coordinator_epoch=max(producer.coordinator_epoch, 0),
        )
        leader = self._cluster.leader(topic, partition)
        answer = leader.ask(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
        check_answer("the marker is refused", answer.markers[0].topics[0].partitions[0].error_code)
        offset = producer.current_txn_start_offset
        typer.echo(f"aborted the transaction in {topic}-{partition} from offset {offset} on")

    def terminate(self, transactional_id: str) -> None:
        """Fence the producer of a transactional id, which aborts its open transaction."""
        timeout_ms = self._describe(transactional_id).transaction_timeout_ms
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=min(timeout_ms, FENCING_TIMEOUT_MS),
        )
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            coordinator = self._cluster.transaction_coordinator(transactional_id)
            answer = coordinator.ask(request, InitProducerIdResponse)
            if answer.error_code not in RETRIED or time.monotonic() > deadline:
                break
            time.sleep(RETRY_S)
        check_answer(f"{transactional_id} cannot be fenced", answer.error_code)
        typer.echo(f"fenced {transactional_id}")

    # -- what the brokers know --------------------------------------------------------------------

    def _list(
        self, states: Sequence[str], producer_ids: Sequence[int] = ()
    ) -> Iterator[ListTransactionsTransaction]:
        request = ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=list(producer_ids)
        )
        for broker in self._cluster.brokers():
            answer = broker.ask(request, ListTransactionsResponse)
            check_answer("transactions cannot be listed", answer.error_code)
            if answer.unknown_state_filters:
                raise CommandError(f"there is no state {', '.join(answer.unknown_state_filters)}")
            yield from answer.transaction_states

    def _describe(self, transactional_id: str) -> DescribeTransactionsTransaction:
        found = self._find(transactional_id)
        if found is None:
            raise CommandError(
                f"there is no transactional id {transactional_id}; `odradek transactions list`"
                " shows them"
            )
        return found

    def _find(self, transactional_id: str) -> DescribeTransactionsTransaction | None:
        coordinator = self._cluster.transaction_coordinator(transactional_id)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (found,) = coordinator.ask(request, DescribeTransactionsResponse).transaction_states
        if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        check_answer(f"{transactional_id} cannot be described", found.error_code)
        return found

    def _open_producers(self, topic: str, partition: int) -> list[DescribeProducersProducerState]:
        """The producers that have a transaction open in a partition."""
        wanted = DescribeProducersTopic(name=topic, partition_indexes=[partition])
        leader = self._cluster.leader(topic, partition)
        answer = leader.ask(DescribeProducersRequest(topics=[wanted]), DescribeProducersResponse)
        found = answer.topics[0].partitions[0]
        check_answer(f"producers of {topic}-{partition} cannot be described", found.error_code)
        return [
            each
            for each in found.active_producers
            if each.current_txn_start_offset != NO_TRANSACTION
        ]

    def _open(
        self, topics: Sequence[str], failures: list[CommandError]
    ) -> Iterator[OpenTransaction]:
        """The open transactions of topics, or of all; `failures` of partitions are added.

        A coordinator knows a transaction before a partition has it, and until its marker is there.
        So the coordinators are asked after the partitions. What none of them knows has ended
        meanwhile, or is hanging: then it is still open in its partition.
        """
        in_partitions = [
            (topic, partition, producer)
            for topic, partition in self._partitions(topics)
            for producer in self._known_producers(topic, partition, failures)
        ]
        owners = self._owners({producer.producer_id for _, _, producer in in_partitions})
        for topic, partition, producer in in_partitions:
            owner = owners.get((topic, partition, producer.producer_id))
            # As `odradek verify` decides: a coordinator with an older epoch will not end it.
            if owner is not None and owner.producer_epoch < producer.producer_epoch:
                owner = None
            if owner is None and not any(
                _is_same(each, producer)
                for each in self._known_producers(topic, partition, failures)
            ):
                continue
            yield OpenTransaction(
                topic=topic,
                partition=partition,
                producer_id=producer.producer_id,
                start_offset=producer.current_txn_start_offset,
                last_write_ms=producer.last_timestamp,
                transactional_id=owner.transactional_id if owner else None,
                state=owner.transaction_state if owner else "hanging",
            )

    def _partitions(self, topics: Sequence[str]) -> Iterator[tuple[str, int]]:
        for topic in self._cluster.metadata(list(topics) or None).topics:
            check_topic(topic)
            assert topic.name is not None
            for index in sorted(each.partition_index for each in topic.partitions):
                yield topic.name, index

    def _owners(
        self, producer_ids: AbstractSet[int]
    ) -> dict[tuple[str, int, int], DescribeTransactionsTransaction]:
        """The transactions that coordinators will end, by topic, partition and producer id."""
        described = [
            self._find(each.transactional_id)
            for part in request_parts(sorted(producer_ids))
            for each in self._list([], part)
        ]
        return {
            (topic.topic, partition, state.producer_id): state
            for state in described
            if state is not None  # it has expired meanwhile
            for topic in state.topics
            for partition in topic.partitions
        }

    def _known_producers(
        self, topic: str, partition: int, failures: list[CommandError]
    ) -> list[DescribeProducersProducerState]:
        """Like `_open_producers`; none if the partition does not answer."""
        try:
            return self._open_producers(topic, partition)
        except CommandError as error:
            failures.append(error)
            return []


def _is_same(one: DescribeProducersProducerState, other: DescribeProducersProducerState) -> bool:
    return (one.producer_id, one.current_txn_start_offset) == (
        other.producer_id,
        other.current_txn_start_offset,
    )


def _show(found: Sequence[OpenTransaction], kind: str) -> None:
    header = ("topic", "transactional id", "state", "partition", "start offset", "idle in s")
    now_ms = time.time() * 1000
    rows = [
        (
            each.topic,
            each.transactional_id or "-",
            each.state,
            str(each.partition),
            str(each.start_offset),
            f"{(now_ms - each.last_write_ms) / 1000:.0f}",
        )
        for each in found
    ]
    show_table(counted(len(rows), f"{kind} transaction"), header, rows, texts=3)


def _as_json(described: DescribeTransactionsTransaction) -> dict[str, object]:
    return {
        "transactional_id": described.transactional_id,
        "state": described.transaction_state,
        "producer_id": described.producer_id,
        "producer_epoch": described.producer_epoch,
        "timeout_ms": described.transaction_timeout_ms,
        "start_time_ms": described.transaction_start_time_ms,
        "partitions": {topic.topic: sorted(topic.partitions) for topic in described.topics},
    }
