"""Answers as values that both brokers can be compared by, where only authorization matters.

Beyond what tests/conformance/transcript.py takes away, lists are unordered, because Kafka answers
what is refused in the order of its hash tables, and an id is only there or not.

Messages of authorization errors must be equal where Kafka has one.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from odradek.protocol.errors import ErrorCode
from tests.conformance.authorization.exceptions import without_request

IDS = ("topic_id", "producer_id")
REFUSALS = {code for code in ErrorCode if code.name.endswith("AUTHORIZATION_FAILED")}


def unordered(value: Any) -> Any:
    """The value with sorted lists, and without the numbers of ids."""
    if isinstance(value, dict):
        return {
            name: str(field).rstrip(" 0123456789") if name in IDS else unordered(field)
            for name, field in value.items()
        }
    if isinstance(value, list):
        return sorted((unordered(one) for one in value), key=repr)
    return value


def refusals(answer: Any, codes: Collection[int] = REFUSALS) -> set[str]:
    """The authorization errors, or those with other codes, anywhere in an answer.

    Only those that have a message.
    """
    if isinstance(answer, list):
        return {text for one in answer for text in refusals(one, codes)}
    if not isinstance(answer, msgspec.Struct):
        return set()
    found = {
        text for name in answer.__struct_fields__ for text in refusals(getattr(answer, name), codes)
    }
    code, message = getattr(answer, "error_code", 0), getattr(answer, "error_message", None)
    if code in codes and message:
        found.add(f"{ErrorCode(code).name}: " + without_request(message))
    return found
