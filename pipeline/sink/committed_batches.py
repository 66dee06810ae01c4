"""Which batch a task has written last: an offset committed by a consumer group of the task's name.

partition   __consumer_offsets-0. It exists wherever offsets can be committed, so the committed
            offset does not depend on the topics of a batch and is not deleted with one of them.
offset      the id of the next batch to write
metadata    {"rows": 100}, the number of rows in the last batch
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
# The first group of a broker waits until __consumer_offsets has been created.
_TRANSIENT = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)


class CommittedBatch(NamedTuple):
    """A batch that is written. `rows` is None if its writer did not store the number of rows."""

    batch_id: int
    rows: int | None

    def as_offset(self) -> TopicPartition:
        """Return the offset to commit for it."""
        return TopicPartition(
            CONSUMER_OFFSETS_TOPIC, 0, self.batch_id + 1, json.dumps({"rows": self.rows})
        )


class TaskConsumerGroup:
    """The consumer group to which a task commits its batches. Methods raise WriteError."""

    def __init__(self, client: Mapping[str, Any], name: str) -> None:
        self._name = name
        settings = {
            "group.id": name,
            "enable.auto.commit": False,
            # An offset in a transaction that is being completed is not visible until its end.
            "isolation.level": "read_committed",
            "log_level": 3,
        }
        self._consumer = Consumer({**client, **settings})

    def last_batch(self) -> CommittedBatch | None:
        """Return the last batch that was written, or None."""
        (committed,) = self._answer(
            lambda: self._consumer.committed(
                [TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)], _TIMEOUT_S
            )
        )
        if committed.offset <= 0:
            return None
        try:
            rows = json.loads(committed.metadata or "")["rows"]
        except (ValueError, KeyError, TypeError):
            rows = None
        return CommittedBatch(committed.offset - 1, rows)

    def metadata(self) -> object:
        """Return what a producer needs in order to commit for this group."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def _answer(self, ask: Callable[[], Answer]) -> Answer:
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                return ask()
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() not in _TRANSIENT or time.monotonic() > deadline:
                    raise WriteError(f"group {self._name}: {reason.str()}") from error
            time.sleep(_RETRY_EVERY_S)


def delete_groups(client: Mapping[str, Any], groups: Collection[str]) -> None:
    """Delete groups of tasks that will not run again. If that fails, their offsets expire."""
    if not groups:
        return
    admin = AdminClient({"log_level": 3, **client})  # kept until the answers are read
    answers = admin.delete_consumer_groups(list(groups), request_timeout=_TIMEOUT_S)
    for group, answer in answers.items():
        error = answer.exception(_TIMEOUT_S)
        if error is not None:
            _logger.warning("could not delete group %s: %s", group, error)
