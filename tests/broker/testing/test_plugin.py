"""The pytest plugin, in test sessions of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lengths import only_long

TESTS = """
import os
import pytest
from confluent_kafka import Producer

@pytest.mark.parametrize("number", range(4))
def test_each_test_finds_its_broker_empty(odradek_broker, number):
    assert odradek_broker.topics() == {}
    producer = Producer({"bootstrap.servers": odradek_broker.bootstrap_servers, "log_level": 0})
    producer.produce("orders", str(number))
    assert producer.flush(20) == 0
    assert [record.value for record in odradek_broker.records("orders")] == [b"%d" % number]

def test_a_secure_broker_is_another_one(odradek_broker, odradek_secure_broker):
    odradek_broker.create_topic("orders")
    assert odradek_secure_broker.topics() == {}
    assert "sasl.password" in odradek_secure_broker.client_settings("confluent-kafka")

async def test_an_asynchronous_test_uses_it_too(odradek_broker):
    odradek_broker.create_topic("orders")
    assert odradek_broker.topics() == {"orders": 3}
"""
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def odradek_settings():
    return {"num.partitions": "3"}
"""


def run_pytest(directory: Path, *options: str) -> str:
    """The output of a session of the tests in a directory."""
    command = [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", *options]
    done = subprocess.run(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout.decode()


@pytest.mark.slow
def test_workers_of_a_session_have_a_broker_each(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS.replace('"orders": 3', '"orders": 1'))
    assert "6 passed" in run_pytest(tmp_path, "-n", "2")


@pytest.mark.slow
def test_the_fixture_comes_with_the_installation(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    assert "6 passed" in run_pytest(tmp_path)


@pytest.mark.slow
def test_a_test_that_stops_its_broker_does_not_break_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(
        "def test_stops(odradek_broker):\n    odradek_broker.stop()\n"
        "def test_goes_on(odradek_broker):\n    assert odradek_broker.topics() == {}\n"
        "def test_kills(odradek_broker):\n    odradek_broker._process.kill()\n"
        "def test_goes_on_again(odradek_broker):\n    assert odradek_broker.topics() == {}\n"
    )
    assert "4 passed" in run_pytest(tmp_path)


@pytest.mark.slow
def test_the_report_of_a_failed_test_shows_the_end_of_the_brokers_log(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(
        "def test_fails(odradek_broker):\n    assert not odradek_broker.bootstrap_servers\n"
        "def test_fails_too():\n    assert False\n"
        "def test_removes_the_log(odradek_broker):\n"
        "    odradek_broker.log_file.unlink()\n    assert False\n"
    )
    output = run_pytest(tmp_path)
    assert "3 failed" in output
    assert output.count("The broker's log") == 1
    assert "INFO started: node" in output


@pytest.mark.slow
@only_long("a fixture of the plugin is used above")
def test_an_api_and_an_error_are_named_in_the_id_of_a_test(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(
        "import pytest\nfrom odradek.broker.testing import ApiKey, ErrorCode\n"
        "@pytest.mark.parametrize('key', [ApiKey.PRODUCE])\n"
        "@pytest.mark.parametrize('code', [ErrorCode.NONE])\n"
        "def test_it(key, code): pass\n"
    )
    assert "test_it[NONE-PRODUCE]" in run_pytest(tmp_path, "--collect-only")


def test_the_class_imports_no_event_loop() -> None:
    program = (
        "import sys; from odradek.broker.testing import Broker; print('asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode().strip() == "False"


def test_a_session_that_asks_for_no_broker_imports_none_of_it() -> None:
    program = (
        "import sys, odradek.broker.testing.plugin;"
        "print([name for name in sys.modules if name.startswith('odradek')])"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    loaded = done.stdout.decode()
    assert "odradek.broker.testing.plugin" in loaded
    assert "odradek.broker.broker" not in loaded
    assert "odradek.protocol" not in loaded
