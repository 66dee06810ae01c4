"""One broker for all commands, emptied for each test."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from odradek.broker.testing import Broker
from odradek.tools.app import app


@pytest.fixture(scope="session")
def _session_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def broker(_session_broker: Broker) -> Broker:
    _session_broker.reset()
    return _session_broker


@pytest.fixture
def run(broker: Broker) -> Callable[..., Result]:
    """Runs a command in this process: a process for each would take most of the time."""
    return partial(_run_command, broker)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Broker]:
    """Two nodes."""
    with Broker(tmp_path, nodes=2) as cluster:
        yield cluster


@pytest.fixture
def run_on_cluster(cluster: Broker) -> Callable[..., Result]:
    """Runs a command, as `run` does."""
    return partial(_run_command, cluster)


def _run_command(broker: Broker, *arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [*arguments, "-b", broker.bootstrap_servers], input=stdin)
