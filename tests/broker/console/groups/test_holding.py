"""The transaction that holds a partition back ends while the console looks for it."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from odradek.broker.console.calls import Call
from odradek.broker.console.groups.holding import holders_of
from odradek.coordinator.runtime.steps import Step, no_step
from tests.support.log_box import NOW_MS, LogBox, batch_of
from tests.support.log_files import end_transaction


async def look_up(read: Callable[[], Any]) -> Any:
    return read()


async def test_a_transaction_that_has_ended_meanwhile_is_not_hanging(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    batch = batch_of(b"x", producer=(7, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)

    def end_and_list(_step: Step) -> list[object]:
        end_transaction(log, 7, aborts=False)
        return []

    broker = SimpleNamespace(
        coordinators=SimpleNamespace(transactions=SimpleNamespace(transactions=end_and_list)),
        fetching=SimpleNamespace(cold_reads=SimpleNamespace(look_up=look_up)),
    )
    call = SimpleNamespace(
        sliced=iter,
        slices=SimpleNamespace(step=no_step),
        observed=SimpleNamespace(broker=broker),
    )
    assert await holders_of(cast(Call, call), [log]) == {}
