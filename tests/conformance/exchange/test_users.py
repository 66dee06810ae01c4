"""SCRAM users go to Apache Kafka and back: who could log in here can log in there."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import SERVE, BrokerProcess
from tests.support.java_tools import JAVA_TOOLS
from tests.support.lengths import by_length, only_long
from tests.support.sasl import LoginRefusedError, add_scram_user, log_in_by_scram
from tests.support.secured import secure, wait_until_open
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("users are exchanged in test_exchange.py"),
]

SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "1"}
FIRST = ("SCRAM-SHA-256=[name=first,password=one]", "SCRAM-SHA-512=[name=second,password=two]")
CLUSTER_ID = "Y45AvnC3Rhqkz8Ak_NyCPA"
Users = dict[tuple[str, str], str]  # mechanism and name: password


@contextmanager
def life_of(broker: BrokerProcess, *, killed: bool) -> Iterator[tuple[BrokerProcess, int]]:
    """A life of a broker with a listener for logins, whose port is given."""
    ports = secure(broker)
    try:
        broker.start()
        wait_until_open(ports)
        yield broker, ports["IN"]
        if killed:
            broker.kill()
        else:
            broker.terminate()
    finally:
        broker.stop()


def check(port: int, users: Users) -> None:
    """Every user logs in, and not with another password."""
    for (mechanism, name), password in users.items():
        with WireClient(port) as client:
            log_in_by_scram(client, mechanism, name, password)
        with WireClient(port) as client, pytest.raises(LoginRefusedError):
            log_in_by_scram(client, mechanism, name, f"{password}x")


TURNS = [("kafka", "odradek", "kafka"), ("odradek", "kafka", "odradek")]


@pytest.mark.parametrize("turns", by_length(TURNS[:1], TURNS))
def test_users_of_each_broker_log_in_at_the_other(turns: tuple[str, ...], tmp_path: Path) -> None:
    shared = SharedDirectory(tmp_path, **SNAPSHOTS)
    users: Users = {}
    for turn, name in enumerate(turns):
        broker = shared.kafka() if name == "kafka" else shared.odradek()
        with life_of(broker, killed=turn == 1) as (process, port):
            check(port, users)
            with WireClient(process.port) as admin:
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                    for user in ("changed", f"of-turn-{turn}"):
                        password = f"secret {turn}"
                        add_scram_user(admin, user, password, mechanism)
                        users[mechanism, user] = password


@pytest.mark.parametrize("turns", by_length([("odradek", "kafka")], [each[:2] for each in TURNS]))
def test_the_first_users_are_those_of_either_command(
    turns: tuple[str, ...], tmp_path: Path
) -> None:
    shared = SharedDirectory(tmp_path)
    formatter, first = turns
    properties = tmp_path / "format.properties"
    settings = (shared.kafka() if formatter == "kafka" else shared.odradek()).settings
    properties.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    added = [f"--add-scram={credential}" for credential in FIRST]
    options = ["format", "-t", CLUSTER_ID, *added]
    if formatter == "kafka":
        JAVA_TOOLS.run("kafka.tools.StorageTool", *options, "-c", str(properties))
    else:
        subprocess.run([SERVE[0], *options, str(properties)], check=True)
    for name in (first, formatter):
        broker = shared.kafka() if name == "kafka" else shared.odradek()
        with life_of(broker, killed=False) as (_, port):
            check(port, {("SCRAM-SHA-256", "first"): "one", ("SCRAM-SHA-512", "second"): "two"})
