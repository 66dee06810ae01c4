"""The partitions that a request or a record names, by topic or by subtopology."""

from collections.abc import Iterable
from itertools import chain
from typing import TypeVar

from odradek.coordinator.runtime.steps import FEW, Step, no_step, stepping

K = TypeVar("K")


def partition_sets(
    named: Iterable[tuple[K, list[int]]], step: Step = no_step
) -> dict[K, frozenset[int]]:
    """Return the partitions of each topic or subtopology. It may be named more than once."""
    found: dict[K, list[list[int]]] = {}
    for key, partitions in named:
        found.setdefault(key, []).append(partitions)
    return {key: _set_of(lists, step) for key, lists in stepping(iter(found.items()), step)}


def _set_of(lists: list[list[int]], step: Step) -> frozenset[int]:
    if len(lists) == 1 and len(lists[0]) <= FEW:
        return frozenset(lists[0])
    return frozenset(stepping(chain.from_iterable(lists), step))
