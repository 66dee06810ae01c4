"""AddPartitionsToTxn (key 24, v0-5).

Adds partitions to a transaction; the first ones begin it. All partitions are added or none: if one
is refused, the others get OPERATION_NOT_ATTEMPTED.
v2 clients know PRODUCER_FENCED · v4 has several transactions, and can check instead of add; brokers
send it to each other, so it needs access to the cluster, not to the topics · v5 answers with
TRANSACTION_ABORTABLE (KIP-890)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.transactions.producer_errors import known_producer_error
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.storage.topic_names import is_internal
from odradek.storage.topic_partition import TopicPartition

FIRST_VERSION_WITH_FENCED = 2
FIRST_VERSION_OF_BROKERS = 4

Errors = Mapping[TopicPartition, ErrorCode]


def handle(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    if context.api_version < FIRST_VERSION_OF_BROKERS:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        topics = topic_results(context, transaction, errors_of(context, transaction))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
    if not context.authorize_cluster(AclOperation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    errors = {
        producer_of(transaction): errors_of(context, transaction)
        for transaction in context.sliced(united(context.sliced(request.transactions)))
    }
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=topic_results(context, transaction, errors[producer_of(transaction)]),
            )
            for transaction in context.sliced(request.transactions)
        ]
    )


def producer_of(transaction: AddPartitionsToTxnTransaction) -> tuple[str, int, int, bool]:
    """Everything of an entry but its partitions."""
    return (
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.verify_only,
    )


def united(
    transactions: Iterable[AddPartitionsToTxnTransaction],
) -> Iterator[AddPartitionsToTxnTransaction]:
    """The entries, those of the same producer as one: each addition writes all partitions again."""
    by_producer: dict[tuple[str, int, int, bool], list[AddPartitionsToTxnTransaction]] = {}
    for transaction in transactions:
        by_producer.setdefault(producer_of(transaction), []).append(transaction)
    for (transactional_id, producer_id, epoch, verify_only), same in by_producer.items():
        yield AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=[topic for each in same for topic in each.topics],
        )


def errors_of(context: RequestContext, transaction: AddPartitionsToTxnTransaction) -> Errors:
    """Add or check the partitions of one transaction. Returns the error of each partition."""
    partitions = partitions_of(context, transaction.topics)
    is_client = context.api_version < FIRST_VERSION_OF_BROKERS
    transactional_id = transaction.transactional_id
    if is_client and not context.authorize(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        return dict.fromkeys(partitions, refusal(ResourceType.TRANSACTIONAL_ID).code)
    invalid = invalid_partitions(context, partitions, checks_access=is_client)
    if invalid:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | invalid
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    coordinator = context.broker.coordinators.transactions
    try:
        if transaction.verify_only:
            missing = coordinator.missing_partitions(transactional_id, producer, set(partitions))
            return dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)
        coordinator.add_partitions(
            transactional_id,
            producer,
            set(partitions),
            client_version=0 if is_client else 2,
        )
    except ApiError as error:
        code = known_producer_error(
            error.code, knows_fenced=context.api_version >= FIRST_VERSION_WITH_FENCED
        )
        return dict.fromkeys(partitions, code)
    return {}


def invalid_partitions(
    context: RequestContext, partitions: Iterable[TopicPartition], *, checks_access: bool
) -> dict[TopicPartition, ErrorCode]:
    """The errors of partitions that do not exist, or to which the client may not write."""
    topics = context.broker.metadata.topics
    allowed: dict[str, bool] = {}
    errors = {}
    for partition in context.sliced(partitions):
        name, index = partition
        if name not in allowed:
            allowed[name] = not checks_access or (
                not is_internal(name)
                and context.authorize(AclOperation.WRITE, ResourceType.TOPIC, name)
            )
        topic = topics.get(name)
        if not allowed[name]:
            errors[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or index not in topic.partitions:
            errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors


def partitions_of(
    context: RequestContext, topics: Sequence[AddPartitionsToTxnTopic]
) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for topic in context.sliced(topics)
        for index in context.sliced(topic.partitions)
    ]


def topic_results(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction, errors: Errors
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=errors.get(
                        TopicPartition(topic.name, index), ErrorCode.NONE
                    ),
                )
                for index in context.sliced(topic.partitions)
            ],
        )
        for topic in context.sliced(transaction.topics)
    ]
