"""The names of all topics in order, so that no request for a page of them sorts thousands.

The order by a number, such as the size, is used for ORDER_KEPT_MS: several clients may watch it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.topics import Topic, TopicEvent, Topics
from odradek.coordinator.runtime.steps import in_order
from odradek.storage.topic_names import INTERNAL_TOPICS

PART = 500  # names that are looked through between two steps
ORDER_KEPT_MS = 1000


class SortedTopics:
    """The names. Changes are noted when they happen, and made when a client asks.

    A topic that is created and deleted before a client asks leaves no note.
    """

    def __init__(self, topics: Topics) -> None:
        self._names = sorted(topics)
        self._created: set[str] = set()  # not in `_names` yet
        self._deleted: set[str] = set()  # still in `_names`
        # By what the topics are ordered: when that was, and the names, the smallest number first.
        self._orders: dict[str, tuple[int, list[str]]] = {}
        topics.on_change.append(self._note)

    def _note(self, topic: Topic, event: TopicEvent) -> None:
        if event is TopicEvent.CREATED:
            _move(topic.name, self._deleted, self._created)
        elif event is TopicEvent.DELETED:
            _move(topic.name, self._created, self._deleted)

    def matching(self, slices: Slices, search: str, *, internal: bool) -> list[str]:
        """The names that contain `search`, in any case of letters, in order.

        Without Kafka's own topics unless `internal`. The client may not be allowed to see them.
        """
        self._make_changes(slices)
        names = self._names.copy()  # it may change between two steps
        lowered = search.lower()
        hidden = frozenset[str]() if internal else INTERNAL_TOPICS
        found: list[str] = []
        for start in range(0, len(names), PART):
            slices.step()
            part = names[start : start + PART]
            if lowered:
                found += [name for name in part if lowered in name.lower() and name not in hidden]
            else:
                found += [name for name in part if name not in hidden]
        return found

    def ordered(
        self, slices: Slices, by: str, measure: Callable[[str], int], timer_ms: int
    ) -> list[str]:
        """All names in the order of a number, the smallest first. `timer_ms`: the time now."""
        self._make_changes(slices)
        ordered_ms, order = self._orders.get(by, (0, None))
        if order is None or timer_ms - ordered_ms >= ORDER_KEPT_MS:
            names, orders = self._names.copy(), self._orders
            measured = [(measure(name), name) for name in slices.of(names)]
            order = [name for _, name in in_order(measured, slices.step)]
            # If a topic was created or deleted meanwhile, `_orders` is another dict by now, and
            # this one is dropped.
            orders[by] = timer_ms, order
        return order

    def _make_changes(self, slices: Slices) -> None:
        while self._created or self._deleted:
            self._orders = {}
            if self._created:
                insort(self._names, self._created.pop())
            else:
                del self._names[bisect_left(self._names, self._deleted.pop())]
            slices.step()


def _move(name: str, source: set[str], target: set[str]) -> None:
    """Take back the note in `source`, or make one in `target`."""
    if name in source:
        source.remove(name)
    else:
        target.add(name)
