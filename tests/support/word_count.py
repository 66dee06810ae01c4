"""Instances of Kafka Streams that count words, a producer of lines and a reader of counts.

Each instance is a process that runs WordCount.java from its source and can be killed at any moment.
"""

import random
import shutil
import subprocess
import threading
from collections import Counter
from pathlib import Path
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.support.kafka_jars import streams_jars, why_no_jars
from tests.support.lengths import SEED

PROGRAM = Path(__file__).with_name("WordCount.java")
LIMIT_SECONDS = 60.0
TURN_SECONDS = 0.02
LINES_A_TURN = 4
WORDS = [f"word-{number}" for number in range(40)]
CLIENT = {"reconnect.backoff.max.ms": "200", "log_level": "0"}


def why_no_streams() -> str | None:
    """Why Kafka Streams cannot run here, or None."""
    if shutil.which("java") is None or streams_jars() is None:
        return why_no_jars()
    return None


class Instance:
    """One process of the application; `said` holds the lines that it has written."""

    def __init__(self, store: str, settings: dict[str, str], log: Path) -> None:
        """`store` is memory or rocksdb; the log gets warnings and errors of Kafka's classes."""
        self.said: list[str] = []
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                _command(store, settings),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def kill(self) -> None:
        """SIGKILL; nothing happens when it has ended already."""
        self._process.kill()
        self._end()

    def close(self) -> None:
        """End it as its users do; raises TimeoutExpired."""
        self._end()
        assert self._process.returncode == 0

    @property
    def is_running(self) -> bool:
        """Whether the process still lives."""
        return self._process.poll() is None

    def state(self) -> str:
        """Its KafkaStreams.State."""
        states = self._told("state")
        return states[-1][1] if states else "CREATED"

    def restored(self) -> int:
        """How many records of changelogs it has read into its stores."""
        return sum(int(words[2]) for words in self._told("restored"))

    def failures(self) -> list[str]:
        """The classes of the exceptions that ended threads; each was replaced by a new thread."""
        return [words[1] for words in self._told("failed")]

    def _told(self, kind: str) -> list[list[str]]:
        lines = (line.split() for line in list(self.said))
        return [words for words in lines if words[0] == kind]

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(LIMIT_SECONDS)
        self._listener.join(LIMIT_SECONDS)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):  # the last one may be cut
                    self.said.append(line)


def _command(store: str, settings: dict[str, str]) -> list[str]:
    jars = streams_jars()
    assert jars is not None, why_no_jars()
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable", "-Xmx256m"]
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    given = [f"{key}={value}" for key, value in settings.items()]
    return ["java", *options, level, "-cp", f"{jars}/*", str(PROGRAM), store, *given]


class Lines:
    """Writes lines of words to a topic until the `with` ends; `words` are counted when sent."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.words: Counter[bytes] = Counter()
        self._topic, self._partitions = topic, partitions
        self._failures: list[KafkaError] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, name="lines", daemon=True)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, **CLIENT}
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def stop(self) -> None:
        """Write no more, and wait until every line is acknowledged."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(LIMIT_SECONDS) == 0
        assert self._failures == []

    def _write(self) -> None:
        rng = random.Random(SEED)
        while not self._stop.wait(TURN_SECONDS):
            for _ in range(LINES_A_TURN):
                words = rng.choices(WORDS, k=rng.randrange(1, 6))
                self._producer.produce(
                    self._topic,
                    " ".join(words).encode(),
                    partition=rng.randrange(self._partitions),
                    on_delivery=self._delivered,
                )
                self.words.update(word.encode() for word in words)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error)


class Counts:
    """Reads the committed counts, each of which must be its word's last one plus one."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.words: Counter[bytes] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                **CLIENT,
            }
        )
        self._consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self, within_s: float) -> int:
        """How many new counts were there within this time."""
        found = self._consumer.consume(10_000, within_s)
        for message in found:
            word, value = message.key(), message.value()
            assert message.error() is None, message.error()
            assert word is not None
            assert value is not None
            place = f"partition {message.partition()}, offset {message.offset()}"
            expected = self.words[word] + 1
            assert int.from_bytes(value) == expected, f"{word!r}, {place}: not {expected}"
            self.words[word] += 1
        return len(found)
