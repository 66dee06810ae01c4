"""Kafka Connect in distributed mode with exactly-once sources: each line of a file arrives once.

Workers and broker are killed at random moments while files grow.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.broker_process import BrokerProcess
from tests.support.committed import committed_by_partition
from tests.support.connect_worker import (
    LIMIT_SECONDS,
    ConnectError,
    ConnectWorker,
    compile_connectors,
    why_no_connect,
)
from tests.support.lengths import SEED, by_length, only_long

pytestmark = [pytest.mark.java, pytest.mark.slow]

FILES = 3
TOPICS = [f"lines-{number}" for number in range(FILES)]
# A task leaves lines in its buffer when it finds no more in the file; so many push them out.
FILLERS = 200
REASONS_IN_CONNECT = (
    # A race in the producer. Its sending thread looks whether records are unsent (Sender calls
    # `hasIncomplete`), and then takes the next request (TransactionManager.nextRequest). When
    # records and the commit come in between, EndTxn overtakes the records. In transaction version 2
    # no transaction is open then, and the broker has to refuse it.
    "InvalidTxnStateException",
    # The leader of the workers was killed while it fenced a task's predecessors for another worker,
    # which does not ask again (DistributedHerder.fenceZombieSourceTasks).
    "IO Error trying to forward REST request",
)
# The same race, where lines have opened a transaction: EndTxn overtakes only the offsets, which get
# into the next one. A task that flushes again before they are acknowledged fails, and the next one
# aborts them: it copies the lines that they belong to again.
COMMITTED_WITHOUT_OFFSETS = "OffsetStorageWriter is already flushing"


class GrowingFiles:
    """Files to which numbered lines are appended until the `with` ends."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.paths = [base.with_name(f"{base.name}.{number}") for number in range(FILES)]
        self.lines: list[list[bytes]] = [[] for _ in self.paths]
        self._rng = random.Random(SEED)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write, name="growing-files", daemon=True)
        for path in self.paths:
            path.touch()

    def __enter__(self) -> "GrowingFiles":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def append(self, number: int, count: int) -> None:
        """Append so many lines to the file of that number."""
        lines = self.lines[number]
        numbers = range(len(lines), len(lines) + count)
        new = [b"%d %d %s" % (number, at, b"x" * self._rng.randrange(60)) for at in numbers]
        lines += new
        with self.paths[number].open("ab") as file:
            file.write(b"".join(line + b"\n" for line in new))

    def bytes_of(self, number: int, count: int) -> int:
        """How many bytes the first `count` lines take."""
        return sum(len(line) + 1 for line in self.lines[number][:count])

    def _write(self) -> None:
        while not self._end.wait(0.1):
            for number in range(FILES):
                self.append(number, self._rng.randrange(60))


class Cluster:
    """A broker and two workers. `lines` copies the files to topics; `copies` those to one file."""

    def __init__(self, broker: BrokerProcess, scratch: Path, files: GrowingFiles) -> None:
        connectors = scratch / "connectors"
        connectors.mkdir()
        compile_connectors(connectors)
        self.broker, self.files = broker, files
        self.workers = [
            ConnectWorker(scratch / f"worker-{number}", broker.bootstrap, connectors)
            for number in range(2)
        ]
        self.sunk = scratch / "sunk"
        self.tasks = 0
        self.may_repeat_lines = False

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What a worker that runs answers."""
        worker = next(worker for worker in self.workers if worker.is_running)
        return worker.ask(method, path, body)

    def copy_files(self, tasks: int, batch: int, boundary: str = "poll") -> None:
        """Create or change the source: the first `tasks` files are copied."""
        self.tasks = tasks
        settings = {
            "connector.class": "FilesSource",
            "file": str(self.files.base),
            "topic": "lines",
            "batch.size": str(batch),
            "tasks.max": str(tasks),
            "exactly.once.support": "required",
            "transaction.boundary": boundary,
            "transaction.boundary.interval.ms": "50",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.cleanup.policy": "delete",
        }
        self.ask("PUT", "/connectors/lines/config", settings)

    def copy_topics(self, tasks: int) -> None:
        """Create or change the sink, which copies all topics into one file."""
        settings = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "topics": ",".join(TOPICS),
            "file": str(self.sunk),
            "tasks.max": str(tasks),
            "consumer.override.auto.offset.reset": "earliest",
            "consumer.override.metadata.max.age.ms": "1000",
        }
        self.ask("PUT", "/connectors/copies/config", settings)

    def end_transactions(self) -> None:
        """Abort the transactions that killed workers have left open.

        A worker that starts reads the committed offsets to their end before it starts a task. An
        open transaction holds it up, and only a task would abort it before its timeout.
        """
        names = ["connect-cluster-connect", *(f"connect-lines-{task}" for task in range(FILES))]
        for name in names:
            settings = {"bootstrap.servers": self.broker.bootstrap, "log_level": "0"}
            Producer({**settings, "transactional.id": name}).init_transactions(LIMIT_SECONDS)

    def stop_source(self) -> None:
        """Stop its tasks; it keeps its settings and offsets."""
        self.ask("PUT", "/connectors/lines/stop")
        self.wait_until(lambda: not self.ask("GET", "/connectors/lines/status")["tasks"])

    def copied(self) -> list[list[bytes]]:
        """The committed lines of each topic, without those that Connect itself copies again."""
        found = committed_by_partition(self.broker.bootstrap, [(topic, 0) for topic in TOPICS])
        if self.may_repeat_lines:
            return [list(dict.fromkeys(lines)) for lines in found.values()]
        return list(found.values())

    def positions(self) -> list[int]:
        """How many bytes of each file are copied, as the offsets topic says."""
        found = dict.fromkeys(map(str, self.files.paths), 0)
        for each in self.ask("GET", "/connectors/lines/offsets")["offsets"]:
            found[each["partition"]["filename"]] = each["offset"]["position"]
        return list(found.values())

    def wait_for_copies(self) -> None:
        """Wait until more is copied of each file that has a task."""
        before = self.positions()

        def copied() -> bool:
            now = self.positions()
            return all(now[task] > before[task] for task in range(self.tasks))

        self.wait_until(copied)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return when the condition holds; it fails when that takes too long."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.describe()
            self.restart_failed_tasks()
            time.sleep(0.1)

    def restart_failed_tasks(self) -> None:
        """Restart the tasks that have failed for a reason that lies in Connect itself."""
        for name, connector in self.ask("GET", "/connectors?expand=status").items():
            for task in connector["status"]["tasks"]:
                trace = task.get("trace", "")
                repeats = COMMITTED_WITHOUT_OFFSETS in trace
                self.may_repeat_lines |= repeats
                if repeats or any(reason in trace for reason in REASONS_IN_CONNECT):
                    self.ask("POST", f"/connectors/{name}/tasks/{task['id']}/restart")

    def describe(self) -> str:
        """The state of the connectors, and what the workers have written last."""
        logs = "\n".join(worker.log_text()[-3000:] for worker in self.workers)
        try:
            status = self.ask("GET", "/connectors?expand=status")
        except ConnectError as error:
            status = error
        return f"{status}\n{logs}"


@pytest.fixture
def cluster(start_broker: Callable[..., BrokerProcess], tmp_path: Path) -> Iterator[Cluster]:
    """A broker and two workers, and three files that do not grow yet."""
    reason = why_no_connect()
    if reason:
        pytest.skip(reason)
    made = Cluster(start_broker(), tmp_path, GrowingFiles(tmp_path / "lines"))
    try:
        for worker in made.workers:
            worker.start()
        yield made
    finally:
        for worker in made.workers:
            worker.kill()


def kill_worker(cluster: Cluster, rng: random.Random) -> None:
    worker = rng.choice(cluster.workers)
    worker.kill()
    worker.start()


def kill_workers(cluster: Cluster, rng: random.Random) -> None:
    for worker in cluster.workers:
        worker.kill()
    cluster.end_transactions()
    for worker in cluster.workers:
        worker.start()


def kill_broker(cluster: Cluster, rng: random.Random) -> None:
    cluster.broker.kill()
    cluster.broker.start()


def kill_all(cluster: Cluster, rng: random.Random) -> None:
    for worker in cluster.workers:
        worker.kill()
    cluster.broker.kill()
    cluster.broker.start()
    cluster.end_transactions()
    for worker in cluster.workers:
        worker.start()


def reconfigure(cluster: Cluster, rng: random.Random) -> None:
    tasks = rng.choice([count for count in (1, 2, 3) if count != cluster.tasks])
    cluster.copy_files(tasks, rng.choice([2, 5, 20]), rng.choice(["poll", "interval"]))
    cluster.copy_topics(rng.choice([1, 2, 3]))


def reconfigure_and_kill(cluster: Cluster, rng: random.Random) -> None:
    reconfigure(cluster, rng)
    time.sleep(rng.uniform(0, 0.5))
    kill_worker(cluster, rng)


def pause(cluster: Cluster, rng: random.Random) -> None:
    cluster.ask("PUT", "/connectors/lines/pause")
    time.sleep(rng.uniform(0, 0.5))
    cluster.ask("PUT", "/connectors/lines/resume")


def restart(cluster: Cluster, rng: random.Random) -> None:
    cluster.ask("POST", "/connectors/lines/restart?includeTasks=true")


Disturb = Callable[[Cluster, random.Random], None]
KILLS_AND_CHANGES: tuple[Disturb, ...] = (reconfigure_and_kill, kill_all)
ALL: tuple[Disturb, ...] = (
    *KILLS_AND_CHANGES,
    kill_broker,
    pause,
    restart,
    kill_worker,
    kill_workers,
    reconfigure,
)


def test_each_line_is_copied_once_and_in_order_whoever_is_killed(cluster: Cluster) -> None:
    rng, files = random.Random(SEED), cluster.files
    cluster.copy_files(FILES, 5)
    cluster.copy_topics(2)
    with files:
        for disturbances in by_length([KILLS_AND_CHANGES], [ALL] * 8):
            for disturb in rng.sample(disturbances, len(disturbances)):
                time.sleep(rng.uniform(0, 1))
                disturb(cluster, rng)
                cluster.wait_for_copies()
    least = [files.bytes_of(number, len(lines)) for number, lines in enumerate(files.lines)]
    for number in range(FILES):
        files.append(number, FILLERS)
    cluster.copy_files(FILES, 100)
    cluster.wait_until(lambda: all(map(int.__ge__, cluster.positions(), least)))
    cluster.stop_source()
    copied = cluster.copied()
    for lines, written in zip(copied, files.lines, strict=True):
        assert lines == written[: len(lines)]
    ends = [files.bytes_of(number, len(lines)) for number, lines in enumerate(copied)]
    assert cluster.positions() == ends
    once = {line for lines in copied for line in lines}
    cluster.wait_until(lambda: set(cluster.sunk.read_bytes().splitlines()) == once)


@only_long("lines are copied above")
def test_offsets_are_altered_and_reset_as_asked(cluster: Cluster) -> None:
    files, count = cluster.files, 100
    for number in range(FILES):
        files.append(number, count)
    ends = [files.bytes_of(number, count) for number in range(FILES)]
    cluster.copy_files(FILES, 2 * count)
    cluster.wait_until(lambda: cluster.positions() == ends)
    expected = [list(lines) for lines in files.lines]
    assert cluster.copied() == expected

    cluster.stop_source()
    again = {
        "partition": {"filename": str(files.paths[0])},
        "offset": {"position": files.bytes_of(0, 90)},
    }
    cluster.ask("PATCH", "/connectors/lines/offsets", {"offsets": [again]})
    assert cluster.positions() == [files.bytes_of(0, 90), *ends[1:]]
    cluster.ask("PUT", "/connectors/lines/resume")
    cluster.wait_until(lambda: cluster.positions() == ends)
    expected[0] += files.lines[0][90:]
    assert cluster.copied() == expected

    cluster.stop_source()
    cluster.ask("DELETE", "/connectors/lines/offsets")
    assert cluster.positions() == [0] * FILES
    cluster.ask("PUT", "/connectors/lines/resume")
    cluster.wait_until(lambda: cluster.positions() == ends)
    expected = [lines + new for lines, new in zip(expected, files.lines, strict=True)]
    assert cluster.copied() == expected
    cluster.ask("DELETE", "/connectors/lines")
    cluster.wait_until(lambda: cluster.ask("GET", "/connectors") == [])
