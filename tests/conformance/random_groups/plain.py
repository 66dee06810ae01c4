"""Answers and records without what may differ between two brokers.

As transcript.py has it, and moreover: ids that the broker gave out go by the order in which it did;
ids of topics by the topics' names; lists have no order (Kafka gives most in the order of its hash
tables); times and throttling are left out; hashes of topics are named in the order in which they
turn up, for topic ids go into them.
"""

import re
from typing import Any

import msgspec

from odradek.protocol.records.consumer_protocol import ConsumerProtocolAssignment, decode_versioned
from odradek.protocol.schema import DecodeError
from tests.conformance.random_groups.participants import Participants
from tests.conformance.transcript import FREE_TEXT, WORDS

GIVEN_ID = re.compile(r"(.+)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
DRAWN_ID = re.compile(r"[\w-]{22}")
LEFT_OUT = frozenset(
    {
        "configs",  # of a topic: of no interest here
        "throttle_time_ms",
        "commit_timestamp",
        "current_state_timestamp",
        "assignment_timestamp",
        "timestamp",
        "version",  # of the metadata, in a resolved expression
    }
)
ASSIGNMENTS = frozenset({"assignment", "member_assignment"})


class Plain:
    """Makes answers of one broker comparable."""

    def __init__(self, participants: Participants) -> None:
        self._cast = participants
        self._given: dict[str, str] = {}
        self._hashes: dict[int, str] = {}

    def of(self, value: Any, name: str = "") -> Any:
        """The value of a field of that name."""
        if isinstance(value, msgspec.Struct):
            return {
                one: self.of(getattr(value, one), one)
                for one in value.__struct_fields__
                if one not in LEFT_OUT
            }
        if isinstance(value, list | tuple):
            return sorted((self.of(one, name) for one in value), key=repr)
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, bytes | memoryview):
            return self._bytes(bytes(value), name)
        if name == "metadata_hash" and value:
            return self._hashes.setdefault(value, f"hash {len(self._hashes) + 1}")
        return value

    def _text(self, value: str, name: str) -> str:
        if name in FREE_TEXT:
            return WORDS if value else ""
        if not value:
            return value
        for group, given in self._cast.given_ids.items():
            if value in given:
                return f"{group}'s #{given.index(value) + 1}"
        # One that nobody has heard of, for its answer came too late.
        found = GIVEN_ID.fullmatch(value) or (name == "member_id" and DRAWN_ID.fullmatch(value))
        if not found:
            return value.replace(self._cast.tag, "TAG")
        whose = f"{found[1]}'s" if found.re is GIVEN_ID else "somebody's"
        count = sum(one.startswith(whose) for one in self._given.values())
        return self._given.setdefault(value, f"{whose} #{count + 1}")

    def _bytes(self, value: bytes, name: str) -> Any:
        if name == "topic_id":
            return self._cast.topic_name(value)
        if name in ASSIGNMENTS:
            try:
                return self.of(decode_versioned(ConsumerProtocolAssignment, value))
            except DecodeError:
                pass
        return value
