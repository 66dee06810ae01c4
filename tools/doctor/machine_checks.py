"""Checks a machine for the broker of a server.properties: ports, disks, file limit, clock."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
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
    yield from _check_ports(config, is_running=is_running)
    for path in config.data_directories:
        yield from _check_disk(path, config)
    yield _check_file_limit(config)
    yield _check_clock(config)


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
    return Files().is_locked(path / LOCK)


def _check_ports(config: BrokerConfig, *, is_running: bool) -> Iterator[Finding]:
    for listener in config.open_listeners:
        where = f"{listener.host or '*'}:{listener.port}"
        taken = listener.port and _is_taken(listener.host, listener.port)
        if not taken:
            yield ok(f"port {where} is free")
        elif is_running:
            yield ok(f"port {where} is in use, and so are the log directories: the broker runs")
        else:
            holder = _holder_of(listener.port)
            yield problem(
                f"port {where} is taken by {holder or 'another program'}",
                "end that program, or choose another port in listeners",
            )


def _is_taken(host: str | None, port: int) -> bool:
    for family, _, _, _, address in socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return True
    return False


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
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                return f"process {process.name} ({command.strip()[:80]})"
        except OSError:
            continue  # it has ended, or is another user's
    return None


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""  # it was closed meanwhile


def _check_disk(path: Path, config: BrokerConfig) -> Iterator[Finding]:
    existing = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if not os.access(existing, os.W_OK):
        yield problem(f"{existing} cannot be written by this user", "chown it, or run as its owner")
        return
    free, wanted = Files().free_bytes(existing), config.odradek_min_free_bytes
    if free < wanted:
        yield problem(
            f"{path} has {free >> 20} MiB free, less than the {wanted >> 20} MiB of"
            " odradek.min.free.bytes: records are refused",
            "make room, or move log.dirs to another disk",
        )
    elif free < 4 * wanted:
        yield warning(f"{path} has {free >> 20} MiB free", "make room before it is full")
    else:
        yield ok(f"{path} has {free / 2**30:.1f} GiB free")


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
    newest = max(
        (each.stat().st_mtime for path in config.data_directories for each in path.glob("*/*.log")),
        default=0.0,
    )
    if newest > now + FUTURE_S:
        return problem(
            f"a log was written {newest - now:.0f} s after the present time: the clock is behind,"
            " or was ahead",
            "set it, for example by NTP; until then retention keeps records too long",
        )
    return ok("the clock is not behind the logs")
