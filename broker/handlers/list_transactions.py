"""ListTransactions (key 66, v0-2).

Lists the transactional ids that match the filters and that the client may describe.
v1 adds a filter by duration (KIP-994) · v2 a filter by a regular expression (KIP-1152)."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.consumer_groups.subscription_regex import compile_pattern
from odradek.coordinator.runtime.steps import free
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsTransaction,
)

STATES = {state.client_name: state for state in TransactionState}


def handle(context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    text = request.transactional_id_pattern
    pattern = compile_pattern(text) if text else None
    producer_ids = set(context.sliced(request.producer_id_filters))
    states: set[str] = set()
    unknown_states: list[str] = []
    for name in context.sliced(request.state_filters):
        if name in STATES:
            states.add(name)
        else:
            unknown_states.append(name)
    oldest_ms = context.now_ms - request.duration_filter
    found = [
        ListTransactionsTransaction(
            transactional_id=each.transactional_id,
            producer_id=each.producer_id,
            transaction_state=each.state.client_name,
        )
        for each in context.broker.coordinators.transactions.transactions(context.step)
        if (not producer_ids or each.producer_id in producer_ids)
        and (not request.state_filters or each.state.client_name in states)
        and (request.duration_filter < 0 or each.start_ms < oldest_ms)
        and (pattern is None or pattern.fullmatch(each.transactional_id))
        and may_describe(context, each)
    ]
    free(context.step, producer_ids)
    return ListTransactionsResponse(unknown_state_filters=unknown_states, transaction_states=found)


def may_describe(context: RequestContext, transaction: Transaction) -> bool:
    transactional_id = transaction.transactional_id
    return context.authorize(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
