"""Libraries of other languages, for scripts of failures: programs that do what lines say."""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.conformance.cluster.client import (
    Consumer,
    ConsumerSettings,
    NotThereError,
    Producer,
    ProducerSettings,
)
from tests.support.go_programs import build, why_no_go
from tests.support.java_program import compiled_program
from tests.support.java_tools import why_no_java
from tests.support.kafka_jars import kafka_jars
from tests.support.line_program import LineProgram

SUPPORT = Path(__file__).parents[2] / "support"
GO, KAFKAJS = SUPPORT / "go_cluster_client", SUPPORT / "kafkajs_client"
FETCH_SECONDS = 300


class _Client:
    """A process with one producer or one consumer."""

    def __init__(self, command: Sequence[str | Path], kind: str, **settings: object) -> None:
        self._program = LineProgram(command)
        given = [
            f"{name.replace('_', '-')}={value}"
            for name, value in settings.items()
            if value is not None
        ]
        try:
            self._ask(kind, *given)
        except BaseException:
            self._program.end()
            raise

    def _ask(self, *words: object) -> list[str]:
        answer = self._program.ask(" ".join(map(str, words)))
        assert answer.startswith("ok"), answer
        return answer.split(" ")[1:]

    def send(self, topic: str, partition: int, value: str) -> None:
        self._ask("send", topic, partition, value)

    def flush(self) -> list[str]:
        return self._ask("flush")

    def begin(self) -> None:
        self._ask("begin")

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        self._ask("offset", group, topic, partition, offset)

    def abort(self) -> None:
        self._ask("abort")

    def poll(self) -> list[str]:
        return self._ask("poll")

    def close(self) -> None:
        self._program.end()


class _Producer(_Client):
    def commit(self) -> None:
        self._ask("commit")


class _Consumer(_Client):
    def commit(self) -> None:
        self._ask("commit-offsets")


class Programs:
    """A library whose program has this command."""

    def __init__(
        self,
        why_not: Callable[[], str | None],
        command: Callable[[], Sequence[str | Path]],
        *,
        has_share_groups: bool = False,
    ) -> None:
        self.why_not = why_not
        self._command = command
        self._has_share_groups = has_share_groups

    def producer(self, settings: ProducerSettings) -> Producer:
        return _Producer(
            self._command(),
            "produce",
            bootstrap=settings.bootstrap,
            client=settings.client,
            transactional_id=settings.transactional_id,
            retries=settings.retries,
            timeout_ms=settings.timeout_ms,
        )

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        return self._reader("consume", settings)

    def share_consumer(self, settings: ConsumerSettings) -> Consumer:
        if not self._has_share_groups:
            raise NotThereError
        return self._reader("share", settings)

    def _reader(self, kind: str, settings: ConsumerSettings) -> Consumer:
        return _Consumer(
            self._command(),
            kind,
            bootstrap=settings.bootstrap,
            client=settings.client,
            group=settings.group,
            topics=settings.topic,
            rack=settings.rack,
        )


@functools.cache
def _made_scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="cluster-clients-")


def _scratch() -> Path:
    """A directory that lasts as long as this process."""
    return Path(_made_scratch().name)


def _java() -> Sequence[str]:
    jars = kafka_jars()
    assert jars is not None
    return compiled_program(jars, "FailoverClient.java")


@functools.cache
def _go() -> Path:
    return build(GO, _scratch())


@functools.cache
def _why_no_kafkajs() -> str | None:
    if shutil.which("npm") is None:
        return "needs npm"
    directory = Path(shutil.copytree(KAFKAJS, _scratch() / "kafkajs"))
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund"],
        cwd=directory,
        env={**os.environ, "NO_UPDATE_NOTIFIER": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_SECONDS,
    )
    return f"npm could not fetch kafkajs: {done.stderr[-300:]}" if done.returncode else None


def _kafkajs() -> Sequence[str | Path]:
    return ["node", _scratch() / "kafkajs" / "client.js"]


JAVA = Programs(why_no_java, _java, has_share_groups=True)
FRANZ_GO = Programs(lambda: why_no_go(GO), lambda: [_go(), "franz-go"], has_share_groups=True)
SARAMA = Programs(lambda: why_no_go(GO), lambda: [_go(), "sarama"])
KAFKA_JS = Programs(_why_no_kafkajs, _kafkajs)
