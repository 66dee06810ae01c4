"""The fixtures that tests of a whole broker share."""

import gc
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.broker_process import BrokerProcess, make_broker, why_no_broker
from tests.support.java_tools import JAVA_TOOLS, JavaTools, why_no_java
from tests.support.lengths import by_length

MEMORY = Path("/dev/shm")  # not a name that somebody could guess: mkdtemp makes one

# How long it takes to make and to try an example depends on what else the machine does.
settings.register_profile(
    "odradek",
    deadline=None,
    max_examples=by_length(30, 100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("odradek")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The scheduler of `--dist loadfile`; None leaves the choice to pytest-xdist."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.support.worker_sharing import LongestFirst  # pytest runs without xdist, too

    return LongestFirst(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-durations", action="store_true", help="write tests/durations.json")


def pytest_configure(config: pytest.Config) -> None:
    """The durations are added up where the reports of all workers arrive."""
    if config.getoption("keep_durations") and not hasattr(config, "workerinput"):
        from tests.support.worker_sharing import DurationsOfParts

        config.pluginmanager.register(DurationsOfParts())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that are shared by file begin with the longest parts, in every worker's list alike."""
    if config.getoption("dist", "no") == "loadfile":
        from tests.support.worker_sharing import DURATIONS, longest_first

        longest_first(items, json.loads(DURATIONS.read_text()))


def pytest_collection() -> None:
    """Collecting the tests makes much and drops little: the collector would visit it in vain."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the collector from visiting modules and collected tests each time it runs."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that is marked `java` is skipped where there is none, with the reason."""
    if item.get_closest_marker("java") is None:
        return
    reason = why_no_java()
    if reason:
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def blamed(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a slow test leaves open is found at its own end, not in a test that comes later.

    Its log records go first, for they keep exceptions with all that their frames refer to.
    Collecting takes too long for the thousands of quick ones.
    """
    if request.node.get_closest_marker("slow") is None:
        yield
        return
    logged: pytest.LogCaptureFixture = request.getfixturevalue("caplog")
    yield
    for phase in ("setup", "call"):
        logged.get_records(phase).clear()
    gc.collect()


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory in memory, if the system has one, for thousands of small files."""
    parent = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@pytest.fixture(scope="session")
def java() -> JavaTools:
    """Apache Kafka's command-line tools, for tests that are marked `java`."""
    return JAVA_TOOLS


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests that only need topics and groups of their own."""
    reason = why_no_broker()
    if reason:
        pytest.skip(reason)
    process = make_broker(tmp_path_factory.mktemp("broker"))
    yield from _served(process)
    shutil.rmtree(process.data, ignore_errors=True)


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts brokers of the test's own: `start_broker(**{"log.segment.bytes": "1048576"})`.

    Their directories stay if the test fails.
    """
    reason = why_no_broker()
    if reason:
        pytest.skip(reason)
    started: list[Iterator[BrokerProcess]] = []

    def start(**overrides: str) -> BrokerProcess:
        life = _served(make_broker(tmp_path / f"broker-{len(started)}", overrides))
        started.append(life)
        return next(life)

    yield start
    for life in started:
        next(life, None)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses; the topic does not exist yet.

    A test that is run again, because Spark's workers were too slow, gets another name.
    """
    attempt = getattr(request.node, "execution_count", 1)  # set by pytest-rerunfailures
    place = hashlib.sha256(f"{request.node.nodeid} {attempt}".encode()).hexdigest()[:8]
    return f"topic-{place}"


@pytest.fixture
def group(topic: str) -> str:
    """A group id that no other test uses."""
    return topic.replace("topic-", "group-")


def _served(process: BrokerProcess) -> Iterator[BrokerProcess]:
    """A broker from its start to its clean end, with what must hold of every such life."""
    try:
        yield process.start()
        process.check_alive()
        assert process.crashes_in_log() == [], process.log_text()
        if process.is_running:
            assert process.terminate() in process.clean_exit_codes, process.log_text()[-4000:]
            assert process.crashes_in_log() == [], process.log_text()
    finally:
        process.stop()
