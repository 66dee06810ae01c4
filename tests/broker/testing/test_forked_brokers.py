"""Brokers of one process of tests: forks of one template, which has imported all they need."""

import asyncio
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from odradek.broker.testing import Broker, BrokerError, forked_process
from odradek.broker.testing.forked_process import ForkedProcess
from odradek.broker.testing.plugin import _emptied
from odradek.broker.testing.template import FILES, Fork, Order, Poll, Template
from tests.support.waiting import wait_until

OWN_FILES = Path("/proc/self/fd")
LIMIT_S = 100.0
EXIT_OK, EXIT_WRONG = 0, 3


def status_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name: state, parent, group, session and others."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def is_alive(pid: int) -> bool:
    try:
        return status_of(pid)[0] != "Z"  # nobody may have asked how it ended
    except FileNotFoundError:
        return False


def pid_of(broker: Broker) -> int:
    assert broker._process is not None
    return broker._process.pid


def parent_of(broker: Broker) -> int:
    return int(status_of(pid_of(broker))[1])


def test_a_second_broker_imports_nothing() -> None:
    with Broker() as first, Broker() as second:
        assert parent_of(first) == parent_of(second)
        for broker in (first, second):
            session = int(status_of(pid_of(broker))[3])
            assert session == pid_of(broker), "control-C is for the tests"
        first.create_topic("orders")
        assert second.topics() == {}


def test_a_broker_may_open_as_many_files_as_the_system_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(forked_process, "_template", None)  # the next one has the limit from here
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard - 1, hard))
    try:
        with Broker() as broker:
            assert resource.prlimit(pid_of(broker), resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_module_that_cannot_be_imported_ends_neither_template_nor_fork(tmp_path: Path) -> None:
    with Broker() as first, (tmp_path / "log").open("ab") as log:
        process = ForkedProcess(log, ["no_such_module", "odradek.no_such_module"])
        assert process.is_running
        assert int(status_of(process.pid)[1]) == parent_of(first)
        process.kill()
        process.close()
        assert first.topics() == {}


def test_brokers_end_by_themselves_and_alone() -> None:
    with Broker() as first, Broker() as second:
        os.kill(pid_of(first), signal.SIGKILL)
        wait_until(lambda: not first.is_running)
        with pytest.raises(BrokerError, match="has ended"):
            first.topics()
        first.kill_and_restart()
        assert first.topics() == second.topics() == {}


def test_a_broker_is_where_and_when_the_test_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker() as other:
        other.create_topic("orders")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("TZ", "Etc/GMT+12")
        with Broker("here") as broker:
            assert (tmp_path / "here" / "data" / "meta.properties").exists()
            line = broker.last_log_lines(1)
            logged = datetime.fromisoformat(line[1:20])
            behind = datetime.now(UTC).replace(tzinfo=None) - logged
            assert timedelta(hours=11) < behind < timedelta(hours=13)


def test_the_environment_and_the_directory_need_not_be_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / os.fsdecode(b"\xff")
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.setitem(os.environb, b"NAME", b"\xfe")
    with Broker() as broker:
        assert Path(f"/proc/{pid_of(broker)}/cwd").readlink() == directory
        with pytest.raises(BrokerError, match="surrogates"):
            broker.create_topic(directory.name)
        assert broker.topics() == {}


def test_a_forked_child_has_brokers_of_its_own_only() -> None:
    with Broker() as broker:
        with forked_process._lock:  # as another thread may hold it
            child = os.fork()
        if child == 0:
            status = EXIT_WRONG
            try:
                with pytest.raises(BrokerError, match="only the process that has started"):
                    _emptied(broker)
                with Broker() as own:
                    assert own.topics() == {}
                status = EXIT_OK
            finally:
                os._exit(status)
        wait_until(lambda: not is_alive(child))
        assert os.waitpid(child, 0)[1] >> 8 == EXIT_OK
        assert broker.topics() == {}


def test_a_start_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise RuntimeError("no certificates")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("odradek.broker.testing.broker.Security", fail)
    broker = Broker(secure=True)
    with pytest.raises(RuntimeError):
        broker.start()
    assert not broker.is_running
    assert not list(tmp_path.iterdir())


def test_a_call_says_that_another_thread_has_stopped_the_broker() -> None:
    class Stopping:
        """A lock that another call holds until the broker is stopped."""

        def __enter__(self) -> None:
            broker.stop()

        def __exit__(self, *_: object) -> None:
            pass

    with Broker() as broker:
        broker._lock = Stopping()  # type: ignore[assignment]
        with pytest.raises(BrokerError, match="another thread has stopped the broker"):
            broker.topics()


def test_a_fork_that_fails_ends_no_other_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fail)
    ours, theirs = socket.socketpair()
    template = Template(theirs, lambda _: None, lambda: None)
    thread = threading.Thread(target=template.run)
    thread.start()
    ours.settimeout(LIMIT_S)
    with ours, theirs, ours.makefile("rb") as answers:

        def obey(order: Order, *files: int) -> object:
            socket.send_fds(ours, [msgspec.json.encode((0, order)) + b"\n"], files)
            return msgspec.json.decode(answers.readline())[1]

        assert obey(Fork(b"/", {}), *range(FILES)) == -errno.EAGAIN
        assert obey(Poll(1)) == 0
        ours.shutdown(socket.SHUT_RDWR)
        thread.join(LIMIT_S)


def test_a_broker_that_cannot_be_forked_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def obey(self, *_: object) -> int:
            return -errno.EAGAIN

    monkeypatch.setattr(forked_process, "_template_of_this_process", lambda _: Full())
    broker = Broker()
    with pytest.raises(BrokerError, match=r"no process can be started: .*unavailable"):
        broker.start()
    assert not broker.is_running


async def test_a_start_that_is_cancelled_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, is_cancelled, ended = threading.Event(), threading.Event(), threading.Event()
    start = Broker.start

    def start_slowly(broker: Broker) -> Broker:
        begun.set()
        assert is_cancelled.wait(LIMIT_S)
        start(broker)
        ended.set()
        return broker

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Broker, "start", start_slowly)
    broker = Broker()
    entering = asyncio.create_task(broker.__aenter__())
    assert await asyncio.to_thread(begun.wait, LIMIT_S)
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    is_cancelled.set()
    assert await asyncio.to_thread(ended.wait, LIMIT_S)
    await asyncio.to_thread(wait_until, lambda: not list(tmp_path.iterdir()))
    assert not broker.is_running


def test_many_brokers_leave_no_descriptors_and_no_processes() -> None:
    with Broker() as first:
        template = parent_of(first)

        def left() -> tuple[int, int, list[str]]:
            children = Path(f"/proc/{template}/task/{template}/children").read_text().split()
            files = Path(f"/proc/{template}/fd")
            return len(list(OWN_FILES.iterdir())), len(list(files.iterdir())), children

        before = left()
        with ExitStack() as stack:
            brokers = [stack.enter_context(Broker()) for _ in range(5)]
            assert len({pid_of(broker) for broker in brokers}) == 5
            brokers[0].stop(clean=True)
        assert left() == before


@pytest.mark.slow
def test_brokers_do_not_outlive_their_template_and_the_next_one_has_another(
    tmp_path: Path,
) -> None:
    program = (
        "import os; from pathlib import Path; from odradek.broker.testing import Broker\n"
        "broker = Broker('data').start()\n"
        "pid = broker._process.pid\n"
        "stat = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()\n"
        "os.kill(int(stat[1]), 9)\n"
        "print(pid, flush=True)\n"
        "broker._process.stdout.read()\n"
        "assert not broker.is_running\n"
        "broker.kill_and_restart()\n"
        "print(broker.topics())\n"
        "broker.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    pid, topics = done.stdout.splitlines()
    assert topics == "{}", done.stderr
    assert not done.stderr
    assert not is_alive(int(pid))


@pytest.mark.slow
def test_the_tests_end_although_a_fork_of_them_has_copies_of_their_files(tmp_path: Path) -> None:
    """As a daemon of multiprocessing, which is ended after what was registered later."""
    program = (
        "import os, signal, threading; from odradek.broker.testing import Broker\n"
        "broker = Broker('data').start()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    threading.Event().wait()\n"
        "print(child, broker._process.pid, flush=True)\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    with started:
        child, broker = map(int, started.stdout.readline().split())
        try:
            assert started.wait(LIMIT_S) == 0
            wait_until(lambda: not is_alive(broker))
        finally:
            started.kill()
            os.kill(child, signal.SIGKILL)
