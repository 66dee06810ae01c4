"""What Apache Kafka answers, kept as plain values in tests/golden/answers.

Kafka 4.4's answers do not change. So a test that compares odradek's with them takes them from a
file, and Kafka is not started. `make long` asks Kafka again, and fails where it answers something
else than the file says. `make answers` asks it and writes the files. What the file of an answer
lacks (drawn ids, times, ports) is for the test to take away before.
"""

import difflib
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.broker_process import ApacheKafkaProcess, running
from tests.support.java_tools import why_no_java
from tests.support.lengths import LONG, RECORDS

ANSWERS = Path(__file__).resolve().parents[1] / "golden" / "answers"
ASKS_KAFKA = LONG or RECORDS
# For tests that say themselves what Kafka answers: which brokers they ask.
KAFKA_WHEN_ASKED = [pytest.param("kafka", marks=pytest.mark.java)] if ASKS_KAFKA else []
BROKERS = ["odradek", *KAFKA_WHEN_ASKED]
LONGEST_DIFFERENCE = 10_000
Served = TypeVar("Served")
Given = Callable[[], Served]


def kafka_answers(name: str, ask: Callable[[], Any]) -> Any:
    """What Kafka answers, in the form that `as_kept` gives; `ask` asks it, if it must be asked.

    Skips the test if Kafka must be asked and cannot run.
    `name` is the file's. A long run may ask more than was kept: what has no file is not compared.
    """
    file = ANSWERS / f"{name}.json"
    if not ASKS_KAFKA:
        assert file.exists(), (
            f"{name}.json is not in tests/golden/answers: run `make answers`, or set "
            "ODRADEK_TEST_LENGTH=long, and Kafka is asked"
        )
        return json.loads(file.read_text())
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    answers = as_kept(ask())
    if RECORDS:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_rendered(answers))
    elif file.exists() and json.loads(file.read_text()) != answers:
        pytest.fail(_difference(file, _rendered(answers)), pytrace=False)
    return answers


@contextmanager
def when_asked(serve: Callable[[], AbstractContextManager[Served]]) -> Iterator[Given[Served]]:
    """Gives what `serve` serves, which begins at the first call."""
    with ExitStack() as stack:

        @functools.cache
        def served() -> Served:
            return stack.enter_context(serve())

        yield served


@contextmanager
def kafka_when_asked(
    directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[Given[ApacheKafkaProcess]]:
    """Gives Apache Kafka, which starts at the first call."""
    process = ApacheKafkaProcess(directory, settings)
    with when_asked(lambda: running(process)) as kafka:
        yield kafka


def as_kept(value: Any) -> Any:
    """The value as it comes back from a file: bytes are hex, tuples and sets are lists."""
    return json.loads(json.dumps(value, default=_kept))


def _kept(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"hex {value.hex()}"
    assert isinstance(value, set | frozenset), f"{type(value)} is not a plain value"
    return sorted(value)


def _rendered(answers: Any) -> str:
    """JSON with a line for each element, so that a difference can be read."""
    if isinstance(answers, dict):
        lines = [f"{json.dumps(name)}: {_line(each)}" for name, each in answers.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"
    if isinstance(answers, list):
        return "[\n" + ",\n".join(map(_line, answers)) + "\n]\n"
    return _line(answers) + "\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _difference(file: Path, said: str) -> str:
    lines = difflib.unified_diff(
        file.read_text().splitlines(), said.splitlines(), file.name, "Kafka now", n=0, lineterm=""
    )
    text = "\n".join(lines)[:LONGEST_DIFFERENCE]
    return f"Apache Kafka answers something else than it did (`make answers` keeps it):\n{text}"
