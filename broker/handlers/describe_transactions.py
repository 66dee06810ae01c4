"""DescribeTransactions (key 65, v0).

Describes transactional ids: the state of the open transaction, or of the last one, and its
partitions. Partitions of topics that the client may not describe are left out. An id that a request
repeats is described once: a short request could otherwise cause a huge response."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.turns.seen import distinct
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsTopic,
    DescribeTransactionsTransaction,
)


def handle(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            describe(context, each) for each in distinct(context.sliced(request.transactional_ids))
        ]
    )


def describe(context: RequestContext, transactional_id: str) -> DescribeTransactionsTransaction:
    try:
        context.check(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        transaction = context.broker.coordinators.transactions.describe(transactional_id)
    except ApiError as error:
        return DescribeTransactionsTransaction(
            error_code=error.code,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return DescribeTransactionsTransaction(
        transactional_id=transactional_id,
        transaction_state=transaction.state.client_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            DescribeTransactionsTopic(topic=topic, partitions=partitions)
            for topic, partitions in context.sliced(
                iter(transaction.partitions_by_topic(context.step).items())
            )
            if context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
        ],
    )
