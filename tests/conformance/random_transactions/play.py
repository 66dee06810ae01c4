"""Whole conversations of producers, in three acts: the brokers are killed, and later restarted.

Conversations that are drawn share the restarts. Immediately before a restart a transaction may end,
and nobody waits for its markers.
"""

import itertools
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.conformance.conversation import Conversation, patiently
from tests.conformance.random_groups.play import (
    ComparedBrokers,
    Played,
    drawn,
    start_anew,
    wait_for_groups,
)
from tests.conformance.random_groups.steps import Restart, Step
from tests.conformance.random_transactions.admin_steps import TRANSACTION_KEYS
from tests.conformance.random_transactions.chooser import Chooser
from tests.conformance.random_transactions.duet import TransactionDuet
from tests.conformance.random_transactions.logs import Ends, Logs
from tests.conformance.random_transactions.participants import TransactionParticipants
from tests.conformance.random_transactions.producer_steps import End
from tests.conformance.random_transactions.side import TransactionSide
from tests.support.broker_process import BrokerProcess

RESTARTS = (Restart(kills=True), Restart())


class ComparedTransactions(ComparedBrokers):
    """Where conversations take place: the reference, and the broker that is held to it."""

    def __init__(self, kafka: BrokerProcess, ours: BrokerProcess) -> None:
        """Both are ready."""
        super().__init__(kafka, ours)
        self._transaction_logs = Logs(kafka.data), Logs(ours.data)
        # By tag: where the logs ended when the conversation began.
        self._transactions_since: dict[str, tuple[Ends, ...]] = {}

    def play_at_random(self, seeds: Sequence[int]) -> list[Played]:
        """Conversations at random, one for each seed."""
        talks = [(self._begin(Chooser(random)), random) for random in map(Random, seeds)]
        for played, random in talks:
            self._act(played, itertools.chain(played.chooser.first(), drawn(played, random)))
        for restart in RESTARTS:
            open_talks = [(played, random) for played, random in talks if not played.is_over]
            for played, _ in open_talks:
                last_words = played.chooser.last_words(played.duet.participants)  # type: ignore[attr-defined] # the chooser of this package
                self._act(played, last_words, compares=False)
            self._restart(restart)
            for played, random in open_talks:
                if not played.is_over:
                    self._act(played, self._resumed(played, random, restart))
        return [played for played, _ in talks]

    def _begin(self, chooser: Chooser) -> Played:
        tag = next(self._tags)
        kafka, ours = (
            TransactionSide(
                broker.port,
                TransactionParticipants(tag, chooser.groups, chooser.seats, chooser.producers),
            )
            for broker in self.brokers
        )
        since = self._logs[0].end(), self._logs[1].end()
        played = Played(chooser, TransactionDuet(kafka, ours), since)
        self._transactions_since[tag] = tuple(log.ends() for log in self._transaction_logs)
        return played

    def _restart(self, step: Restart) -> None:
        start_anew(self.brokers, step)
        for broker in self.brokers:
            wait_for_transactions(broker)

    def _resume(self, played: Played) -> None:
        assert isinstance(played.duet, TransactionDuet)
        played.duet.excuses.restarted()
        played.duet.wait_until_served()
        if any(isinstance(last, End) and not last.waits for last in played.steps[-2:-1]):
            played.duet.excuses.excuse_markers(*self._left_in_logs(played))

    def _resumed(self, played: Played, random: Random, restart: Restart) -> Iterator[Step]:
        played.steps.append(restart)
        self._resume(played)
        yield from drawn(played, random)

    def _left_in_logs(self, played: Played) -> tuple[dict[str, Any], dict[str, Any]]:
        found = super()._left_in_logs(played)
        since = self._transactions_since[played.duet.participants.tag]
        for log, start, side, of_groups in zip(
            self._transaction_logs, since, played.duet.sides, found, strict=True
        ):
            of_groups |= log.left(start, side.participants, side.plain)
        return found


def wait_for_transactions(broker: BrokerProcess) -> None:
    """Until it is ready, and its groups and transactions are loaded."""
    wait_for_groups(broker)
    talk = Conversation(broker.port, {})
    talk.new_producer_id()
    patiently(lambda: _is_loaded(talk) or None)
    talk.close()


def _is_loaded(talk: Conversation) -> bool:
    find = FindCoordinatorRequest(key_type=TRANSACTION_KEYS, coordinator_keys=["anybody"])
    if talk.silently(find, 4).coordinators[0].error_code:
        return False
    describe = DescribeTransactionsRequest(transactional_ids=["anybody"])
    (state,) = talk.silently(describe, 0).transaction_states
    return bool(state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


__all__ = ["ComparedTransactions", "wait_for_transactions"]
