"""A broker in a process of its own, for tests.

    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        ...
        assert [record.value for record in broker.records("orders")] == [b"..."]

It is a real broker: what it answers is what `odradek serve` answers. It has a process of its own
because a test that blocks, or that holds the interpreter's lock, must not stop its broker, and a
test may kill it. The process ends with the one that started it.

The methods block for the milliseconds that a call takes. They may be called from any thread, and
between the awaits of an asynchronous test.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import msgspec

from odradek.broker.testing import calls
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode

from .call import Call
from .cluster import Cluster, cluster_settings
from .durations import milliseconds
from .fault import Fault
from .forked_process import ForkedProcess
from .injected import POLL_SECONDS, BrokerError, Injected
from .security import ADMIN, Library, Security, new_password

T = TypeVar("T")

Record = calls.StoredRecord
LeftoverClient = calls.LeftoverClient

# For tests: groups form at once, members that are gone are noticed at once, deleted files go at
# once.
SETTINGS: Mapping[str, str] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "50",
    "group.streams.heartbeat.interval.ms": "50",
    "group.streams.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "file.delete.delay.ms": "0",
    "log.segment.delete.delay.ms": "0",
    "odradek.min.free.bytes": "0",
    "odradek.group.expire.on.disconnect": "true",
    "connections.max.idle.ms": "-1",
    # After `set_clock` to the past, what clients send is of the future.
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
}
STOP_SECONDS = 15.0
_REGISTRY = "odradek.registry.listener"
_HTTP = "odradek.http.listener"
# What a start imports only if it serves one of these.
MODULES_OF_TLS = (
    "odradek.broker.security.tls.tls_listeners",
    "odradek.broker.security.sasl.login_mechanisms",
)
MODULES_OF_REGISTRY = (
    "odradek.broker.registry.libraries",
    "odradek.broker.registry.rest_server",
)
MODULES_OF_CONSOLE = (
    "odradek.broker.metrics.monitoring",
    "odradek.broker.console.console",
)
MODULES_OF_CLUSTER = (
    "odradek.broker.cluster.played_cluster",
    "odradek.broker.testing.cluster_service",
)


class Snapshot:
    """A state of a broker to which it can return: see Broker.snapshot."""

    def __init__(self, directory: str, passwords: Mapping[str, str]) -> None:
        self.directory = directory
        self.passwords = passwords  # of users, by name


class Broker(Cluster):
    """A broker from `start` to `stop`, or inside a `with` or an `async with`.

    All methods raise BrokerError.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        secure: bool = False,
        registry: bool = False,
        console: bool = False,
        nodes: int = 1,
    ) -> None:
        """Prepare a broker. It does not run yet.

        `directory`: for its data and its log, kept; by default a new one that is removed at the
        end. `settings`: keys of server.properties, in addition to SETTINGS. `secure`: clients log
        in by SCRAM over TLS, with a certificate authority of this broker's own, and ACLs are
        enforced; `client_settings` says how clients reach it. `registry`: it serves a schema
        registry at `registry_url`, which needs odradek[registry]. `console`: it serves the console
        at `console_url`. `nodes`: it plays a cluster of so many nodes; see cluster.py.
        """
        # Absolute: a restart may come after a chdir.
        self._given = Path(directory).absolute() if directory is not None else None
        self._overrides = dict(settings or {})
        listeners = {_REGISTRY: "127.0.0.1:0"} if registry else {}
        if console:
            listeners |= {_HTTP: "127.0.0.1:0", "odradek.console": "true"}
        self._settings = {**SETTINGS, **listeners, **cluster_settings(nodes), **self._overrides}
        self._modules = [
            *(MODULES_OF_TLS if secure else ()),
            *(MODULES_OF_REGISTRY if registry else ()),
            *(MODULES_OF_CONSOLE if console else ()),
            *(MODULES_OF_CLUSTER if nodes > 1 else ()),
        ]
        self._is_secure = secure
        self._security: Security | None = None
        self._directory = self._given
        self._process: ForkedProcess | None = None
        self._owner = 0  # the process that has started it; 0: it does not run
        self._lock = threading.Lock()
        self._calls = 0
        self._delays: dict[ApiKey, Injected] = {}
        self._ports = calls.Ports()
        self._first_node_id = int(self._settings.get("node.id", "0"))

    # -- its life ---------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the broker. When this returns, it serves."""
        self._check_owner()
        if self._process is not None:
            raise BrokerError("the broker runs already")
        self._owner = os.getpid()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def _start(self) -> None:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="odradek-"))
        self._directory.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            try:
                self._process = ForkedProcess(log, self._modules)
            except OSError as error:
                raise BrokerError(f"no process can be started: {error}") from error
        first_security = None
        if self._is_secure and self._security is None:
            first_security = Security(self._directory / "tls")
            self._settings |= {**first_security.settings(), **self._overrides}
        settings = {"log.dirs": str(self._directory / "data"), **self._settings}
        # After a restart, clients find it at the same ports.
        self._ports = self._call(calls.Start(settings, self._ports), calls.Ports)
        if first_security is not None:  # later, the broker remembers its users
            self._set_admin(first_security)
            self._security = first_security

    def _set_admin(self, security: Security) -> None:
        self._call(calls.AddUser(ADMIN, security.passwords[ADMIN]), type(None))

    def stop(self, *, clean: bool = False) -> None:
        """End the broker; nothing happens if it does not run.

        `clean`: with a clean shutdown, so that another broker, odradek or Apache Kafka, can take
        over the directory without recovery. Else its process is killed, which takes no time.
        """
        process = self._process
        try:
            if clean and process is not None:
                self._call(calls.Stop(), type(None))
                process.wait(STOP_SECONDS)
        finally:
            is_owner = self._owner == os.getpid()
            self._kill()
            if is_owner and self._given is None and self._directory is not None:
                shutil.rmtree(self._directory, ignore_errors=True)
                self._directory = self._security = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        import asyncio  # here, because it is most of what importing this module would take
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(1)
        starting = pool.submit(self.start)
        pool.shutdown(wait=False)
        try:
            return await asyncio.wrap_future(starting)
        except asyncio.CancelledError:  # then __aexit__ is not called, and the thread goes on
            starting.add_done_callback(lambda _: self.stop())
            raise

    async def __aexit__(self, *_: object) -> None:
        import asyncio

        await asyncio.to_thread(self.stop)

    @property
    def is_running(self) -> bool:
        """Whether its process runs. Only the process that has started it sees that."""
        return self._process is not None and self._process.is_running

    def kill_and_restart(self) -> None:
        """Kill the broker (SIGKILL), and start it on the same port and data.

        What was acknowledged is there again. Injected faults and a changed clock are not.
        """
        self._kill()
        self.start()

    def _kill(self) -> None:
        process, self._process = self._process, None
        if self._owner != os.getpid():
            return
        self._owner = 0
        if process is not None:
            process.kill()
            process.close()

    # -- what tests ask ---------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as host:port; of several nodes with commas between them."""
        return ",".join(self._addresses)

    @property
    def _addresses(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port, *_ in self._ports.nodes]

    @property
    def registry_url(self) -> str:
        """The address of the schema registry. On a secure broker, its users log in by Basic."""
        if not self._ports.registry:
            raise BrokerError("there is no schema registry: Broker(registry=True)")
        return f"http://127.0.0.1:{self._ports.registry}"

    @property
    def console_url(self) -> str:
        """The address of the console, without a slash at the end; its API is below /api/v1.

        On a secure broker, its users log in by Basic.
        """
        if self._settings.get("odradek.console") != "true":
            raise BrokerError("there is no console: Broker(console=True)")
        return f"http://127.0.0.1:{self._ports.http}"

    @property
    def log_file(self) -> Path:
        """The file with the broker's log lines."""
        if self._directory is None:
            raise BrokerError("the broker has no directory: it was not started")
        return self._directory / "broker.log"

    def client_settings(self, library: Library, user: str | None = None) -> dict[str, Any]:
        """The settings with which clients of a library reach the broker, with its address.

        If it is secure, they log in as `user`: by default as `admin`, who may do everything, or as
        one of `add_user`. kafka-python and aiokafka take them as keyword arguments, the others as
        properties.
        """
        is_python = library in ("kafka-python", "aiokafka")
        address = {
            "bootstrap_servers" if is_python else "bootstrap.servers": self.bootstrap_servers
        }
        if self._security is None and user is None:
            return address
        security = self._secured()
        user = user or ADMIN
        if user not in security.passwords:
            raise BrokerError(f"there is no user {user}; add_user adds one")
        return {**address, **security.client_settings(library, user)}

    def add_user(self, name: str, password: str | None = None) -> None:
        """Let a user log in to a secure broker. ACLs say what the user may do: at first nothing.

        `password`: None for a random one, which `client_settings` has.
        """
        security = self._secured()
        password = password or new_password()
        self._call(calls.AddUser(name, password), type(None))
        security.passwords[name] = password

    @property
    def certificate_authority(self) -> Path:
        """The file with the certificate (PEM) that clients of a secure broker must trust."""
        return self._secured().authority_file

    def _secured(self) -> Security:
        if self._security is None:
            raise BrokerError("the broker is not secure, or was not started: Broker(secure=True)")
        return self._security

    def last_log_lines(self, count: int = 20) -> str:
        """The last lines of the broker's log."""
        try:
            text = self.log_file.read_text(errors="replace")
        except OSError as error:
            raise BrokerError(f"the broker's log cannot be read: {error}") from None
        lines = text.splitlines(keepends=True)
        return "".join(lines[-count:])

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, which can be used when this returns.

        `partitions`: None for num.partitions. `configs`: settings of the topic.
        """
        self._call(calls.CreateTopic(name, partitions, dict(configs or {})), type(None))

    def topics(self) -> dict[str, int]:
        """The topics that exist, with the number of their partitions; no internal ones."""
        return self._call(calls.ListTopics(), dict[str, int])

    def records(
        self, topic: str, partition: int | None = None, *, committed: bool = True
    ) -> list[Record]:
        """The records of a topic, or of one partition, in the order of partitions and offsets.

        Without those of aborted and open transactions, unless not `committed`.
        """
        return self._call(calls.ReadRecords(topic, partition, committed), list[Record])

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int = 0,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> int:
        """Append a record without a client, and return its offset. Creates a missing topic."""
        return self._call(calls.Produce(topic, partition, key, value, list(headers)), int)

    def wait_for_records(
        self, topic: str, count: int, *, within: timedelta | int = 10_000
    ) -> list[Record]:
        """Wait until a topic has at least `count` records, and return all of them.

        The topic need not exist yet. Records of open transactions do not count. `within`: an int
        is in milliseconds of the machine's clock. The error says how many records there are.
        In an asynchronous test: `await asyncio.to_thread(broker.wait_for_records, topic, count)`.
        """
        deadline = time.monotonic() + milliseconds(within) / 1000
        while len(records := self._records_so_far(topic)) < count:
            if time.monotonic() > deadline:
                raise BrokerError(f"{topic} has {len(records)} records, not {count}: {records}")
            time.sleep(POLL_SECONDS)
        return records

    def _records_so_far(self, topic: str) -> list[Record]:
        return self.records(topic) if topic in self.topics() else []

    def committed(self, group_id: str, topic: str) -> dict[int, int]:
        """The offsets that a group has committed in a topic, by partition."""
        return self._call(calls.CommittedOffsets(group_id, topic), dict[int, int])

    def reset(self) -> None:
        """Delete all topics, groups, transactions and altered settings; remove all faults.

        ACLs, quotas and delegation tokens are removed, and all users but `admin`. Features, except
        metadata.version, have the levels of the last start again, and loggers their own.
        Connections stay open. The wall clock is the machine's again.
        """
        # pytest sets it to the test and its phase.
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        self._call(calls.Reset(ADMIN, test), type(None))
        if self._security is not None:
            self._set_admin(self._security)  # a test may have altered its credentials
            self._security.forget_users()

    def leftover_clients(self) -> list[LeftoverClient]:
        """The clients that were connected before the last reset and were active after it.

        They have made topics or joined groups: a consumer that an earlier test has not closed does.
        Each connection is one of them.
        """
        return self._call(calls.ListLeftoverClients(), list[LeftoverClient])

    def expire_group(self, group_id: str) -> None:
        """Remove all members of a group at once, as when their sessions expire."""
        self._call(calls.ExpireGroup(group_id), type(None))

    # -- time -------------------------------------------------------------------------------------

    def run_retention_now(self) -> None:
        """Apply retention to all topics, with Kafka's rules, without waiting for the check."""
        self._call(calls.RunRetention(), type(None))

    def run_compaction_now(self) -> None:
        """Compact all compacted topics up to their ends, however little there is to remove."""
        self._call(calls.RunCompaction(), type(None))

    def set_clock(self, moment: datetime | int) -> None:
        """Set the broker's wall clock; an int is in milliseconds since 1970.

        Records without a timestamp and retention use it. Session timeouts do not: see `advance`.
        """
        wall_ms = moment if isinstance(moment, int) else round(moment.timestamp() * 1000)
        self._call(calls.SetClock(wall_ms), type(None))

    def advance(self, by: timedelta | int) -> None:
        """Move the broker's clocks forward; an int is in milliseconds.

        What is due then has happened when this returns: sessions and transactions have timed out,
        retention has run. A member that is alive joins again.
        """
        self._call(calls.AdvanceClock(milliseconds(by)), type(None))

    # -- faults -----------------------------------------------------------------------------------

    def inject(self, faults: Fault | Sequence[Fault]) -> Injected:
        """Let requests fail: see Fault.

        Several faults are a script: they come one after the other, and each begins when the one
        before has failed as many requests as its `times`. Scripts that were injected one by one
        run beside each other.
        """
        script = [faults] if isinstance(faults, Fault) else list(faults)
        return Injected(self._call, self._call(calls.Inject(script), str))

    def fail_next(self, api_key: ApiKey, error_code: ErrorCode, times: int = 1) -> Injected:
        """Answer the next requests of an API with an error, without doing what they ask."""
        return self.inject(Fault(api=api_key, error=error_code, times=times))

    def drop_connection(
        self, api_key: ApiKey, times: int = 1, *, handled: bool = False
    ) -> Injected:
        """Close the connections of the next requests of an API instead of answering.

        `handled`: the broker first does what they ask, so only the answer is lost.
        """
        cut: Literal["before_work", "before_answer"] = "before_answer" if handled else "before_work"
        return self.inject(Fault(api=api_key, cut=cut, times=times))

    def delay(self, api_key: ApiKey, delay: timedelta | int) -> None:
        """Answer the requests of an API later; an int is in milliseconds, 0 ends the delay."""
        before = self._delays.pop(api_key, None)
        if before is not None:
            before.remove()
        delay_ms = milliseconds(delay)
        if delay_ms:
            fault = Fault(api=api_key, delay_after_ms=delay_ms, times=None)
            self._delays[api_key] = self.inject(fault)

    def pretend(self, max_versions: Mapping[ApiKey, int]) -> None:
        """Be an older broker: serve these APIs only up to a version; -1: not at all.

        Clients notice it on their next connection.
        """
        self._call(calls.Pretend(dict(max_versions)), type(None))

    def clear_faults(self) -> None:
        """Remove all faults that the methods above have set."""
        self._call(calls.ClearFaults(), type(None))

    def fill_disk(self) -> None:
        """Let every write fail as on a full disk, until `free_disk` or `reset`.

        Compaction does not notice it, because another process writes its files.
        """
        self._call(calls.SetDiskFull(is_full=True), type(None))

    def free_disk(self) -> None:
        """Let writes succeed again."""
        self._call(calls.SetDiskFull(is_full=False), type(None))

    # -- snapshots --------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Keep the present state: topics, records, groups, transactions, settings."""
        passwords = {} if self._security is None else dict(self._security.passwords)
        return Snapshot(self._call(calls.TakeSnapshot(), str), passwords)

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a state, as often as wanted. Connections are closed; clients reconnect.

        Faults and `pretend` stay. Requests that a fault delays go on at once.
        """
        self._call(calls.RestoreSnapshot(snapshot.directory), type(None))
        if self._security is not None:
            self._security.passwords = dict(snapshot.passwords)

    # -- the process ------------------------------------------------------------------------------

    def _check_owner(self) -> None:
        if self._owner not in (0, os.getpid()):
            raise BrokerError("only the process that has started the broker may call it")

    def _call(self, call: Call, result: type[T]) -> T:
        process = self._process
        if process is None:
            raise BrokerError("the broker does not run")
        self._check_owner()
        try:
            msgspec.convert(msgspec.structs.asdict(call), type(call))
            text = msgspec.json.encode(call)
        except (
            msgspec.ValidationError,  # also of bytes, which JSON takes for a text
            UnicodeEncodeError,  # a text that is not UTF-8, as a path may be
        ) as error:
            raise BrokerError(str(error)) from None
        if len(text) > calls.MAX_LINE_BYTES - 32:
            raise BrokerError(f"this is too much for one call: {len(text) >> 20} MiB")
        with self._lock:
            self._calls += 1
            number = b"%d " % self._calls
            try:
                # A call that was interrupted may have left a part of a line.
                process.stdin.write(b"\n%b%b\n" % (number, text))
                process.stdin.flush()
                line = process.stdout.readline()
                while line and not line.startswith(number):
                    line = process.stdout.readline()
            except (OSError, ValueError):  # the latter: another thread has closed the pipes
                line = b""
        if not line and process is not self._process:
            raise BrokerError("another thread has stopped the broker")
        if not line:
            raise BrokerError(f"the broker has ended; its last lines:\n{self.last_log_lines()}")
        reply = msgspec.json.decode(line.removeprefix(number), type=calls.Reply)
        if reply.error is not None:
            raise BrokerError(reply.error)
        decoded: Any = msgspec.json.decode(reply.result, type=result)
        return decoded  # type: ignore[no-any-return] # the decoder has checked its type
