"""The transactional ids of one partition of `__transaction_state`."""

from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.table import TransactionTable
from odradek.coordinator.transactions.transaction import Transaction


def test_ids_that_expire_while_all_are_listed_are_left_out() -> None:
    table = TransactionTable()
    for name in "abc":
        table.by_id[name] = Transaction(
            transactional_id=name, producer_id=7, timeout_ms=1, last_update_ms=0
        )
    completed = table.by_id["c"].become(TransactionState.ONGOING)

    def expire() -> None:
        table.by_id.pop("b", None)
        table.completed["c"] = completed

    a = table.by_id["a"]
    assert list(table.all(expire)) == [a, completed]
