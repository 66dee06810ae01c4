"""ListTransactions (key 66): the transactional ids of a coordinator that match a filter."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Int64, Message, String, Struct, since


class ListTransactionsRequest(Message, key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+"):
    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Annotated[Int64, since(1)] = -1
    transactional_id_pattern: Annotated[String | None, since(2)] = None


class ListTransactionsTransaction(Struct):
    transactional_id: String
    producer_id: Int64
    transaction_state: String


class ListTransactionsResponse(
    Message, key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = []
    transaction_states: list[ListTransactionsTransaction] = []
