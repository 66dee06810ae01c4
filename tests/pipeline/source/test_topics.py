"""Which partitions are selected."""

from odradek.pipeline.source.topics import matching, subscribed
from tests.pipeline.source.origins import tp

THERE = [tp("a.b-1"), tp("a.b-0"), tp("axb-0"), tp("__consumer_offsets-0"), tp("größe-0")]


def test_a_name_is_no_pattern() -> None:
    assert subscribed("a.b").choose(THERE) == [tp("a.b-0"), tp("a.b-1")]


def test_a_pattern_means_the_whole_name() -> None:
    assert matching("a.b").choose(THERE) == [tp("a.b-0"), tp("a.b-1"), tp("axb-0")]
    assert matching("a").choose(THERE) == []
    assert matching("gr.*").choose(THERE) == [tp("größe-0")]


def test_no_pattern_means_internal_topics_but_their_names_do() -> None:
    assert tp("__consumer_offsets-0") not in matching(".*").choose(THERE)
    assert subscribed("__consumer_offsets").choose(THERE) == [tp("__consumer_offsets-0")]


def test_a_pattern_misses_nothing() -> None:
    assert matching("none").missing(THERE) == []
    assert subscribed("none,a.b").missing(THERE) == ["none"]
