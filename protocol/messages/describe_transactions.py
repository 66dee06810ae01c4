"""DescribeTransactions (key 65): state of transactional ids, and their open partitions."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Int64, Message, String, Struct


class DescribeTransactionsRequest(
    Message, key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+"
):
    transactional_ids: list[String]


class DescribeTransactionsTopic(Struct):
    topic: String
    partitions: list[Int32]


class DescribeTransactionsTransaction(Struct):
    error_code: Int16 = 0
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: list[DescribeTransactionsTopic]


class DescribeTransactionsResponse(
    Message, key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    transaction_states: list[DescribeTransactionsTransaction]
