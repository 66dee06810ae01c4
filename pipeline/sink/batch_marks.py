"""Which batch a task has written: the offset that a group of its name has committed.

partition   __consumer_offsets-0: one that is there wherever offsets can be committed, so a mark
            does not depend on which topics a batch goes to, nor vanishes with one of them
offset      the next batch to be written
metadata    {"rows": 100}, of the batch before
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .rows import WriteError

_logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_TIMEOUT_S = 60.0
_RETRY_EVERY_S = 0.1
# The first group of a broker has to wait until __consumer_offsets has been made.
_PASSING = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)


class BatchMark(NamedTuple):
    """A batch that is written, and how many rows it had (None: who wrote it did not say)."""

    batch_id: int
    rows: int | None

    def as_offset(self) -> TopicPartition:
        """What is committed for it."""
        return TopicPartition(
            CONSUMER_OFFSETS_TOPIC, 0, self.batch_id + 1, json.dumps({"rows": self.rows})
        )


class MarkedGroup:
    """The group in which a task leaves its marks. Raises WriteError."""

    def __init__(self, client: Mapping[str, Any], name: str) -> None:
        self._name = name
        settings = {
            "group.id": name,
            "enable.auto.commit": False,
            # Marks of a transaction whose end is on its way are waited for.
            "isolation.level": "read_committed",
            "log_level": 3,
        }
        self._consumer = Consumer({**client, **settings})

    def newest(self) -> BatchMark | None:
        """The last batch that was written; None if there is none."""
        (found,) = self._answer(
            lambda: self._consumer.committed(
                [TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)], _TIMEOUT_S
            )
        )
        if found.offset <= 0:
            return None
        try:
            rows = json.loads(found.metadata or "")["rows"]
        except (ValueError, KeyError, TypeError):
            rows = None
        return BatchMark(found.offset - 1, rows)

    def metadata(self) -> object:
        """What a producer needs to know in order to commit for it."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _answer(self, ask: Callable[[], Answer]) -> Answer:
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                return ask()
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() not in _PASSING or time.monotonic() > deadline:
                    raise WriteError(f"group {self._name}: {reason.str()}") from error
            time.sleep(_RETRY_EVERY_S)


def delete_marks(client: Mapping[str, Any], groups: Collection[str]) -> None:
    """Those of tasks that will not run again; where that fails, they expire like other offsets."""
    if not groups:
        return
    admin = AdminClient({"log_level": 3, **client})  # its answers go with it
    answers = admin.delete_consumer_groups(list(groups), request_timeout=_TIMEOUT_S)
    for group, answer in answers.items():
        error = answer.exception(_TIMEOUT_S)
        if error is not None:
            _logger.warning("group %s is left behind: %s", group, error)
