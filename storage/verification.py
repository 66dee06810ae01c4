"""Transactional writes that wait for an answer of the transaction coordinator.

A batch may begin a transaction in a log only if the coordinator knows that the transaction has this
partition: otherwise no marker would ever end it there, and read_committed consumers would wait for
ever. So the broker asks the coordinator before the first batch.

While the answer is not a yes, the producer's later batches may already be here. They must not be
appended before the one that was refused, because the log accepts any sequence number from a
producer that it does not know. The lowest sequence number that asked is therefore kept, and later
ones are refused until it has been appended.

Kafka: VerificationStateEntry.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Verification:
    """One producer's wait, since `since_ms` of a clock that never jumps.

    `is_v2`: the producer uses transactions of version 2, with an epoch for each transaction.
    """

    epoch: int
    lowest_sequence: int
    since_ms: int
    is_v2: bool

    def note(self, epoch: int, sequence: int) -> None:
        """Take account of another batch that asks."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
