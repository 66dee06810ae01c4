"""Errors of single partitions in the answers about marks, without a broker."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from odradek.pipeline.sink import marks
from odradek.pipeline.sink.marks import Mark, MarkGroup
from odradek.pipeline.sink.rows import WriteError

MARK = Mark("orders", 0, 7, "")


class Answers:
    """A consumer whose calls get these errors of a partition, one after the other."""

    def __init__(self, *errors: int | None) -> None:
        self.errors = list(errors)

    def __call__(self, _settings: Any) -> "Answers":
        return self

    def _answer(self, *_: Any, **__: Any) -> list[SimpleNamespace]:
        code = self.errors.pop(0)
        error = None if code is None else KafkaError(code)
        return [SimpleNamespace(**MARK._asdict(), error=error)]

    commit = committed = _answer

    def close(self) -> None:
        pass


def test_a_read_without_patience_is_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(*[KafkaError.COORDINATOR_LOAD_IN_PROGRESS] * 2)
    monkeypatch.setattr(marks, "Consumer", answers)
    with MarkGroup({}, "group") as group, pytest.raises(WriteError, match="LOAD_IN_PROGRESS"):
        group.read([], within_s=0)
    assert len(answers.errors) == 1


@pytest.mark.parametrize("ask", [lambda group: group.commit([MARK]), lambda group: group.read([])])
def test_an_error_of_one_partition_is_tried_again_or_raised(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[MarkGroup], object]
) -> None:
    monkeypatch.setattr(marks, "_RETRY_EVERY_S", 0)
    answers = Answers(
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS, None, KafkaError.OFFSET_METADATA_TOO_LARGE
    )
    monkeypatch.setattr(marks, "Consumer", answers)
    with MarkGroup({}, "group") as group:
        ask(group)
        assert len(answers.errors) == 1
        with pytest.raises(WriteError, match="group group: orders: OFFSET_METADATA_TOO_LARGE"):
            ask(group)
