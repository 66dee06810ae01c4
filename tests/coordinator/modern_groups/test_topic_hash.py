"""Hashes of topics and groups equal Kafka's."""

from typing import NamedTuple

import pytest

from odradek.coordinator.modern_groups.topic_hash import NO_HASH, group_hash, topic_hash
from tests.support.java_program import java_answers


class Sample(NamedTuple):
    """A topic, and the hash that Kafka 4.3.0's own class gave for it."""

    topic_id: bytes
    name: str
    racks: list[list[str]]
    hash: int


SAMPLES = [
    Sample(bytes(16), "a", [], 7339615866558947795),
    Sample(bytes(range(16)), "orders", [[]], 5571354289513992727),
    Sample(bytes(range(240, 256)), "orders.v2", [[], [], []], -370695013411586988),
    Sample(bytes(range(15, -1, -1)), "racked", [["rack-1"], ["rack-2"], []], 9176183743956348519),
    Sample(
        b"\xff" * 16,
        "replicated",
        [["b", "a", "c"], ["a", "a"], ["Z", "a", "B"]],
        4011341071655665717,
    ),
    Sample(
        bytes(range(128, 144)),
        "strange-racks",
        [[",", ",,"], ["zürich", "\uffee", "\U0001f600"], ["r" * 300]],
        94918166025390033,
    ),
    Sample(b"k" * 16, "n" * 249, [["eu-central-1a"]] * 50, -808369274247452502),
]
GROUP_HASH = 6557529847784614795


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name[:20])
def test_a_topics_hash_is_kafkas(sample: Sample) -> None:
    assert topic_hash(sample.topic_id, sample.name, sample.racks) == sample.hash


def test_a_groups_hash_is_kafkas_whatever_the_order() -> None:
    hashes = {sample.name: sample.hash for sample in SAMPLES}
    assert group_hash(hashes) == GROUP_HASH
    assert group_hash(dict(reversed(hashes.items()))) == GROUP_HASH


def test_a_group_without_topics_has_no_hash() -> None:
    assert group_hash({}) == NO_HASH


def test_the_hash_of_a_topic_covers_all_its_fields() -> None:
    def of(
        topic_id: bytes = b"i" * 16, name: str = "t", racks: tuple[tuple[str, ...], ...] = (("a",),)
    ) -> int:
        return topic_hash(topic_id, name, racks)

    others = [
        of(topic_id=b"i" * 15 + b"j"),
        of(topic_id=b"j" + b"i" * 15),
        of(name="u"),
        of(racks=()),
        of(racks=((),)),
        of(racks=(("a",), ())),
        of(racks=(("a",), ("a",))),
        of(racks=(("b",),)),
        of(racks=(("a", "b"),)),
        of(racks=(("a,b",),)),
        of(racks=(("a", "a"),)),
    ]
    assert len({of(), *others}) == 1 + len(others)
    assert of(racks=(("b", "a"),)) == of(racks=(("a", "b"),))


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafkas_class_gives_the_samples_hashes() -> None:
    lines = [
        " ".join([sample.topic_id.hex(), sample.name, *map(_word, sample.racks)])
        for sample in SAMPLES
    ]
    expected = [*(sample.hash for sample in SAMPLES), GROUP_HASH]
    assert [int(line) for line in java_answers("TopicHash.java", lines)] == expected


def _word(racks: list[str]) -> str:
    return ",".join(rack.encode().hex() for rack in racks) or "-"
