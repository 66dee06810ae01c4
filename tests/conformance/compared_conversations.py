"""Conversations in which odradek's answers are compared with those that are kept of Apache Kafka.

What may differ between the two is written in transcript.py; here is what differs on purpose, and
each difference says why.
"""

from collections.abc import Callable
from typing import Any

import pytest

from odradek.protocol.schema import VersionRange
from tests.conformance.conversation import Conversation, Versions, advertised_versions
from tests.conformance.conversations import Talk
from tests.conformance.transcript import Transcript, differences, is_accident
from tests.support.broker_process import ApacheKafkaProcess
from tests.support.kafka_answers import Given, as_kept, kafka_answers

UNREAD = "odradek judges by the header: it has not read the records behind it"
ON_PURPOSE = {
    "a batch with a greater max timestamp": UNREAD,
    "a batch with lz4 cut": UNREAD,
    **{f"{topic}: with a record too many": UNREAD for topic in ("plain", "unpacked", "stamping")},
}
Kafka = Given[ApacheKafkaProcess]
Lines = list[tuple[str, Any]]


def compare_with_kafka(name: str, talk: Talk, kafka: Kafka, port: int, *, to_the_end: bool) -> None:
    """Hold a conversation with odradek, and fail where it answers differently.

    `to_the_end`: else a difference may change what is said after it, and only its first lines are
    compared.
    """
    versions = kafkas_versions(lambda: advertised_versions(kafka().port))
    expected = kafka_answers(name, lambda: kept_lines(transcript_of(talk, kafka().port, versions)))
    found = transcript_of(talk, port, versions).lines
    if not to_the_end:
        count = min(len(expected), len(found))
        expected, found = expected[:count], found[:count]
    lines = report(expected, found)
    if lines:
        pytest.fail("\n".join([name, *lines]), pytrace=False)


def kafkas_versions(ask: Callable[[], Versions], name: str = "versions") -> Versions:
    """The versions of each API that Kafka serves; `name` is that of its answers."""
    kept = kafka_answers(name, lambda: [(key, *each) for key, each in sorted(ask().items())])
    return {key: VersionRange(lowest, highest) for key, lowest, highest in kept}


def transcript_of(talk: Talk, port: int, versions: Versions) -> Transcript:
    conversation = Conversation(port, versions)
    try:
        talk(conversation)
    finally:
        conversation.close()
    return conversation.transcript


def kept_lines(transcript: Transcript) -> Lines:
    """Its lines; titles without the request's fields, for some name ids that brokers draw."""
    return [(title.partition("(")[0], answer) for title, answer in transcript.lines]


def report(expected: Lines, found: Lines) -> list[str]:
    """A line for each request that was answered differently, and one for each difference."""
    lines = []
    for (kept_title, answer), (title, other) in zip(expected, found, strict=True):
        assert title.startswith(kept_title), f"not {title}, {kept_title} is kept: `make answers`"
        case = title.removeprefix("what is there of ").partition(" in v")[0]
        if is_accident(answer) or case in ON_PURPOSE:
            continue
        differs = differences(answer, as_kept(other))
        if differs:
            lines += [title, *(f"    {line}" for line in differs)]
    return lines
