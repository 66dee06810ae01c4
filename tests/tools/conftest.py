"""One broker for all commands, emptied for each test."""

from collections.abc import Callable, Iterator

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

    def run_command(*arguments: str, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(app, [*arguments, "-b", broker.bootstrap_servers], input=stdin)

    return run_command
