"""What the server-side assignors take: a thousand members, from nothing and with one more."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from odradek.coordinator.assignors import ASSIGNORS
from tests.support.assigned_groups import Topics, group, small_id

MEMBERS = 1000


def assigning(scratch: Path, share: int) -> dict[str, float]:
    """Milliseconds for one topic of 1,000 and of 10,000 partitions, and for 100 topics of ten.

    `other_topics`: each member leaves out one topic of the hundred, so uniform has to search.
    """
    ids = [f"member-{number:04d}" for number in range(MEMBERS)]
    hundred = [small_id(number) for number in range(2, 102)]
    everything = dict.fromkeys(ids, frozenset(hundred))
    cases = {
        "1000": (Topics({small_id(2): 1000}), dict.fromkeys(ids, frozenset({small_id(2)}))),
        "10000": (Topics({small_id(2): 10_000}), dict.fromkeys(ids, frozenset({small_id(2)}))),
        "hundred_topics": (Topics(dict.fromkeys(hundred, 10)), everything),
        "other_topics": (
            Topics(dict.fromkeys(hundred, 10)),
            {each: everything[each] - {hundred[n % 100]} for n, each in enumerate(ids)},
        ),
    }
    figures = {}
    for name, assignor in ASSIGNORS.items():
        for case, (topics, subscriptions) in cases.items():
            spec = group(subscriptions)
            old = assignor.assign(spec, topics)
            more = group({**subscriptions, "a-new-one": subscriptions[ids[0]]}, old)
            figures[f"{name}_{case}_ms"] = _milliseconds(partial(assignor.assign, spec, topics))
            figures[f"{name}_{case}_more_ms"] = _milliseconds(
                partial(assignor.assign, more, topics)
            )
    return figures


def _milliseconds(work: Callable[[], object]) -> float:
    """What one call takes, by the best of three."""
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best * 1e3


WORKLOADS: dict[str, Callable[[Path, int], dict[str, float]]] = {"assigning": assigning}
