"""Checks a machine for the broker of a server.properties: ports, disks, file limit, clock."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from odradek.broker.network.listeners import ListenError, bind_listeners
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.listeners import Listener
from odradek.config.loading import load_config
from odradek.storage.filenames import LOCK
from odradek.storage.files import Files
from odradek.storage.process_limits import descriptor_limits

from .findings import Finding, ok, problem, warning

FEW_FILES = 4096
FILES_PER_LOG = 3
FILES_FOR_CLIENTS = 1000
OLDEST_SANE_S = 1_760_000_000  # October 2025: no machine with this program has an earlier date
FUTURE_S = 60.0
ANY_HOST = ("0.0.0.0", "::")


def check_machine(file: Path) -> Iterator[Finding]:
    """All checks of a broker's machine, without starting or changing anything."""
    try:
        loaded = load_config(file)
    except ConfigError as error:
        yield problem(f"{file}: {error}", "correct the file")
        return
    yield ok(f"{file} can be served")
    for text in loaded.warnings:
        yield warning(text, "correct the file")
    config = loaded.config
    is_running = any(_is_locked(path) for path in config.data_directories)
    for listener in config.open_listeners:
        yield _check_port(listener, is_running=is_running)
    for path in config.data_directories:
        yield _checked(partial(_check_disk, path, config))
    yield _checked(partial(_check_file_limit, config))
    yield _checked(partial(_check_clock, config))


def _checked(check: Callable[[], Finding]) -> Finding:
    """The result of a check, which is a problem if the machine fails it by an error."""
    try:
        return check()
    except OSError as error:
        return problem(
            f"{error.filename or 'a log directory'}: {error.strerror}",
            "check the path in log.dirs, its permissions and its disk",
        )


def client_address(file: Path) -> str | None:
    """Where a client on this machine reaches the broker of a server.properties, if it is valid."""
    try:
        config = load_config(file).config
    except ConfigError:
        return None
    listener = config.open_listeners[0]
    host = listener.host
    if not host or host in ANY_HOST:
        host = "localhost"
    return f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}"


def _is_locked(path: Path) -> bool:
    try:
        return Files().is_locked(path / LOCK)
    except OSError:
        return False  # the checks of the directory say why


def _check_port(listener: Listener, *, is_running: bool) -> Finding:
    """Whether the broker could bind it, tried as the broker does."""
    where = f"port {listener.host or '*'}:{listener.port}"
    try:
        (bound,) = bind_listeners([listener])
    except ListenError as error:
        if getattr(error.__cause__, "errno", None) != errno.EADDRINUSE:
            return problem(
                str(error),
                "name an address of this machine, and a port that this user may use, in listeners",
            )
        if is_running:
            return ok(f"{where} is in use, and so are the log directories: the broker runs")
        holder = _holder_of(listener.port)
        return problem(
            f"{where} is taken by {holder or 'another program'}",
            "end that program, or choose another port in listeners",
        )
    bound.close()
    return ok(f"{where} is free")


def _holder_of(port: int) -> str | None:
    """The program that listens on a port, by Linux's /proc; None if that cannot be seen."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            return None
        for fields in map(str.split, lines):
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(_target(each) in inodes for each in (process / "fd").iterdir()):
                command = (
                    (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                return f"process {process.name} ({command.strip()[:80]})"
        except OSError:
            continue  # it has ended, or is another user's
    return None


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""  # it was closed meanwhile


def _check_disk(path: Path, config: BrokerConfig) -> Finding:
    existing = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if not os.access(existing, os.W_OK):
        return problem(
            f"{existing} cannot be written by this user", "chown it, or run as its owner"
        )
    free, wanted = Files().free_bytes(existing), config.odradek_min_free_bytes
    if free < wanted:
        return problem(
            f"{path} has {free >> 20} MiB free, less than the {wanted >> 20} MiB of"
            " odradek.min.free.bytes: records are refused",
            "make room, or move log.dirs to another disk",
        )
    if free < 4 * wanted:
        return warning(f"{path} has {free >> 20} MiB free", "make room before it is full")
    return ok(f"{path} has {free / 2**30:.1f} GiB free")


def _check_file_limit(config: BrokerConfig) -> Finding:
    _, hard = descriptor_limits()
    logs = sum(
        1
        for path in config.data_directories
        if path.is_dir()
        for each in path.iterdir()
        if each.is_dir()
    )
    wanted = max(logs * FILES_PER_LOG + FILES_FOR_CLIENTS, FEW_FILES)
    if hard < wanted:
        return problem(
            f"the process may open {hard} files; {logs} partitions and their clients need {wanted}",
            "raise the limit: ulimit -n, LimitNOFILE= of the unit, or --ulimit of docker",
        )
    return ok(f"the process may open {hard} files")


def _check_clock(config: BrokerConfig) -> Finding:
    """Whether the clock can be right: no file of the logs is younger than now."""
    now = time.time()
    if now < OLDEST_SANE_S:
        date = time.strftime("%Y-%m-%d", time.gmtime(now))
        return problem(f"the clock says {date}", "set it, for example by NTP")
    newest = 0.0
    for path in config.data_directories:
        for file in path.glob("*/*.log"):
            with suppress(FileNotFoundError):  # it was deleted meanwhile
                newest = max(newest, file.stat().st_mtime)
    if newest > now + FUTURE_S:
        return problem(
            f"a log was written {newest - now:.0f} s after the present time: the clock is behind,"
            " or was ahead",
            "set it, for example by NTP; until then retention keeps records too long",
        )
    return ok("the clock is not behind the logs")
