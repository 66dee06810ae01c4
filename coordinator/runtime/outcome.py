"""What a state machine decides: the records to write, and the reply to give once they are written.

A state machine never changes journaled state while it decides. It returns an Outcome; the journal
appends the records and passes each to `replay`, the only method that assigns journaled state
(journal.py). Records are typed: `replay` gets equal objects of the same classes while the broker
runs and after a restart. They are structs because each group request makes several, and a
NamedTuple takes three times as long to make.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message

R_co = TypeVar("R_co", covariant=True)


class JournalRecord(Struct, frozen=True, gc=False):
    """One record of an internal log, as messages.

    `value_version` is the version in which the value is written, chosen by the decision, as in
    Kafka's ApiMessageAndVersion. `key` is None in `__cluster_metadata`. `value` is None for a
    tombstone (its version is ignored), and for a record whose value is not decoded: then `unread`
    has the stored bytes. The codec of a log may make other values than messages: that of
    `__transaction_state` makes transactions.
    """

    value: Any
    value_version: int = 0
    key: Message | None = None
    unread: bytes | None = None


class JoinedRecord(Struct, gc=False):
    """A record as it is replayed; it may stand for several records that are stored."""

    record: JournalRecord
    count: int


class ReplayContext(Struct, frozen=True, gc=False):
    """A record's offset and timestamp, and its producer (-1: none) if it is transactional."""

    offset: int
    timestamp_ms: int
    producer_id: int = -1
    producer_epoch: int = -1


class TransactionEnd(NamedTuple):
    """A transaction marker: a producer's transaction is committed or aborted."""

    producer_id: int
    committed: bool


class StateMachine(Protocol):
    """State that is built by replaying the records of one log."""

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        """Apply one record. It cannot be refused: what is in the log has happened.

        A transactional record is replayed where it is stored, with its producer's id. It takes
        effect when `end_transaction` commits it.
        """

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the marker that ends a producer's transaction in this log."""


class Outcome(Struct, Generic[R_co], frozen=True, kw_only=True):
    """A decision: `records` to append in this order, and the `reply` to the caller.

    A decision changes nothing itself, because it may be made again, or its records may not be
    written. The functions in `then` are called after the records are written and replayed, or at
    once if there are none. `otherwise` is called with the error if they could not be written. Both
    change soft state (state that no record holds, for example deadlines) and answer parked
    requests. They do not raise.

    Atomic records share one batch, so after a crash all of them are in the log or none. A batch has
    a largest size. Records that do not need each other (the tombstones of expired offsets, changes
    of many partitions) set `atomic=False`; there may be any number of them.
    Kafka: CoordinatorResult, ControllerResult.
    """

    reply: R_co
    records: tuple[JournalRecord, ...] = ()
    then: tuple[Callable[[], None], ...] = ()
    otherwise: Callable[[ErrorCode], None] | None = None
    atomic: bool = True


NOTHING_TO_WRITE: Outcome[None] = Outcome(reply=None)
