"""Partitions by topic or by subtopology, as requests and records name them and members own them."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from odradek.coordinator.runtime.steps import FEW, Step, no_step, stepping, stepping_if_many

K = TypeVar("K")


def partition_sets(
    named: Iterable[tuple[K, list[int]]], step: Step = no_step
) -> dict[K, frozenset[int]]:
    """Return the partitions of each topic or subtopology. It may be named more than once."""
    found: dict[K, list[list[int]]] = {}
    for key, partitions in named:
        found.setdefault(key, []).append(partitions)
    return {key: _set_of(lists, step) for key, lists in stepping(iter(found.items()), step)}


def each_partition(
    owned: Mapping[K, Collection[int]], step: Step = no_step
) -> Iterator[tuple[K, int]]:
    """Iterate over partitions, each with its topic or subtopology, in steps if there are many."""
    for key, partitions in stepping_if_many(owned.items(), step):
        for partition in stepping_if_many(partitions, step):
            yield key, partition


def split(
    owned: Mapping[int, int], target: Container[int], step: Step = no_step
) -> tuple[dict[int, int], dict[int, int]]:
    """Split partitions, with their epochs, into those in the target and the others."""
    kept: dict[int, int] = {}
    others: dict[int, int] = {}
    for partition, epoch in stepping_if_many(owned.items(), step):
        (kept if partition in target else others)[partition] = epoch
    return kept, others


def partition_count(owned: Mapping[Any, Collection[int]]) -> int:
    """Return the number of partitions of all topics or subtopologies."""
    return sum(map(len, owned.values()))


def _set_of(lists: list[list[int]], step: Step) -> frozenset[int]:
    if len(lists) == 1 and len(lists[0]) <= FEW:
        return frozenset(lists[0])
    return frozenset(stepping(chain.from_iterable(lists), step))
