"""The protocols that a JoinGroup offers, and the election of one that all members support.

A protocol is a name (of an assignor on the client) with metadata (for consumers, the subscription).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from odradek.coordinator.java.java_hash import hash_map_order

# Names and metadata, in the member's order of preference.
Protocols = tuple[tuple[str, bytes], ...]


def names_of(protocols: Protocols) -> tuple[str, ...]:
    """Return each protocol name once, in order of preference."""
    return tuple(dict(protocols))


def metadata_of(protocols: Protocols, protocol_name: str | None) -> bytes:
    """Return the metadata of the first entry of this name. Raises ValueError if there is none."""
    for name, data in protocols:
        if name == protocol_name:
            return data
    raise ValueError(f"there is no protocol {protocol_name!r}")


def elect_protocol(preferences: Iterable[Sequence[str]]) -> str:
    """Return the protocol with the most votes; a member votes for its first one that all support.

    Ties are broken by the iteration order of Java's HashMap, so that Kafka elects the same one.
    """
    # Most members of a large group have the same preferences: count each list once.
    voters_of = Counter(map(tuple, preferences))
    common = set.intersection(*map(set, voters_of))
    votes: Counter[str] = Counter()
    for names, voters in voters_of.items():
        votes[next(name for name in names if name in common)] += voters
    return max(hash_map_order(votes), key=votes.__getitem__)
