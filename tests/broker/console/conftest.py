"""One broker with a console serves the tests; each finds it empty."""

from collections.abc import Callable, Iterator

import pytest

from odradek.broker.testing.broker import Broker
from tests.support.browser import Browser, running_browser
from tests.support.console_client import ConsoleClient

Allow = Callable[[str, str, str], None]


def console_of(broker: Broker, user: str = "", password: str = "") -> ConsoleClient:
    return ConsoleClient(int(broker.console_url.rpartition(":")[2]), user, password)


@pytest.fixture(scope="session")
def broker_with_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {"log.cleaner.backoff.ms": "50", "log.retention.check.interval.ms": "100"}
    settings |= {"log.initial.task.delay.ms": "0"}
    with Broker(tmp_path_factory.mktemp("console"), settings, console=True) as broker:
        yield broker


@pytest.fixture
def broker(broker_with_console: Broker) -> Broker:
    broker_with_console.reset()
    return broker_with_console


@pytest.fixture
def console(broker: Broker) -> ConsoleClient:
    return console_of(broker)


@pytest.fixture(scope="session")
def secure_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker whose clients log in, with the users `admin`, who may all, and `nobody`."""
    settings = {"connection.failed.authentication.delay.ms": "0"}
    directory = tmp_path_factory.mktemp("secure-console")
    with Broker(directory, settings, secure=True, console=True) as broker:
        broker.add_user("nobody", "nobody's")
        yield broker


@pytest.fixture
def admin(secure_broker: Broker) -> ConsoleClient:
    password = secure_broker.client_settings("kafka-python")["sasl_plain_password"]
    return console_of(secure_broker, "admin", password)


@pytest.fixture
def nobody(secure_broker: Broker) -> ConsoleClient:
    return console_of(secure_broker, "nobody", "nobody's")


@pytest.fixture
def allow(secure_broker: Broker, admin: ConsoleClient) -> Iterator[Allow]:
    """Allows the user `nobody` an operation on a resource. There is one topic, `orders`."""

    def add(operation: str, kind: str, name: str) -> None:
        acl = {"principal": "User:nobody", "operation": operation, "permission": "ALLOW"}
        admin.post("/acls", {"acl": {**acl, "resourceType": kind, "resourceName": name}})

    secure_broker.reset()
    secure_broker.add_user("nobody", "nobody's")
    secure_broker.create_topic("orders")
    yield add
    secure_broker.reset()
    secure_broker.add_user("nobody", "nobody's")


@pytest.fixture(scope="module")
def browser_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
