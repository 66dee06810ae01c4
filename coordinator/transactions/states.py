"""The states of a transaction, and which may follow which.

    Empty, CompleteCommit, CompleteAbort   no transaction; the next one may begin
    Ongoing                                partitions have been added
    PrepareCommit, PrepareAbort            it is decided; markers are being written
    Dead                                   the transactional id expires
    PrepareEpochFence                      an older producer is being fenced

The last two are never written. They are states of Kafka's own steps, which odradek takes without
one. With transactions of version 2 a producer may abort without an open transaction, because it
cannot know whether its last request reached the broker. On disk: never renumber.

Kafka: TransactionState.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class TransactionState(IntEnum):
    """The numbers are those in `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    __hash__ = int.__hash__  # Enum's is a function in Python, and each request asks for some

    @property
    def client_name(self) -> str:
        """The name that clients see, such as PrepareCommit."""
        return "".join(word.capitalize() for word in self.name.split("_"))


_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
_COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
_COMPLETE_ABORT = TransactionState.COMPLETE_ABORT

# In these states no transaction is open. A transactional id that is idle may expire.
IDLE = frozenset({_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT})
# In these states the end is decided, and not all markers are written.
PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})

# By state: those that may come before it.
PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = MappingProxyType(
    {
        _EMPTY: IDLE,
        _ONGOING: IDLE | {_ONGOING},
        TransactionState.PREPARE_COMMIT: frozenset({_ONGOING}),
        TransactionState.PREPARE_ABORT: IDLE | {_ONGOING},
        _COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
        _COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    }
)
