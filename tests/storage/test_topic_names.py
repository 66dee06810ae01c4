"""Which topic names Kafka allows."""

import pytest

from odradek.storage.topic_names import collision_key, is_internal, why_illegal


@pytest.mark.parametrize("topic", ["a", "A.b_c-9", "...", "__consumer_offsets", "x" * 249])
def test_legal_names(topic: str) -> None:
    assert why_illegal(topic) is None


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("a b", "characters other than ASCII alphanumerics"),
        ("a/b", "characters other than"),
        ("größe", "characters other than"),
        ("a\n", "characters other than"),
    ],
)
def test_illegal_names_and_why(topic: str, why: str) -> None:
    assert why in (why_illegal(topic) or "")


def test_names_that_differ_in_dots_and_underscores_only_collide() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a.b") != collision_key("a-b")
    assert collision_key("a-b") is None


def test_the_metadata_log_is_no_internal_topic() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert is_internal("__share_group_state")
    assert not is_internal("__cluster_metadata")
    assert not is_internal("__consumer_offsets2")
