"""Streaming queries that are killed at any moment, and a producer that meanwhile writes."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.support.broker_process import BrokerProcess
from tests.support.lengths import SEED, by_length
from tests.support.process_tree import children_of
from tests.support.quick_spark import quick_java_options
from tests.support.spark_process import ROOT
from tests.support.streaming_program import Seen

LIMIT_SECONDS = 100.0


class Producing:
    """Writes to all partitions of a topic until the `with` ends; `acknowledged` lie in the log.

    With `keys`, each record has one of so many keys, and `newest` has the last value of each.
    """

    def __init__(
        self, broker: BrokerProcess, topic: str, *, keys: int = 0, every_s: float = 0.05
    ) -> None:
        self.acknowledged: list[Seen] = []
        self.newest: dict[int, bytes] = {}
        self.partitions = 2
        self._topic, self._keys, self._every_s = topic, keys, every_s
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        self._failures: list[KafkaError] = []
        self._end = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "batch.size": 8000,  # less than a small segment
                "compression.type": "lz4",
                "enable.idempotence": True,
            }
        )
        self._thread = threading.Thread(target=self._write, name="producing", daemon=True)

    def __enter__(self) -> "Producing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        assert self._producer.flush(LIMIT_SECONDS) == 0
        assert not self._failures, sorted({error.str() for error in self._failures})

    def grow(self, partitions: int) -> None:
        """Give the topic more partitions, and write to them too."""
        answers = self._admin.create_partitions([NewPartitions(self._topic, partitions)])
        answers[self._topic].result(LIMIT_SECONDS)
        # The producer refuses a partition until it has heard of it.
        known = 0
        while known < partitions:
            described = self._producer.list_topics(self._topic, LIMIT_SECONDS)
            known = len(described.topics[self._topic].partitions)
        self.partitions = partitions

    def _write(self) -> None:
        rng, number = random.Random(SEED), 0
        while not self._end.is_set():
            for _ in range(rng.randrange(30)):
                number += 1
                value = b"%d " % number + rng.randbytes(rng.randrange(50))
                place = rng.randrange(self._keys or self.partitions)
                key = b"%d" % place if self._keys else None
                if self._keys:
                    self.newest[place] = value
                self._producer.produce(
                    self._topic,
                    value,
                    key,
                    partition=place % self.partitions,
                    on_delivery=self._delivered,
                )
            self._producer.poll(0)
            self._end.wait(self._every_s)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error)
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.acknowledged.append((partition, offset, value))


class Job:
    """The queries of streaming_program.py, which can be killed and started again.

    One for each of `modes`; into files, or as the options `to` say.
    """

    def __init__(
        self,
        broker: BrokerProcess,
        topic: str,
        root: Path,
        modes: Sequence[str] = ("files",),
        to: Mapping[str, str] | None = None,
    ) -> None:
        self.root, self.modes, self._to = root, modes, to
        self._options = {
            "path": str(broker.data),
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
        }

    @contextmanager
    def running(self, at_most: int, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
        """It runs inside the `with`, and nothing of it is left behind."""
        conf = {
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": quick_java_options(),
            "spark.local.dir": str(self.root),
            "spark.sql.shuffle.partitions": "2",
            "spark.log.level": "ERROR",
        }
        settings = {"root": str(self.root), "modes": self.modes, "conf": conf, **more}
        if self._to is not None:
            settings["to"] = self._to
        settings["options"] = {**self._options, "maxOffsetsPerTrigger": str(at_most)}
        with (self.root / "spark.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.streaming_program", json.dumps(settings)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            kill_all(process)

    def begun(self, mode: str) -> int:
        """How many batches are planned; -1 before the first."""
        return self._newest(mode, "offsets")

    def finished(self, mode: str) -> int:
        """How many of them are done."""
        return self._newest(mode, "commits")

    def _newest(self, mode: str, kind: str) -> int:
        noted = (self.root / mode / "checkpoint" / kind).glob("*")
        return max((int(path.name) for path in noted if path.name.isdecimal()), default=-1)

    def log_text(self) -> str:
        return (self.root / "spark.log").read_text(errors="replace")[-4000:]


def kill_all(process: "subprocess.Popen[bytes]") -> None:
    """The process and all below it, at the same moment: none has time to notice another's end."""
    stopped: set[int] = set()
    while True:
        there = {process.pid, *children_of(process.pid)} if process.poll() is None else set()
        if there <= stopped:
            break
        for pid in there - stopped:
            signal_to(pid, signal.SIGSTOP)
        stopped |= there
    for pid in stopped:
        signal_to(pid, signal.SIGKILL)
    process.wait()


def signal_to(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def let_it_run(job: Job, rng: random.Random, *, in_batch: bool = False) -> None:
    """Until one of the queries has begun a new batch, and a little longer; then it is killed.

    With `in_batch` it is not killed before one of its batches is under way.
    """
    mode = rng.choice(job.modes)
    before = job.begun(mode)
    deadline = time.monotonic() + LIMIT_SECONDS
    with job.running(rng.choice([50, 100, 300])) as process:
        while job.begun(mode) == before:
            assert process.poll() is None, job.log_text()
            assert time.monotonic() < deadline, job.log_text()
            time.sleep(0.01)
        time.sleep(rng.uniform(0, by_length(1.0, 4.0)))
        while in_batch and job.begun(mode) == job.finished(mode):
            assert time.monotonic() < deadline, job.log_text()
            time.sleep(0.002)
        assert process.poll() is None, job.log_text()
