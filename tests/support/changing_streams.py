"""Streams that are killed, fail and change, what is written to their sources, and a ledger.

    Lines      writes files of text, for Spark's own source
    Extras     topics that a pattern selects, which are created, deleted and created again
    Copies     reads what the streams have written; a value that comes twice is an error
    Streams    runs changing_program, and knows which batch each of its queries has begun

What the program of a query says when it ends with an error is a Refusal of ours, which has a way
out, or follows from what the test has done.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as ClientPartition

from odradek.pipeline.source.broker_origin import BrokerOrigin
from odradek.storage.topic_partition import TopicPartition
from tests.support.broker_process import BrokerProcess
from tests.support.changing_program import FAILURE, QuerySettings, Settings
from tests.support.killed_stream import kill_all, signal_to
from tests.support.process_tree import children_of
from tests.support.quick_spark import quick_java_options
from tests.support.spark_process import ROOT
from tests.support.topics import create_topic, delete_topic

LIMIT_SECONDS = 1_200.0  # a busy machine takes minutes to start Spark
EXECUTOR, WORKER = "CoarseGrainedExecutorBackend", "pyspark.daemon pyspark.worker"


class Refusal(Enum):
    """Why a query goes no further, by the text that says so."""

    DIVISION = r"was written in part by an earlier run"
    LOST_ROWS = r"before, and has \d+ rows now.*the source has lost records since then"
    ROWS = r"before, and has \d+ rows now"
    TOPIC = (
        r"was deleted and created again|no longer exist; data may be lost|records are lost: |"
        r"offsets \d+ to \d+ are lost: "
    )
    LATE = r"another run of the query has begun to write"


# What follows from a task that fails, and a process or broker that is killed.
_FAILED = (
    re.escape(FAILURE),
    r"Python worker exited unexpectedly",
    r"Python worker failed to connect back",  # Spark waits ten seconds for a process to start
    r"ended the task before all of its rows had arrived",
    r"ExecutorLostFailure",
)
_WITHOUT_BROKER = (
    r"no broker answers",
    r"_TRANSPORT|_ALL_BROKERS_DOWN|_TIMED_OUT|Broker transport failure|timed out|BrokerError",
    r"Failed to query partition leaders",
)


def refusal_of(text: str, *, broker_was_killed: bool) -> Refusal | None:
    """Why the query refuses; None if it failed as the test wants. Other texts are an error."""
    for each in Refusal:
        if re.search(each.value, text, re.DOTALL):
            return each
    expected = _FAILED + (_WITHOUT_BROKER if broker_was_killed else ())
    assert any(re.search(each, text) for each in expected), f"no refusal of ours:\n{text}"
    return None


# -- what is written -------------------------------------------------------------------------------


class Lines:
    """Writes files of numbered lines until the `with` ends. Each appears at once."""

    def __init__(self, directory: Path, every_s: float = 0.7) -> None:
        self.directory = directory
        self.written: list[bytes] = []
        self._every_s = every_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write, name="lines", daemon=True)
        directory.mkdir()

    def __enter__(self) -> "Lines":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._end.wait(self._every_s):
            lines = [b"line %d" % (1000 * number + line) for line in range(number % 40)]
            fresh = self.directory / f".{number}"  # Spark does not read hidden files
            fresh.write_bytes(b"".join(line + b"\n" for line in lines))
            fresh.rename(self.directory / f"{number}.txt")
            self.written += lines
            number += 1


class Extras:
    """Topics whose names begin with `prefix`. A topic that is deleted may lose its records."""

    def __init__(self, broker: BrokerProcess, prefix: str) -> None:
        self.there: dict[str, set[bytes]] = {}
        self.deleted: dict[str, set[bytes]] = defaultdict(set)
        self._broker, self._prefix = broker, prefix
        self._count = 0

    def create(self) -> None:
        """Create one more."""
        self._make(f"{self._prefix}{len(self.there)}")

    def create_again(self, topic: str) -> None:
        """Delete a topic and create it again, with other records."""
        delete_topic(self._broker.bootstrap, topic)
        self.deleted[topic] |= self.there.pop(topic)
        self._make(topic)

    def write(self, topic: str, count: int) -> None:
        """Write so many records, and wait until they are acknowledged."""
        # One that has seen that the topic is deleted would refuse to write to its successor.
        producer = Producer({"bootstrap.servers": self._broker.bootstrap})
        failures: list[KafkaError] = []
        for _ in range(count):
            self._count += 1
            value = b"%s %d" % (topic.encode(), self._count)
            producer.produce(
                topic,
                value,
                partition=0,
                on_delivery=lambda error, _: failures.extend([error] if error else ()),
            )
            self.there[topic].add(value)
        assert producer.flush(LIMIT_SECONDS) == 0
        assert not failures

    def _make(self, topic: str) -> None:
        create_topic(self._broker.bootstrap, topic)
        self.there[topic] = set()
        self.write(topic, 40)


# -- what is found ---------------------------------------------------------------------------------


class Copies:
    """Committed values of topics of two partitions."""

    def __init__(self, broker: BrokerProcess, topics: Iterable[str]) -> None:
        self.found: dict[str, set[bytes]] = {topic: set() for topic in topics}
        self._bootstrap = broker.bootstrap
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "copies",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,  # the broker is killed
            }
        )
        self._next = {(topic, each): 0 for topic in self.found for each in (0, 1)}

    def read(self) -> None:
        """Read on, up to open transactions. Raises AssertionError if a value is there twice."""
        self._consumer.assign([ClientPartition(*each, at) for each, at in self._next.items()])
        ended: set[tuple[str, int]] = set()
        while len(ended) < len(self._next):
            message = self._consumer.poll(LIMIT_SECONDS)
            assert message is not None, "the end of a partition is not reached"
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            error = message.error()
            if error is None:
                assert topic is not None
                assert partition is not None
                assert offset is not None
                value = message.value() or b""
                assert value not in self.found[topic], f"{topic} has {value!r} twice"
                self.found[topic].add(value)
                self._next[topic, partition] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                assert topic is not None
                assert partition is not None
                ended.add((topic, partition))
            else:
                assert error.retriable() or error.code() < 0, error.str()  # no connection

    def read_all(self) -> None:
        """Read to the ends, when transactions that nobody completes have timed out."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while self._ends(committed=True) != self._ends(committed=False):
            assert time.monotonic() < deadline, "a transaction stays open"
            time.sleep(1)
        self.read()
        self._consumer.close()

    def _ends(self, *, committed: bool) -> list[int]:
        client = {"bootstrap.servers": self._bootstrap}
        places = [TopicPartition(*each) for each in self._next]
        bounds = BrokerOrigin(client, committed_only=committed).bounds(places)
        return [bounds[each].end for each in places]


# -- the queries -----------------------------------------------------------------------------------


class Streams:
    """Queries of changing_program.py, each with a checkpoint of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def running(
        self,
        master: str,
        queries: Mapping[str, list[QuerySettings]],
        *,
        ends: bool = False,
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """They run inside the `with`, and nothing of them is left behind."""
        for name in queries:
            (self.root / name).mkdir(exist_ok=True)
            for path in (self.root / name).glob("*-*"):
                path.unlink()
        scratch = self.root / "scratch"
        scratch.mkdir(exist_ok=True)
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        conf = {
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": "512m",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.driver.extraJavaOptions": quick_java_options(),
            "spark.executor.extraJavaOptions": quick_java_options(),
            "spark.executorEnv.PYTHONPATH": paths,
            "spark.local.dir": str(scratch),
            "spark.log.level": "ERROR",
            # So that a task has several batches of rows.
            "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        }
        settings: Settings = {
            "root": str(self.root),
            "master": master,
            "conf": conf,
            "ends": ends,
            "queries": dict(queries),
        }
        with (self.root / "spark.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.changing_program", json.dumps(settings)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            kill_all(process)
            shutil.rmtree(scratch, ignore_errors=True)

    def begun(self, name: str) -> int:
        """The last batch that is planned; -1 before the first."""
        return self._newest(name, "offsets")

    def finished(self, name: str) -> int:
        """The last batch that is done."""
        return self._newest(name, "commits")

    def last_offsets(self, name: str) -> str:
        """What the checkpoint has of the batch that was begun last."""
        path = self.root / name / "checkpoint" / "offsets" / str(self.begun(name))
        return path.read_text() if path.exists() else ""

    def starts(self, name: str) -> int:
        """How many starts of the query have begun."""
        return len(list((self.root / name).glob("start-*")))

    def errors(self, name: str) -> dict[int, str]:
        """Of those starts that have ended with an error, its text."""
        paths = (self.root / name).glob("error-*")
        return {int(path.name.removeprefix("error-")): path.read_text() for path in sorted(paths)}

    def log_text(self) -> str:
        """What the process has written."""
        return (self.root / "spark.log").read_text(errors="replace")[-4000:]

    def _newest(self, name: str, kind: str) -> int:
        noted = (self.root / name / "checkpoint" / kind).glob("*")
        return max((int(path.name) for path in noted if path.name.isdecimal()), default=-1)


def kill_one(pids: Iterable[int], what: str, rng: random.Random) -> None:
    """Kill a process below these whose command has the text, if there is one."""
    found = [each for pid in pids for each in children_of(pid) if what in _command(each)]
    if found:
        signal_to(rng.choice(found), signal.SIGKILL)


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""
