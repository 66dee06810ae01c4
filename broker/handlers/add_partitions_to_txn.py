"""AddPartitionsToTxn (key 24, v0-5).

Adds partitions to a transaction; the first ones begin it. All partitions are added or none: if one
is refused, the others get OPERATION_NOT_ATTEMPTED.
v2 clients know PRODUCER_FENCED · v4 has several transactions, and can check instead of add; brokers
send it to each other, so it needs access to the cluster, not to the topics · v5 answers with
TRANSACTION_ABORTABLE (KIP-890)."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.transactions.producer_errors import known_producer_error
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.steps import free
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


class Errors(NamedTuple):
    """The errors of partitions; `others`: of those that are not in `by_partition`."""

    others: ErrorCode
    by_partition: dict[TopicPartition, ErrorCode]

    def of(self, partition: TopicPartition) -> ErrorCode:
        return self.by_partition.get(partition, self.others)


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
        of_client = errors_of(context, transaction)
        topics = topic_results(context, transaction, of_client)
        free(context.step, of_client.by_partition)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
    if not context.authorize_cluster(AclOperation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    errors = {
        producer_of(transaction): errors_of(context, transaction)
        for transaction in united(context, request.transactions)
    }
    results = [
        AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id,
            topic_results=topic_results(context, transaction, errors[producer_of(transaction)]),
        )
        for transaction in context.sliced(request.transactions)
    ]
    for of_producer in context.sliced(iter(errors.values())):
        free(context.step, of_producer.by_partition)
    free(context.step, errors)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def producer_of(transaction: AddPartitionsToTxnTransaction) -> tuple[str, int, int, bool]:
    """Everything of an entry but its partitions."""
    return (
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.verify_only,
    )


def united(
    context: RequestContext, transactions: Iterable[AddPartitionsToTxnTransaction]
) -> Iterator[AddPartitionsToTxnTransaction]:
    """The entries, those of the same producer as one: each addition writes all partitions again."""
    by_producer: dict[tuple[str, int, int, bool], list[AddPartitionsToTxnTransaction]] = {}
    for transaction in context.sliced(transactions):
        by_producer.setdefault(producer_of(transaction), []).append(transaction)
    for producer, same in context.sliced(iter(by_producer.items())):
        transactional_id, producer_id, epoch, verify_only = producer
        yield AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=[topic for each in context.sliced(same) for topic in each.topics],
        )
    free(context.step, by_producer)


def errors_of(context: RequestContext, transaction: AddPartitionsToTxnTransaction) -> Errors:
    """Add or check the partitions of one transaction. Returns the error of each partition."""
    is_client = context.api_version < FIRST_VERSION_OF_BROKERS
    if is_client and not context.authorize(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id
    ):
        return Errors(refusal(ResourceType.TRANSACTIONAL_ID).code, {})
    partitions = partitions_of(context, transaction.topics)
    invalid = invalid_partitions(context, partitions, checks_access=is_client)
    if invalid:
        errors = Errors(ErrorCode.OPERATION_NOT_ATTEMPTED, invalid)
    else:
        errors = errors_of_transaction(context, transaction, partitions)
    free(context.step, partitions)
    return errors


def errors_of_transaction(
    context: RequestContext,
    transaction: AddPartitionsToTxnTransaction,
    partitions: AbstractSet[TopicPartition],
) -> Errors:
    """Add or check partitions that exist, and to which the client may write."""
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    transactional_id = transaction.transactional_id
    coordinator = context.broker.coordinators.transactions
    is_client = context.api_version < FIRST_VERSION_OF_BROKERS
    missing: list[TopicPartition] = []
    try:
        if transaction.verify_only:
            missing = coordinator.missing_partitions(
                transactional_id, producer, partitions, context.step
            )
        else:
            coordinator.add_partitions(
                transactional_id,
                producer,
                partitions,
                client_version=0 if is_client else 2,
                step=context.step,
            )
    except ApiError as error:
        code = known_producer_error(
            error.code, knows_fenced=context.api_version >= FIRST_VERSION_WITH_FENCED
        )
        return Errors(code, {})
    code = ErrorCode.TRANSACTION_ABORTABLE
    return Errors(ErrorCode.NONE, dict.fromkeys(context.sliced(missing), code))


def invalid_partitions(
    context: RequestContext, partitions: AbstractSet[TopicPartition], *, checks_access: bool
) -> dict[TopicPartition, ErrorCode]:
    """The errors of partitions that do not exist, or to which the client may not write."""
    topics = context.broker.metadata.topics
    allowed: dict[str, bool] = {}
    errors = {}
    for partition in context.sliced(iter(partitions)):
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
) -> set[TopicPartition]:
    return {
        TopicPartition(topic.name, index)
        for topic in context.sliced(topics)
        for index in context.sliced(topic.partitions)
    }


def topic_results(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction, errors: Errors
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=errors.of(TopicPartition(topic.name, index)),
                )
                for index in context.sliced(topic.partitions)
            ],
        )
        for topic in context.sliced(transaction.topics)
    ]
