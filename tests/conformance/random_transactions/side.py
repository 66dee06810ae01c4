"""One broker's part of a conversation with producers."""

from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsResponse
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.conformance.random_groups.side import Side
from tests.conformance.random_transactions.admin_steps import DescribeTransactions, Ends
from tests.conformance.random_transactions.participants import TransactionParticipants
from tests.conformance.random_transactions.plain import TransactionPlain
from tests.conformance.random_transactions.producer_steps import SHORT_MS

OPEN, ENDING = "Ongoing", "Prepare"


class TransactionSide(Side):
    """Speaks for everybody in the conversation."""

    participants: TransactionParticipants

    def __post_init__(self) -> None:
        self.plain = TransactionPlain(self.participants, self.port)

    def unsettled(self) -> set[str]:
        """The transactional ids whose transaction is about to be completed or aborted."""
        ids = tuple(
            name.removeprefix(f"{self.participants.tag}-")
            for name in self.participants.transactional_ids()
        )
        if not ids:
            return set()
        answer = self._ask(*DescribeTransactions(ids=ids).request(self.participants))
        return {
            each.transactional_id
            for each in answer.transaction_states
            if each.transaction_state.startswith(ENDING)
            or (each.transaction_state == OPEN and each.transaction_timeout_ms <= SHORT_MS)
        }

    def serves_topics(self) -> bool:
        """Whether the topics that there are have leaders."""
        names = [self.participants.full(name) for name in self.participants.topic_ids]
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        metadata: MetadataResponse = self._ask(request, 12)
        places = [
            ((topic.name or "").removeprefix(f"{self.participants.tag}-"), each.partition_index)
            for topic in metadata.topics
            for each in topic.partitions
        ]
        if not places:
            return True
        answer: ListOffsetsResponse = self._ask(
            *Ends(places=tuple(places)).request(self.participants)
        )
        return all(
            each.error_code == ErrorCode.NONE
            for topic in answer.topics
            for each in topic.partitions
        )

    def _own_part(self, answer: Any) -> Any:
        listed = getattr(answer, "transaction_states", ())
        if listed and not hasattr(listed[0], "error_code"):
            listed[:] = [
                each
                for each in listed
                if each.transactional_id.startswith(f"{self.participants.tag}-")
            ]
        return super()._own_part(answer)
