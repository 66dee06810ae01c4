"""Kept answers of Apache Kafka: when it is asked, and what a difference does."""

from pathlib import Path

import pytest

from tests.support import kafka_answers as kept
from tests.support.kafka_answers import as_kept, kafka_answers


@pytest.fixture(autouse=True)
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of answers; Kafka can run."""
    monkeypatch.setattr(kept, "ANSWERS", tmp_path)
    monkeypatch.setattr(kept, "why_no_java", lambda: None)
    return tmp_path


def never() -> object:
    raise AssertionError("Kafka was asked")


def ask_kafka(monkeypatch: pytest.MonkeyPatch, *, record: bool) -> None:
    monkeypatch.setattr(kept, "ASKS_KAFKA", True)
    monkeypatch.setattr(kept, "RECORDS", record)


def test_what_is_recorded_is_what_a_short_run_compares_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask_kafka(monkeypatch, record=True)
    said = [("title", {"records": b"\0\xff", "names": {"b", "a"}}), ("größe", None)]
    assert kafka_answers("dir/name", lambda: said) == as_kept(said)
    monkeypatch.setattr(kept, "ASKS_KAFKA", False)
    assert kafka_answers("dir/name", never) == as_kept(said)
    assert as_kept(said)[0][1] == {"records": "hex 00ff", "names": ["a", "b"]}


def test_a_short_run_needs_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "ASKS_KAFKA", False)
    with pytest.raises(AssertionError, match="run `make answers`"):
        kafka_answers("missing", never)


def test_a_long_run_fails_where_kafka_answers_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask_kafka(monkeypatch, record=True)
    kafka_answers("name", lambda: ["same", "before"])
    ask_kafka(monkeypatch, record=False)
    assert kafka_answers("name", lambda: ["same", "before"]) == ["same", "before"]
    with pytest.raises(pytest.fail.Exception, match='-"before"\n\\+"now"'):
        kafka_answers("name", lambda: ["same", "now"])


def test_a_long_run_asks_also_what_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, answers: Path
) -> None:
    ask_kafka(monkeypatch, record=False)
    assert kafka_answers("more", lambda: {"a": 1}) == {"a": 1}
    assert list(answers.iterdir()) == []
