"""kill -9 of the broker and of its clients, while every client copies a topic exactly once.

The clients of a family copy the same topic at the same time, each to a topic of its own. A round
ends when one of them is in the middle of its work: then the broker is killed, and each client is
killed before or after it, stopped until the next round, or left alone.

A client may hang for good after its broker was killed (librdkafka #5456: `send_offsets` ignores its
timeout). That is no fault of the copy: it is killed, like any other. Nor is it a fault if a client
gives up: librdkafka drops records that waited too long for a broker, and the gap that they leave in
the sequence is refused (OUT_OF_ORDER_SEQUENCE_NUMBER).
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.crash.copiers.clients import JAVA, PYTHON, Client
from tests.crash.copiers.rig import LOOK_SECONDS, SETTINGS, Rig
from tests.crash.exactly_once import faults
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import SEED, by_length, only_long
from tests.tools.test_verify import verdict

pytestmark = pytest.mark.slow

# Transactions of Java's clients through kills are those of Streams and Connect in short ones.
IN_LONG_RUNS = [pytest.mark.java, only_long("the clients of Python are killed")]

ROUNDS = by_length(3, 200)
TRANSACTIONS_PER_ROUND = 4
MAX_COMMITS = 8
PATIENCE_SECONDS = 8.0
LIMIT_SECONDS = 120.0
KILLED_BEFORE, KILLED_AFTER, STOPPED = 0.2, 0.4, 0.5  # the shares, summed up

logger = logging.getLogger(__name__)


@pytest.mark.parametrize(
    "clients",
    [pytest.param(PYTHON, id="python"), pytest.param(JAVA, id="java", marks=IN_LONG_RUNS)],
)
def test_copies_are_exact_through_kills_of_the_broker_and_the_clients(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path, clients: Sequence[Client]
) -> None:
    chance = random.Random(SEED)
    broker = start_broker(**SETTINGS)
    try:
        rig = Rig(broker, clients, tmp_path)
    except LookupError as why:
        pytest.skip(str(why))
    try:
        for _ in range(ROUNDS):
            play_round(rig, chance)
        for copier in rig.copiers:
            copier.kill_others()
        rig.source.end()
        rig.drain()
        logger.info("%s", rig.told())
        found = {name: faults(history) for name, history in rig.histories().items()}
        assert not any(found.values()), f"{found}\n{rig.told()}"
        assert rig.offsets_faults() == []
    finally:
        rig.close()


def play_round(rig: Rig, chance: random.Random) -> None:
    """Copy for a while, and kill."""
    rig.start_all()
    rig.source.write(TRANSACTIONS_PER_ROUND)
    for copier in rig.copiers:
        copier.thaw()
    wait_for_work(rig, chance)
    fates = [(copier, chance.random()) for copier in rig.copiers]
    for copier, fate in fates:
        if fate < KILLED_BEFORE:
            copier.kill()
    time.sleep(chance.uniform(0, 0.05))
    rig.broker.kill()
    for copier, fate in fates:
        copier.kill_others()
        if KILLED_BEFORE <= fate < KILLED_AFTER:
            copier.kill()
        elif KILLED_AFTER <= fate < STOPPED:
            copier.freeze()
    # No transaction is hanging, and no decision contradicts another.
    assert verdict(rig.broker.data).problems == []
    rig.broker.start()


def wait_for_work(rig: Rig, chance: random.Random) -> None:
    """Wait until one of the copiers, which chance takes, has committed some transactions.

    If that takes long, because it hangs, another one must have committed some.
    """
    before = {copier: len(copier.reports("committed")) for copier in rig.copiers}
    chosen = chance.choice(rig.copiers)
    wanted = chance.randint(1, MAX_COMMITS)
    start = time.monotonic()
    while True:
        rig.start_all()
        done = {copier: len(copier.reports("committed")) - before[copier] for copier in before}
        waited = time.monotonic() - start
        if done[chosen] >= wanted or (waited > PATIENCE_SECONDS and any(done.values())):
            return
        assert waited < LIMIT_SECONDS, rig.told()
        time.sleep(LOOK_SECONDS)
