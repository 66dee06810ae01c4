"""What a start does with the console, and without it."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker.lifecycle.running import start_broker
from odradek.broker.testing import Broker, BrokerError
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError

# Runs a broker with the settings of the command line, and prints which modules it has imported.
PROGRAM = """
import asyncio, sys
import odradek.tools.serve, odradek.broker.lifecycle.run, odradek.broker.testing.call_server
from odradek.broker.lifecycle.running import start_broker
from odradek.config.broker_config import BrokerConfig

async def main():
    texts = dict(each.split("=", 1) for each in sys.argv[1:])
    running = await start_broker(BrokerConfig.from_texts(texts))
    print(*sorted(sys.modules), sep="\\n")
    await running.stop()

asyncio.run(main())
"""
ONLY_FOR_HTTP = ("odradek.broker.console", "odradek.broker.http", "odradek.broker.registry",
                 "odradek.broker.metrics", "odradek.coordinator.registry", "h11", "jsonschema",
                 "prometheus_client")  # fmt: skip


def imported(directory: Path, **texts: str) -> set[str]:
    """The modules of a broker that has started."""
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory)}
    settings |= {key.replace("_", "."): value for key, value in texts.items()}
    given = [f"{key}={value}" for key, value in settings.items()]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *given], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def belongs(module: str, roots: tuple[str, ...]) -> bool:
    return any(module == root or module.startswith(f"{root}.") for root in roots)


def test_a_broker_without_http_imports_nothing_of_it(tmp_path: Path) -> None:
    modules = imported(tmp_path)
    assert "odradek.broker.network.server" in modules
    assert [each for each in sorted(modules) if belongs(each, ONLY_FOR_HTTP)] == []


@pytest.mark.slow
def test_the_console_is_imported_only_if_it_is_switched_on(tmp_path: Path) -> None:
    metrics = imported(tmp_path, odradek_http_listener="127.0.0.1:0")
    assert "odradek.broker.http.server" in metrics
    assert not any(belongs(each, ("odradek.broker.console",)) for each in metrics)
    settings = {"odradek_http_listener": "127.0.0.1:0", "odradek_console": "true"}
    assert "odradek.broker.console.console" in imported(tmp_path, **settings)


async def refused(tmp_path: Path, **texts: str) -> str:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "odradek.console": "true"}
    settings |= {key.replace("_", "."): value for key, value in texts.items()}
    with pytest.raises(ConfigError) as refusal:
        await start_broker(
            BrokerConfig.from_texts({"log.dirs": str(tmp_path / "data"), **settings})
        )
    assert not (tmp_path / "data").exists(), "nothing was touched"
    return str(refusal.value)


@pytest.mark.parametrize("address", [":0", "0.0.0.0:0"])
async def test_other_machines_may_not_use_a_console_without_login(
    tmp_path: Path, address: str
) -> None:
    text = await refused(tmp_path, odradek_http_listener=address)
    assert "odradek.http.listener" in text
    assert "localhost:8080" in text


async def test_a_console_needs_a_listener(tmp_path: Path) -> None:
    assert "needs odradek.http.listener" in await refused(tmp_path)


@pytest.mark.slow
def test_other_machines_may_use_a_console_with_login(tmp_path: Path) -> None:
    settings = {"odradek.http.listener": "0.0.0.0:0"}
    with Broker(tmp_path, settings, secure=True, console=True) as broker:
        assert "the console is at" in broker.log_file.read_text()


@pytest.mark.slow
def test_a_broker_of_tests_has_a_console_only_if_it_is_asked_for(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, pytest.raises(BrokerError, match="console=True"):
        _ = broker.console_url


@pytest.mark.slow
def test_a_console_is_at_the_same_address_after_a_restart(tmp_path: Path) -> None:
    from .conftest import console_of

    with Broker(tmp_path, console=True) as broker:
        url, token = broker.console_url, console_of(broker).get("/me")["token"]
        broker.kill_and_restart()
        assert broker.console_url == url
        assert console_of(broker).get("/me")["token"] != token


async def test_a_console_that_has_stopped_collects_no_lines(tmp_path: Path) -> None:
    before = list(logging.getLogger("odradek").handlers)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "odradek.http.listener": "127.0.0.1:0",
        "odradek.console": "true",
    }
    running = await start_broker(BrokerConfig.from_texts(settings))
    assert len(logging.getLogger("odradek").handlers) == len(before) + 1
    await running.stop()
    assert logging.getLogger("odradek").handlers == before
