"""The history of many clients, while a broker and they are killed, stopped and cut off.

`ODRADEK_TEST_LENGTH=long ODRADEK_TEST_MINUTES=60` runs so long with all clients, also Java's;
`ODRADEK_TEST_SEED` chooses what happens; `ODRADEK_TEST_BROKER=kafka` lets Apache Kafka be judged.

What is found in Apache Kafka is reported, and is no failure. One is known of 4.4.0: after a kill it
may call a committed transaction complete, and its partitions have no marker of it. So its records
stay invisible to readers of committed records, and all behind them ("unseen").

Cycles that Kafka's transactions allow are counted, see anomalies.py. Loopback clients do not run in
lock step: a seed repeats what befalls them, not their history.
"""

import logging
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash.copiers.rig import SETTINGS
from tests.support.broker_process import (
    ApacheKafkaProcess,
    BrokerProcess,
    against_apache_kafka,
    free_ports,
    running,
    why_no_broker,
)
from tests.support.cut_proxy import CutProxy
from tests.support.lengths import LONG, MINUTES, SEED, only_long
from tests.support.topics import create_topic

from .anomalies import CYCLES, anomalies
from .clients.task import PARTITIONS
from .crowd import CASTS, Crowd
from .history import Operation, read_history
from .nemesis import Nemesis

logger = logging.getLogger(__name__)

RUN = [*CASTS] if LONG else ["mixed"]
SECONDS = MINUTES * 60 / len(RUN) if LONG else 6.0
PAUSE_SECONDS = (0.3, 2.5) if LONG else (0.2, 1.0)
THEFT_SECONDS = 20.0
SHOWN = 5

pytestmark = pytest.mark.slow


class ClockedBroker(BrokerProcess):
    """odradek, with a wall clock that a file sets."""

    @property
    def clock(self) -> Path:
        return self.directory / "clock"

    def _command(self) -> list[str]:
        _, *arguments = super()._command()
        if not self.clock.exists():
            self.clock.write_text("0")
        module = "tests.support.jumping_clock"
        return [sys.executable, "-m", module, str(self.clock), *arguments]


class Thief(Nemesis):
    """Takes acknowledged records away while the broker is down."""

    def _after_kill(self) -> None:
        for log in self._broker.data.glob("kept-*/*.log"):
            os.truncate(log, log.stat().st_size // 2)


class Played(NamedTuple):
    """What was found, and in how much."""

    found: dict[str, list[str]]
    told: str


@pytest.mark.parametrize("cast", RUN)
def test_the_history_of_many_clients_has_no_anomaly(tmp_path: Path, cast: str) -> None:
    played = play(tmp_path, cast, SECONDS, Nemesis)
    wrong = {name: each[:SHOWN] for name, each in played.found.items() if name not in CYCLES}
    if wrong and against_apache_kafka():
        pytest.xfail(f"Apache Kafka: {wrong}")
    assert not wrong, f"{wrong}\n{played.told}"


@only_long("the tests of the checker")
def test_a_thief_of_records_is_found(tmp_path: Path) -> None:
    played = play(tmp_path, "mixed", THEFT_SECONDS, Thief)
    assert played.found.keys() & {"lost write", "unseen", "inconsistent offsets"}, played.told


def play(tmp_path: Path, cast: str, seconds: float, kind_of_nemesis: type[Nemesis]) -> Played:
    """Let the cast work beside the nemesis for so long, and judge its history."""
    if reason := why_no_broker():
        pytest.skip(reason)
    [port] = free_ports(1)
    settings = {
        **SETTINGS,
        "group.consumer.session.timeout.ms": "6000",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "auto.create.topics.enable": "false",
        "log.message.timestamp.after.max.ms": "9223372036854775807",  # the clock jumps
    }
    kind = ApacheKafkaProcess if against_apache_kafka() else ClockedBroker
    broker = kind(tmp_path / "broker", settings)
    histories = tmp_path / "histories"
    histories.mkdir()
    chance = random.Random(SEED)
    with running(broker), CutProxy(port, broker.port) as proxy:
        for topic, count in PARTITIONS.items():
            create_topic(broker.bootstrap, topic, count)
        try:
            crowd = Crowd(CASTS[cast], f"127.0.0.1:{port}", histories)
        except LookupError as why:
            pytest.skip(str(why))
        nemesis = kind_of_nemesis(broker, proxy, crowd, chance, broker.directory / "clock")
        try:
            crowd.begin()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                time.sleep(chance.uniform(*PAUSE_SECONDS))
                nemesis.step()
                crowd.keep_running()
            nemesis.renew()
            crowd.end()
            crowd.read_all()
        finally:
            crowd.kill()
        assert broker.crashes_in_log() == []
    history = read_history(sorted(histories.glob("*.jsonl")))
    found = anomalies(history)
    told = f"{told_of(history)}\n{dict(nemesis.done)}\n{crowd.complaints().most_common(20)}"
    logger.info("%s: %s\n%s", cast, told, {name: len(each) for name, each in found.items()})
    return Played(found, told)


def told_of(history: list[Operation]) -> str:
    """How much was done."""
    kinds = Counter((each.kind.value, each.outcome.value) for each in history)
    transactions = Counter(each.outcome.value for each in history if each.is_transaction)
    return (
        f"{len(history)} operations of {len({each.process for each in history})} processes,"
        f" {sum(len(each.sends) for each in history)} records sent,"
        f" {sum(len(each.polls) for each in history)} read, transactions {dict(transactions)},"
        f" all {dict(kinds)}"
    )
