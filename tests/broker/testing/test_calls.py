"""Calls that are wrong, interrupted, or made by a process that has not started the broker."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer

from odradek.broker.testing import Broker, BrokerError
from odradek.broker.testing import calls as calls_of_broker

LIMIT_S = 100.0
EXIT_OK, EXIT_WRONG = 0, 1


class InterruptedTestError(Exception):
    """A test that took too long."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


def test_an_interrupted_call_does_not_shift_the_answers(broker: Broker) -> None:
    """The results are longer than a pipe holds, so some calls are interrupted while they read."""

    def interrupt(*_: object) -> None:
        raise InterruptedTestError

    for topic in ("one", "two"):
        for _ in range(20):
            broker.produce(topic, topic.encode() * 10_000)
    old = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for attempt in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 * (1 + attempt % 30))
                try:
                    broker.records("one")
                    broker.topics()
                finally:  # it may come here, too
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except InterruptedTestError:
                interrupted += 1
            assert broker.topics() == {"one": 1, "two": 1}
            assert broker.records("two")[-1].value == b"two" * 10_000
    finally:
        signal.signal(signal.SIGALRM, old)
    assert interrupted


def test_a_wrong_argument_is_an_error_of_its_call(broker: Broker) -> None:
    with pytest.raises(BrokerError, match=r"partitions"):
        broker.create_topic("orders", partitions="3")  # type: ignore[arg-type] # that is the test
    broker.create_topic("orders", partitions=3)
    with pytest.raises(BrokerError):
        broker.produce("orders", b"1", partition=-7)
    assert broker.topics() == {"orders": 3}


def test_a_call_may_be_too_long(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_of_broker, "MAX_LINE_BYTES", 1000)
    with pytest.raises(BrokerError, match="too much for one call"):
        broker.produce("orders", b"v" * 1000)
    broker.produce("orders", b"v")


@pytest.mark.slow
def test_a_record_of_40_mb_is_refused(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
        broker.produce("orders", bytes(40 << 20))
    assert broker.produce("payments", b"v") == 0


def test_a_forked_child_gets_no_answers_and_ends_no_broker(broker: Broker) -> None:
    broker.create_topic("orders")
    child = os.fork()
    if child == 0:
        try:
            broker.topics()
        except BrokerError:
            broker.stop()  # the child's own broker: none
            os._exit(EXIT_OK)
        os._exit(EXIT_WRONG)
    assert os.waitpid(child, 0)[1] == EXIT_OK
    assert broker.topics() == {"orders": 1}


@pytest.mark.slow
def test_a_forked_child_does_not_keep_the_broker_alive(tmp_path: Path) -> None:
    program = (
        "import os, sys, time; from odradek.broker.testing import Broker;"
        "broker = Broker(sys.argv[1]).start();"
        "child = os.fork() or time.sleep(60);"
        "print(broker._process.pid, child, flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid, child = map(int, parent.stdout.readline().split())
    try:
        deadline = time.monotonic() + LIMIT_S
        while Path(f"/proc/{pid}/cmdline").exists() and time.monotonic() < deadline:
            if not Path(f"/proc/{pid}/cmdline").read_bytes():
                break  # it has ended, and nobody has asked how
            time.sleep(0.05)
        else:
            assert not Path(f"/proc/{pid}/cmdline").exists()
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.slow
def test_a_file_of_the_user_is_not_taken_for_a_module_of_python(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise RuntimeError('this is not the queue of Python')")
    program = (
        "import sys; sys.path.remove('');"
        "from odradek.broker.testing import Broker;"
        "broker = Broker().start(); print(broker.topics()); broker.stop()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "{}\n", done.stderr


@pytest.mark.parametrize("year", [1971, 2120])
def test_clients_produce_whatever_the_clock_says(broker: Broker, year: int) -> None:
    broker.set_clock(datetime(year, 1, 1, tzinfo=UTC))
    broker.create_topic("orders")
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    producer.produce("orders", b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(LIMIT_S) == 0
    assert errors == [None]
