"""The producers of a partition, and the open transactions that hold back its readers."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint
from odradek.broker.console.open_transactions import (
    OpenTransaction,
    began_ms,
    may_abort,
    transactions_of,
    what_ends_it,
)
from odradek.broker.console.paging import Page, page_of
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.broker.http.messages import HttpError
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.runtime.steps import free
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.messages.describe_producers import (
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WriteTxnMarkersTopic,
)
from odradek.storage.log import PartitionLog

from .topic import described_log
from .transactions import terminate

EVERY_S = 2.0


class ProducersRequest(Page, kw_only=True):
    """A page of the producers of a partition."""

    topic: str
    partition: int


class ProducerView(View):
    """A producer that the partition knows.

    If it has a transaction open, `transaction_start_offset` is where that begins, and
    `held_back_records` how many offsets consumers of committed records do not get because of it.
    `transaction_start_ms` is the coordinator's time, or that of the first record. `is_hanging`: no
    coordinator will end it. `ends` says how it ends. `transactional_id` is null if no coordinator
    has one for the producer, or the client may not describe it. `may_abort`: the client may abort
    the transaction.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int | None = None
    transaction_start_ms: int | None = None
    transactional_id: str | None = None
    held_back_records: int | None = None
    is_hanging: bool = False
    ends: str | None = None
    may_abort: bool = False


class ProducersView(View):
    """A page: the producers with open transactions, the oldest first; then those that wrote last.

    `total` is how many producers there are without paging.
    """

    last_stable_offset: int
    high_watermark: int
    log_end_offset: int
    held_back_records: int
    total: int
    producers: list[ProducerView]


class AbortRequest(View):
    """The open transaction to abort.

    If a coordinator has it, the coordinator aborts it in all its partitions, and its producer is
    fenced. `marker_only` writes the marker to this partition nevertheless, as kafka-transactions.sh
    abort does: a producer that is alive does not notice, and loses what it commits later.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    transaction_start_offset: int
    marker_only: bool = False


class Aborted(View):
    """Who has ended the transaction."""

    ended_by: Literal["coordinator", "marker"]


async def producers(call: Call, request: ProducersRequest) -> ProducersView:
    """Make a page. Needs READ on the topic."""
    log = described_log(call, request.topic, request.partition)
    states = await _states(call, request.topic, request.partition)
    total = len(states)
    page = page_of(call, states, _order, request)
    free(call.slices.step, states)
    open_ids = [each.producer_id for each in page if each.current_txn_start_offset >= 0]
    known = transactions_of(call, open_ids)
    views = [
        await _view(call, log, each, known.get(each.producer_id)) for each in call.sliced(page)
    ]
    stable = log.last_stable_offset
    return ProducersView(
        last_stable_offset=stable,
        high_watermark=log.high_watermark,
        log_end_offset=log.log_end_offset,
        held_back_records=log.high_watermark - stable,
        total=total,
        producers=views,
    )


async def _states(call: Call, topic: str, partition: int) -> list[DescribeProducersProducerState]:
    """The producers of a partition, of which there may be very many. Raises ApiError."""
    wanted = DescribeProducersTopic(name=topic, partition_indexes=[partition])
    answer = await call.ask(DescribeProducersRequest(topics=[wanted]), DescribeProducersResponse)
    (result,) = answer.topics[0].partitions
    check_code(result.error_code, result.error_message)
    return result.active_producers


def _order(state: DescribeProducersProducerState) -> tuple[bool, int]:
    """By this key the oldest open transactions come first, then the producers that wrote last."""
    start = state.current_txn_start_offset
    return (False, start) if start >= 0 else (True, -state.last_timestamp)


async def _view(
    call: Call,
    log: PartitionLog,
    state: DescribeProducersProducerState,
    known: Transaction | None,
) -> ProducerView:
    view = ProducerView(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp_ms=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
    )
    open_ = _open_transaction(log, state)
    if not open_.is_still_open:
        return view
    is_owned = known is not None and known.will_end(log.key, open_.producer_epoch)
    view.transaction_start_offset = open_.first_offset
    view.held_back_records = open_.held_back
    view.is_hanging = not is_owned
    view.may_abort = may_abort(call, known if is_owned else None)
    if known is not None and is_owned:
        view.transaction_start_ms = known.start_ms
    else:
        view.transaction_start_ms = await began_ms(call, log, open_.first_offset)
    if known is None or call.may(
        AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, known.transactional_id
    ):
        view.transactional_id = None if known is None else known.transactional_id
        view.ends = what_ends_it(open_, known)
    return view


def _open_transaction(log: PartitionLog, state: DescribeProducersProducerState) -> OpenTransaction:
    return OpenTransaction(
        log=log,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        first_offset=state.current_txn_start_offset,
    )


async def abort(call: Call, request: AbortRequest) -> Aborted:
    """Abort an open transaction. Needs READ on the topic, and ALTER on the cluster or WRITE on the

    transactional id. Raises ApiError, HttpError.
    """
    log = described_log(call, request.topic, request.partition)
    state = await _state_of(call, request)
    known = transactions_of(call, [request.producer_id]).get(request.producer_id)
    is_owned = known is not None and known.will_end(log.key, state.producer_epoch)
    if known is not None and is_owned and not request.marker_only:
        await terminate(call, known.transactional_id)
        return Aborted(ended_by="coordinator")
    topic = WriteTxnMarkersTopic(name=request.topic, partition_indexes=[request.partition])
    marker = WriteTxnMarkersMarker(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=max(state.coordinator_epoch, 0),
    )
    answer = await call.ask(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
    (result,) = answer.markers[0].topics[0].partitions
    check_code(result.error_code, f"no marker was written to {log.name}")
    return Aborted(ended_by="marker")


async def _state_of(call: Call, request: AbortRequest) -> DescribeProducersProducerState:
    """What the partition knows of the producer. Raises ApiError, HttpError."""
    wanted = (request.producer_id, request.producer_epoch, request.transaction_start_offset)
    states = await _states(call, request.topic, request.partition)
    found = [
        each
        for each in call.sliced(states)
        if wanted == (each.producer_id, each.producer_epoch, each.current_txn_start_offset)
    ]
    free(call.slices.step, states)
    if found:
        return found[0]
    raise HttpError(
        HTTPStatus.CONFLICT,
        f"producer {request.producer_id} of epoch {request.producer_epoch} has no transaction open"
        f" from offset {request.transaction_start_offset} on: it may have ended meanwhile",
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/topics/{topic}/partitions/{partition}/producers",
        summary="The producers of a partition, and their open transactions.",
        handle=producers,
        request=ProducersRequest,
        response=ProducersView,
        every_s=EVERY_S,
    ),
    Endpoint(
        method="POST",
        template="/topics/{topic}/partitions/{partition}/abort",
        summary="Abort the open transaction of a producer.",
        handle=abort,
        request=AbortRequest,
        response=Aborted,
    ),
)
