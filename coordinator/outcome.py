"""What a state machine decides: the records to write, and the reply to give once they are written.

A state machine never changes journaled state while it answers. It returns an Outcome; the journal
appends the records and hands each to `replay`, the only method that assigns (journal.py). Records
are typed: what `replay` sees in life is what it sees after a restart, equal and of the same class.
They are structs, for each request of a group makes several: a NamedTuple takes three times as long.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message

R_co = TypeVar("R_co", covariant=True)


class JournalRecord(Struct, frozen=True, gc=False):
    """One record of an internal log, as messages.

    `value_version` is the version in which the value is written: the decision's choice, as in
    Kafka's ApiMessageAndVersion. `key` is None in `__cluster_metadata`; `value` is None for a
    tombstone (then the version is of no account), and for a record whose value we do not read:
    then `unread` is the stored value, to be carried along.
    """

    value: Message | None
    value_version: int = 0
    key: Message | None = None
    unread: bytes | None = None


class ReplayContext(Struct, frozen=True, gc=False):
    """Where a record lies in its log, and on whose behalf it was written."""

    offset: int
    timestamp_ms: int
    producer_id: int = -1
    producer_epoch: int = -1


class TransactionEnd(NamedTuple):
    """A marker: a producer's transaction is committed, or aborted."""

    producer_id: int
    committed: bool


class StateMachine(Protocol):
    """What a journal keeps: state that is the sum of the records of one log."""

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        """Apply one record. No refusals here: what is in the log has happened.

        One of a transaction comes when it is met, under its producer's id; whether it counts, the
        end of the transaction says.
        """

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the marker that ends a producer's transaction in this log."""


class Outcome(Struct, Generic[R_co], frozen=True, kw_only=True):
    """A decision: `records` to append in this order, `reply` for whoever asked.

    `then` is called when the records are replayed, `otherwise` with the error when they could not
    be written. They change soft state and answer those who wait, and raise nothing.

    Atomic records share one batch, so after a crash all of them are there or none. A clean-up
    that may be repeated (expired offsets) says `atomic=False` and may then be of any length.
    Kafka: CoordinatorResult, ControllerResult.
    """

    reply: R_co
    records: tuple[JournalRecord, ...] = ()
    then: tuple[Callable[[], None], ...] = ()
    otherwise: Callable[[ErrorCode], None] | None = None
    atomic: bool = True
