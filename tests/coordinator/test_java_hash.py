"""Java's hash of a string, and the order of its hash tables: as a Java program printed them."""

import pytest

from odradek.coordinator.java.java_hash import hash_map_order, java_hash

PROTOCOLS = "range sticky roundrobin cooperative-sticky"
# More than three quarters of sixteen: the table has grown.
NUMBERS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"


@pytest.mark.parametrize(
    ("put", "listed"),
    [
        (PROTOCOLS, "sticky range roundrobin cooperative-sticky"),
        (
            NUMBERS,
            "nine six one seven two three thirteen eight fourteen four twelve eleven ten five",
        ),
    ],
)
def test_keys_are_listed_as_a_hash_map_lists_them(put: str, listed: str) -> None:
    assert hash_map_order(put.split()) == listed.split()


def test_keys_of_the_same_hash_are_listed_as_they_came() -> None:
    assert java_hash("Aa") == java_hash("BB")
    assert hash_map_order(["gr\u00fcppe", "Aa", "BB", "C#", "Bb"]) == [
        "Aa",
        "BB",
        "C#",
        "Bb",
        "gr\u00fcppe",
    ]
    assert hash_map_order(["BB", "Aa"]) == ["BB", "Aa"]


def test_a_map_whose_entries_are_computed_grows_later_and_lists_the_newest_of_a_bucket_first() -> (
    None
):
    assert hash_map_order(["Aa", "BB"]) == ["Aa", "BB"]  # equal hash codes
    assert hash_map_order(["Aa", "BB"], computed=True) == ["BB", "Aa"]
    assert hash_map_order(["a", "b", "c", "e"], 4) == ["a", "b", "c", "e"]
    assert hash_map_order(["a", "b", "c", "d"], 4, computed=True) == ["d", "a", "b", "c"]
