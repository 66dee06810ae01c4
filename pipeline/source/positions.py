"""Where to begin and end, as the options say, before the offsets of the log are known.

Everywhere(EARLIEST)             startingOffsets=earliest
ByOffset({orders-0: 23})         startingOffsets={"orders":{"0":23}}; -2 is EARLIEST, -1 is LATEST
AtTime(1700000000000)            startingTimestamp=1700000000000
ByTime({orders-0: 17…})          startingOffsetsByTimestamp={"orders":{"0":17…}}
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from odradek.pipeline.option_values import OptionError
from odradek.storage.topic_partition import TopicPartition

EARLIEST = -2
LATEST = -1

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """EARLIEST or LATEST, in all partitions."""

    offset: int


@dataclass(frozen=True, slots=True)
class ByOffset:
    """For each partition an offset, EARLIEST or LATEST."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record of each partition that is not older."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ByTime:
    """The same, with a time for each partition."""

    timestamps_ms: Offsets


Position = Everywhere | ByOffset | AtTime | ByTime


def parse_assigned(name: str, text: str) -> frozenset[TopicPartition]:
    """Parse `{"orders":[0,1]}`. Raises OptionError."""
    topics = _object(name, text, '{"topicA":[0,1],"topicB":[0,1]}')
    found: set[TopicPartition] = set()
    for topic, partitions in topics.items():
        if not isinstance(partitions, list) or not all(map(_is_index, partitions)):
            raise OptionError(f"{name}: {topic} needs a list of partitions, not {partitions!r}")
        found |= {TopicPartition(topic, partition) for partition in partitions}
    return frozenset(found)


def parse_offsets(name: str, text: str) -> dict[TopicPartition, int]:
    """Parse `{"orders":{"0":23,"1":-1}}`: offsets or timestamps. Raises OptionError."""
    topics = _object(name, text, '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}')
    found: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise OptionError(f"{name}: {topic} needs an object of partitions, not {partitions!r}")
        for partition, number in partitions.items():
            if not partition.isdecimal() or not _is_integer(number):
                raise OptionError(f"{name}: {topic} has invalid {partition!r}: {number!r}")
            found[TopicPartition(topic, int(partition))] = number
    return found


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Return their names, for a message."""
    return ", ".join(map(str, sorted(partitions))) or "none"


def _object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise OptionError(f"{name}: expected e.g. {example}, got {text}")
    return parsed


def _is_integer(number: object) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool)


def _is_index(number: object) -> bool:
    return _is_integer(number) and number >= 0
