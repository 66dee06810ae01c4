"""Tells whether a coordinator will end an open transaction, and what to do if none will.

A transaction is hanging if its coordinator does not have the partition, or has an older epoch of
the producer: then no marker will come. The last stable offset of the partition stays where the
transaction begins.

Kafka: TransactionsCommand.FindHangingTransactionsCommand.
"""

from odradek.coordinator.transactions.states import PREPARED
from odradek.coordinator.transactions.transaction import Transaction
from odradek.storage.inspect.open_transactions import OpenTransaction
from odradek.storage.time_text import rounded, utc
from odradek.storage.topic_partition import TopicPartition

from .stored_transactions import StoredTransactions

_TOOL = "kafka-transactions.sh --bootstrap-server HOST:PORT"


def owner_of(
    open_: OpenTransaction, where: TopicPartition, stored: StoredTransactions
) -> Transaction | None:
    """Return the transaction whose end will write a marker there; None if there is none."""
    of_producer = stored.of_producer(open_.producer_id)
    return next((each for each in of_producer if each.will_end(where, open_.producer_epoch)), None)


def described(open_: OpenTransaction, now_ms: int) -> str:
    """Describe an open transaction: its producer, first offset, age and last write."""
    since = ""
    if open_.first_timestamp_ms >= 0:
        age = rounded(max(now_ms - open_.first_timestamp_ms, 0))
        since = f", since {utc(open_.first_timestamp_ms)} (for {age})"
    return (
        f"the transaction of producer id {open_.producer_id}, epoch {open_.producer_epoch}, is open"
        f" from offset {open_.first_offset} on{since}, last written {utc(open_.last_timestamp_ms)}"
    )


def why_hanging(open_: OpenTransaction, stored: StoredTransactions) -> str:
    """Say what the coordinator knows instead of the transaction."""
    for each in stored.of_producer(open_.producer_id):
        return (
            f"transactional id {each.transactional_id} has this producer id with"
            f" epoch {each.producer_epoch}, is {each.state.client_name}, and will not end it"
        )
    return "no transactional id has this producer id"


def what_ends_it(open_: OpenTransaction, where: TopicPartition, stored: StoredTransactions) -> str:
    """Say who has an open transaction, and how it ends.

    While a broker is running, the log and `stored` are of different times, so this may be wrong.
    """
    owner = owner_of(open_, where, stored)
    if owner is None:
        why = f"it seems to be hanging: {why_hanging(open_, stored)}"
        if not stored.is_complete:
            why = "no transactional id that can be read here has it"
        return (
            f"{why}; odradek verify tells whether it is hanging; then end it with:"
            f" {how_to_abort(open_, where)}"
        )
    has_it = f"transactional id {owner.transactional_id} has it, {owner.state.client_name}"
    if owner.state in PREPARED:
        return f"{has_it}: the broker writes its marker as soon as it can"
    return (
        f"{has_it}: it ends with its producer, after its timeout of {owner.timeout_ms} ms, or by:"
        f" {how_to_terminate(owner)}"
    )


def how_to_abort(open_: OpenTransaction, where: TopicPartition) -> str:
    """The command that ends a hanging transaction."""
    topic, partition = where
    place = f"--topic {topic} --partition {partition}"
    return f"{_TOOL} abort {place} --start-offset {open_.first_offset}"


def how_to_terminate(transaction: Transaction) -> str:
    """The command that ends a transaction which its coordinator knows."""
    return f"{_TOOL} forceTerminateTransaction --transactionalId {transaction.transactional_id}"
