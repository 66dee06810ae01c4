"""The transactional ids and their transactions; open ones that nobody will end come first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from http import HTTPStatus

from msgspec import Struct

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.open_transactions import (
    OpenTransaction,
    began_ms,
    how_it_ends,
    may_abort,
    open_transactions,
    what_ends_it,
)
from odradek.broker.console.paging import PageRequest, page_of
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.broker.http.messages import HttpError
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.transactions.states import PREPARED, TransactionState
from odradek.coordinator.transactions.transaction import NO_TIME, Transaction
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

EVERY_S = 2.0
HANGING = "Hanging"
# A coordinator that ends a transaction answers CONCURRENT_TRANSACTIONS until its markers are there.
RETRY_S = 0.05
RETRIES = 100
_OPEN_STATES = frozenset(each.client_name for each in {TransactionState.ONGOING, *PREPARED})


class TransactionsRequest(PageRequest):
    """`open_only`: without the transactional ids that have no transaction open.

    `search` is a part of a transactional id, or of a topic in which a transaction hangs.
    """

    open_only: bool = False


class TransactionPartition(View):
    """A partition of a transaction.

    `start_offset` is null if it has no records there, or the client may not read the topic.
    """

    topic: str
    partition: int
    start_offset: int | None
    held_back_records: int | None


class TransactionView(View):
    """The transaction of a transactional id.

    `state` is Kafka's word, or `Hanging`: it is open in partitions, and no coordinator will end it.
    Then `transactional_id` is null if no coordinator knows the producer, or the client may not
    describe it. `ends` says how an open transaction ends; null if the client may not describe its
    transactional id. `may_abort`: the client may abort the open transaction, if it may read one of
    its topics.
    """

    transactional_id: str | None
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int | None
    started_ms: int | None
    running_ms: int | None
    ends: str | None
    may_abort: bool
    partitions: list[TransactionPartition]


class TransactionsView(View):
    """A page: hanging transactions, then open ones, the oldest first, then idle ids by name."""

    total: int
    transactions: list[TransactionView]


class TerminateRequest(View):
    """The transactional id whose open transaction is to be aborted."""

    transactional_id: str


class _Row(Struct, frozen=True, kw_only=True):
    """A transaction of the list. `hanging`: what hangs, of one producer and epoch.

    `is_hidden`: `known` is None because the client may not describe the transactional id.
    """

    known: Transaction | None
    is_hidden: bool = False
    hanging: tuple[OpenTransaction, ...] = ()

    @property
    def order(self) -> tuple[int, int, str]:
        known = self.known
        name = "" if known is None else known.transactional_id
        if self.hanging:
            return 0, self.hanging[0].producer_id, name
        assert known is not None
        return (1, known.start_ms, name) if known.is_open else (2, 0, name)


async def transactions(call: Call, request: TransactionsRequest) -> TransactionsView:
    """Make a page. Has the transactional ids that the client may describe."""
    broker = call.observed.broker
    # The logs first: what is open in one of them then, the coordinator knows until it has ended.
    in_logs = list(open_transactions(call, call.sliced(broker.log_manager.logs())))
    known = list(broker.coordinators.transactions.transactions(call.slices.step))
    rows = list(_hanging_rows(call, request, in_logs, known))
    rows += [
        _Row(known=each)
        for each in call.sliced(known)
        if (not request.open_only or each.is_open)
        and request.matches(each.transactional_id)
        and _may_describe(call, each)
    ]
    page = page_of(call, rows, lambda row: row.order, request)
    return TransactionsView(
        total=len(rows), transactions=[await _view(call, row) for row in call.sliced(page)]
    )


def _may_describe(call: Call, transaction: Transaction) -> bool:
    name = transaction.transactional_id
    return call.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name)


def _may_read(call: Call, topic: str) -> bool:
    return call.may(AclOperation.READ, ResourceType.TOPIC, topic)


def _hanging_rows(
    call: Call,
    request: TransactionsRequest,
    in_logs: list[OpenTransaction],
    known: list[Transaction],
) -> Iterator[_Row]:
    if not in_logs:
        return
    by_producer = {each.producer_id: each for each in call.sliced(known)}
    found: dict[tuple[int, int], list[OpenTransaction]] = {}
    for each in call.sliced(in_logs):
        owner = by_producer.get(each.producer_id)
        is_owned = owner is not None and owner.will_end(each.log.key, each.producer_epoch)
        if not is_owned and each.is_still_open and _may_read(call, each.log.topic):
            found.setdefault((each.producer_id, each.producer_epoch), []).append(each)
    for (producer_id, _), hanging in call.sliced(iter(found.items())):
        owner = by_producer.get(producer_id)
        is_hidden = owner is not None and not _may_describe(call, owner)
        if is_hidden:
            owner = None
        names = [] if owner is None else [owner.transactional_id]
        names += [each.log.topic for each in hanging]
        if any(request.matches(name) for name in names):
            yield _Row(known=owner, is_hidden=is_hidden, hanging=tuple(hanging))


async def _view(call: Call, row: _Row) -> TransactionView:
    known, now_ms = row.known, call.observed.broker.clock.now_ms()
    if row.hanging:
        first = row.hanging[0]
        started_ms = await began_ms(call, first.log, first.first_offset)
        partitions = [
            TransactionPartition(
                topic=each.log.topic,
                partition=each.log.partition,
                start_offset=each.first_offset,
                held_back_records=each.held_back,
            )
            for each in call.sliced(row.hanging)
        ]
        return TransactionView(
            transactional_id=None if known is None else known.transactional_id,
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            state=HANGING,
            timeout_ms=None,
            started_ms=started_ms,
            running_ms=None if started_ms is None else now_ms - started_ms,
            ends=None if row.is_hidden else what_ends_it(first, known),
            may_abort=may_abort(call, None),
            partitions=partitions,
        )
    assert known is not None
    started_ms = known.start_ms if known.is_open and known.start_ms != NO_TIME else None
    return TransactionView(
        transactional_id=known.transactional_id,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        state=known.state.client_name,
        timeout_ms=known.timeout_ms,
        started_ms=started_ms,
        running_ms=None if started_ms is None else now_ms - started_ms,
        ends=how_it_ends(known) if known.is_open else None,
        may_abort=known.is_open and may_abort(call, known),
        partitions=list(_partitions(call, known)) if known.is_open else [],
    )


def _partitions(call: Call, transaction: Transaction) -> Iterator[TransactionPartition]:
    manager = call.observed.broker.log_manager
    by_topic = transaction.partitions_by_topic(call.slices.step)
    for topic, partitions in call.sliced(iter(by_topic.items())):
        if not call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic):
            continue
        may_read = _may_read(call, topic)
        for partition in call.sliced(partitions):
            log = manager.find(topic, partition) if may_read else None
            start = None if log is None else log.producers.open_since(transaction.producer_id)
            held_back = None
            if log is not None and start is not None:
                held_back = max(log.high_watermark - start, 0)
            yield TransactionPartition(
                topic=topic, partition=partition, start_offset=start, held_back_records=held_back
            )


async def terminate(call: Call, transactional_id: str) -> None:
    """Abort the open transaction of a transactional id, in all its partitions, and fence its

    producer. Needs WRITE on the transactional id. Raises ApiError, HttpError.
    Kafka: kafka-transactions.sh forceTerminateTransaction.
    """
    described = await call.ask(
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        DescribeTransactionsResponse,
    )
    (state,) = described.transaction_states
    check_code(state.error_code, f"transactional id {transactional_id}")
    if state.transaction_state not in _OPEN_STATES:
        text = f"transactional id {transactional_id} has no transaction open"
        raise HttpError(HTTPStatus.CONFLICT, text)
    longest_ms = call.observed.broker.config.transaction_max_timeout_ms
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=min(state.transaction_timeout_ms, longest_ms),
    )
    for _ in range(RETRIES):
        answer = await call.ask(request, InitProducerIdResponse)
        if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            break
        await asyncio.sleep(RETRY_S)
    check_code(answer.error_code, f"the transaction of {transactional_id} was not ended")


async def terminate_transaction(call: Call, request: TerminateRequest) -> Nothing:
    """See `terminate`."""
    await terminate(call, request.transactional_id)
    return Nothing()


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/transactions",
        summary="The transactions; those that hang, then those that are open, come first.",
        handle=transactions,
        request=TransactionsRequest,
        response=TransactionsView,
        every_s=EVERY_S,
    ),
    Endpoint(
        method="POST",
        template="/transactions/terminate",
        summary="Abort the open transaction of a transactional id, and fence its producer.",
        handle=terminate_transaction,
        request=TerminateRequest,
        response=Nothing,
    ),
)
