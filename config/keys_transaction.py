"""Keys of transactions and of `__transaction_state`."""

from .key import Bool, Int, KeyModel, Short, key


class TransactionKeys(KeyModel):
    """Kafka: TransactionLogConfig, TransactionStateManagerConfig, AddPartitionsToTxnConfig."""

    transaction_state_log_num_partitions: Int = key(
        50, "Number of partitions of __transaction_state.", ge=1
    )
    transaction_state_log_replication_factor: Short = key(
        3,
        "Number of replicas of __transaction_state. Not used: 1, or with `odradek.nodes` up to 3.",
        ge=1,
    )
    transaction_state_log_min_isr: Int = key(
        2, "min.insync.replicas of __transaction_state; without effect on a single node.", ge=1
    )
    transaction_state_log_segment_bytes: Int = key(
        104_857_600, "segment.bytes of __transaction_state.", ge=1
    )
    transaction_max_timeout_ms: Int = key(
        900_000, "Maximum transaction timeout that a producer may request.", ge=1
    )
    transaction_partition_verification_enable: Bool = key(
        True, "Whether a transactional write is refused if its partition is not in the transaction."
    )
    add_partitions_to_txn_retry_backoff_ms: Int = key(
        20, "Interval between two tries to add a written partition to a transaction.", ge=1
    )
    add_partitions_to_txn_retry_backoff_max_ms: Int = key(
        100,
        "How long a write waits for the end of the producer's last transaction before it is"
        " refused.",
        ge=0,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Int = key(
        10_000, "How often transactions are checked for timeout.", ge=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: Int = key(
        3_600_000, "How often transactional ids are checked for expiry.", ge=1
    )
    transaction_two_phase_commit_enable: Bool = key(
        False, "Whether a producer may keep transactions open without a timeout (KIP-939)."
    )
    transactional_id_expiration_ms: Int = key(
        604_800_000, "Time after which an unused transactional id is forgotten.", ge=1
    )
