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
