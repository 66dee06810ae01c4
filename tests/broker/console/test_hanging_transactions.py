"""The list of transactions, with one that hangs, for clients that may not see all of it."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from odradek.broker.console.calls import Call
from odradek.broker.console.views.transactions import (
    TransactionsRequest,
    TransactionView,
    transactions,
)
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.transactions.transaction import Transaction
from tests.support.log_box import NOW_MS, LogBox, batch_of

Rule = tuple[AclOperation, ResourceType]
READ: Rule = (AclOperation.READ, ResourceType.TOPIC)
ALTER: Rule = (AclOperation.ALTER, ResourceType.CLUSTER)
DESCRIBE: Rule = (AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)


async def look_up(read: Callable[[], Any]) -> Any:
    return read()


async def hanging(directory: Path, *allowed: Rule) -> TransactionView:
    """What a client sees of a transaction whose transactional id "pay" has another epoch by now."""
    log = LogBox(directory).open()
    batch = batch_of(b"x", producer=(7, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    owner = Transaction(
        transactional_id="pay",
        producer_id=7,
        producer_epoch=1,
        timeout_ms=1,
        last_update_ms=NOW_MS,
    )
    broker = SimpleNamespace(
        clock=SimpleNamespace(now_ms=lambda: NOW_MS),
        coordinators=SimpleNamespace(
            transactions=SimpleNamespace(transactions=lambda _step: [owner])
        ),
        fetching=SimpleNamespace(cold_reads=SimpleNamespace(look_up=look_up)),
        log_manager=SimpleNamespace(logs=lambda: iter([log])),
    )
    call = SimpleNamespace(
        sliced=iter,
        slices=SimpleNamespace(step=no_step),
        observed=SimpleNamespace(broker=broker),
        may=lambda operation, kind, _name: (operation, kind) in allowed,
        may_change_cluster=lambda operation: (operation, ResourceType.CLUSTER) in allowed,
    )
    page = await transactions(cast(Call, call), TransactionsRequest(open_only=True))
    [view] = page.transactions
    return view


async def test_what_ends_it_is_said_to_those_who_may_describe_its_id(tmp_path: Path) -> None:
    view = await hanging(tmp_path, READ, DESCRIBE)
    assert (view.transactional_id, view.state) == ("pay", "Hanging")
    assert view.ends is not None
    assert "transactional id pay is Empty with epoch 1" in view.ends


async def test_nothing_is_said_of_an_id_that_the_client_may_not_describe(tmp_path: Path) -> None:
    view = await hanging(tmp_path, READ)
    assert (view.transactional_id, view.state, view.ends) == (None, "Hanging", None)


async def test_who_may_alter_the_cluster_may_abort_it(tmp_path: Path) -> None:
    assert not (await hanging(tmp_path / "1", READ)).may_abort
    assert (await hanging(tmp_path / "2", READ, ALTER)).may_abort
