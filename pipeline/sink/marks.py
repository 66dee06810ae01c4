"""Marks say how far a writer has come. They are offsets of a consumer group, one per partition.

A mark is committed in the transaction that holds the rows, so either both exist or neither. It is
committed for a partition of a topic that the rows are written to, because managed clusters give
no rights to internal topics. Kafka requires READ on that topic, and READ on the group.

A mark is exact once the transactional id that it is committed with has been taken over: then all
earlier transactions of the id are complete, and no other can begin.

AdminClient.list_consumer_group_offsets could read all marks of a group. But in confluent-kafka 2.16
it ends the process (SIGSEGV) if the answer is COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR, as it
is where Kafka has no __consumer_offsets yet. So a consumer reads them, and GroupReader only where
marks exist.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from .client_errors import FIRST_ANSWER_S, ConnectionErrors, is_refusal, reason_of
from .rows import WriteError

_logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Place = tuple[str, int]  # topic and partition

# Longer than the transaction of a replay that was killed is open: its marks are not stable before.
_TIMEOUT_S = 150.0
_ATTEMPT_S = 5.0
_RETRY_EVERY_S = 0.1
_LOG_ERRORS = 3  # librdkafka logs errors and what is worse
# The first group of a broker waits until __consumer_offsets has been created.
_TRANSIENT = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._TIMED_OUT,
    }
)


class UnsettledError(WriteError):
    """The marks cannot be read yet.

    One may be in a transaction that has not ended, or the coordinator does not answer. librdkafka
    tries again in both cases, and its error is the same (_TIMED_OUT).
    """


class Mark(NamedTuple):
    """A committed offset, and what was written beside it."""

    topic: str
    partition: int
    offset: int
    metadata: str

    def as_offset(self) -> TopicPartition:
        """Return it as the client takes it."""
        return TopicPartition(self.topic, self.partition, self.offset, self.metadata)


def _as_mark(committed: TopicPartition) -> Mark:
    place = committed.topic, committed.partition
    return Mark(*place, committed.offset, committed.metadata or "")


class MarkGroup:
    """A consumer group that holds marks. Methods raise WriteError.

    A mark whose transaction is being completed cannot be read until its end. With `settled=False`
    the mark before it is read.
    """

    def __init__(self, client: Mapping[str, Any], name: str, *, settled: bool = True) -> None:
        self.name = name
        self._client = client
        self._errors = ConnectionErrors()
        self._has_answered = False
        settings = {
            "group.id": name,
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if settled else "read_uncommitted",
            "log_level": _LOG_ERRORS,
            "error_cb": self._errors,
        }
        self._consumer = Consumer({**client, **settings})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self, places: Collection[Place], within_s: float = _TIMEOUT_S) -> list[Mark]:
        """Return the marks that exist. Raises UnsettledError.

        After `within_s` no further attempt is made.
        """
        asked = [TopicPartition(*place) for place in places]
        offsets = self._retry(lambda: self._consumer.committed(asked, _ATTEMPT_S), within_s)
        return [_as_mark(committed) for committed in offsets if committed.offset >= 0]

    def commit(self, marks: Iterable[Mark]) -> None:
        """Commit marks outside a transaction."""
        offsets = [mark.as_offset() for mark in marks]
        self._retry(lambda: self._consumer.commit(offsets=offsets, asynchronous=False))

    def for_producer(self) -> object:
        """Return what a producer needs in order to commit for this group."""
        return self._consumer.consumer_group_metadata()

    def _retry(
        self, ask: Callable[[], list[TopicPartition]], within_s: float = _TIMEOUT_S
    ) -> list[TopicPartition]:
        """Ask until there is an answer without errors, while they may pass. Raises WriteError."""
        began = time.monotonic()
        while True:
            try:
                answer = ask()
                for each in answer:
                    if each.error is not None:
                        raise KafkaException(each.error, f"{each.topic}: ")
            except KafkaException as error:
                reason, *topic = error.args
                if reason.code() == KafkaError._TIMED_OUT:
                    reason = self._refusal() or reason
                waited_s = time.monotonic() - began
                if not self._has_answered and waited_s >= FIRST_ANSWER_S:
                    no_answer = self._errors.no_answer(self._client, FIRST_ANSWER_S)
                    if no_answer is not None:
                        raise WriteError(no_answer) from error
                is_transient = reason.code() in _TRANSIENT
                if not is_transient or waited_s >= within_s:
                    text = "".join([f"group {self.name}: ", *topic, reason_of(reason)])
                    raise (UnsettledError if is_transient else WriteError)(text) from error
            else:
                self._has_answered = True
                return answer
            time.sleep(_RETRY_EVERY_S)

    def _refusal(self) -> KafkaError | None:
        """Return why the coordinator does not answer (no rights, for example), if that is known.

        A consumer returns that error from `poll` alone; its other methods time out.
        """
        message = self._consumer.poll(0)
        error = message.error() if message is not None else None
        return error if error is not None and is_refusal(error) else None


class GroupReader:
    """Reads the marks of many groups, when this client has committed one already.

    Its client begins with the first call. Methods raise WriteError.
    """

    def __init__(self, client: Mapping[str, Any]) -> None:
        self._client = client

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({**self._client, "log_level": _LOG_ERRORS})

    def groups(self) -> list[str]:
        """Return the names of all groups that this client may read."""

        def ask() -> tuple[list[str], list[KafkaError]]:
            answer = self._admin.list_consumer_groups(request_timeout=_ATTEMPT_S).result()
            errors = [error.args[0] for error in answer.errors]  # of single brokers
            return [group.group_id for group in answer.valid], errors

        return _retry("the groups cannot be listed", ask)

    def read(self, groups: Iterable[str], places: Collection[Place]) -> dict[str, list[Mark]]:
        """Return the marks of each group, for any topic.

        A mark at one of `places` whose transaction is being completed is awaited.
        """
        # If all offsets of a group (None) are asked for, Kafka leaves out those that are not yet
        # complete. So those of the places are awaited first, and then come twice.
        awaited = [TopicPartition(*place) for place in places]
        requests = [awaited, None] if awaited else [None]
        return {
            group: [mark for asked in requests for mark in self._marks(group, asked)]
            for group in groups
        }

    def _marks(self, group: str, partitions: list[TopicPartition] | None) -> list[Mark]:
        asked = ConsumerGroupTopicPartitions(group, partitions)

        def ask() -> tuple[list[TopicPartition], list[KafkaError]]:
            answers = self._admin.list_consumer_group_offsets(
                [asked], require_stable=True, request_timeout=_ATTEMPT_S
            )
            offsets = answers[group].result().topic_partitions
            return offsets, [item.error for item in offsets if item.error is not None]

        return [
            _as_mark(committed)
            for committed in _retry(f"group {group}", ask)
            if committed.offset >= 0
        ]


def _retry(what: str, ask: Callable[[], tuple[Answer, list[KafkaError]]]) -> Answer:
    """Ask until there are no errors, if they may pass. Raises WriteError."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            answer, errors = ask()
            if not errors:
                return answer
        except KafkaException as error:
            errors = [error.args[0]]
        if errors[0].code() not in _TRANSIENT or time.monotonic() > deadline:
            raise WriteError(f"{what}: {reason_of(errors[0])}")
        time.sleep(_RETRY_EVERY_S)


def delete_groups(client: Mapping[str, Any], groups: Collection[str]) -> None:
    """Delete groups whose marks nobody will read again. If that fails, they expire."""
    if not groups:
        return
    admin = AdminClient({"log_level": _LOG_ERRORS, **client})  # kept until the answers are read
    answers = admin.delete_consumer_groups(list(groups), request_timeout=_TIMEOUT_S)
    for group, answer in answers.items():
        error = answer.exception(_TIMEOUT_S)
        if error is not None:
            _logger.warning("could not delete group %s: %s", group, error)
