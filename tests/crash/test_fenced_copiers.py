"""A client that was stopped in a transaction wakes up after another has taken over its work.

It must be told that it is fenced, whatever it does next, and nothing of its transaction may become
visible. Three clients are stopped one after the other, each at another step of its transaction.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.crash.copiers.clients import JAVA, PYTHON, Client
from tests.crash.copiers.rig import LOOK_SECONDS, SETTINGS, Rig
from tests.crash.copiers.task import STEPS
from tests.crash.exactly_once import faults
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import only_long

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 90.0
IN_LONG_RUNS = [pytest.mark.java, only_long("the clients of Python are fenced")]


@pytest.mark.parametrize(
    "clients",
    [pytest.param(PYTHON, id="python"), pytest.param(JAVA, id="java", marks=IN_LONG_RUNS)],
)
def test_a_client_that_wakes_up_after_its_successor_began_is_fenced(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path, clients: Sequence[Client]
) -> None:
    broker = start_broker(**SETTINGS)
    try:
        rig = Rig(broker, clients, tmp_path)
    except LookupError as why:
        pytest.skip(str(why))
    try:
        rig.source.write(1)
        rig.source.end()
        for count, step in enumerate(STEPS, 1):
            for copier in rig.copiers:
                copier.start(hold=step)
            wait_for(rig, "holding", count)
            for copier in rig.copiers:
                copier.freeze()
        rig.start_all()
        wait_for(rig, "committed", 1)
        for copier in rig.copiers:
            copier.thaw()
        wait_for(rig, "fenced", len(STEPS))
        rig.drain()
        for copier in rig.copiers:
            assert set(copier.reports("fenced")) == {copier.client.fenced}, rig.told()
        zombies = {copier.name: set(copier.reports("holding")) for copier in rig.copiers}
        for name, history in rig.histories().items():
            assert faults(history) == [], rig.told()
            seen = {copied.transaction for copied in history.copies()}
            assert zombies[name].isdisjoint(seen)
    finally:
        rig.close()


def wait_for(rig: Rig, kind: str, count: int) -> None:
    """Wait until every copier has reported so much of this kind."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while any(len(copier.reports(kind)) < count for copier in rig.copiers):
        assert time.monotonic() < deadline, rig.told()
        time.sleep(LOOK_SECONDS)
