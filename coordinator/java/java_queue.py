"""A priority queue that returns equal elements in the order in which Java's PriorityQueue does.

Kafka's assignors take members from such a queue, and odradek assigns the same tasks to the same
members. heapq moves elements in another way, and would return another one of several equal ones.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class JavaQueue(Generic[Item]):
    """A binary heap with the smallest element first.

    `key` returns what elements are compared by. An element's key must not change while it is in the
    queue.

    Java: PriorityQueue.add, poll.
    """

    def __init__(self, items: Iterable[Item], key: Callable[[Item], float]) -> None:
        self._key = key
        self._heap: list[Item] = []
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, item: Item) -> None:
        """Add an element: it rises above larger ones."""
        heap, key = self._heap, self._key(item)
        heap.append(item)
        place = len(heap) - 1
        while place:
            parent = (place - 1) // 2
            if key >= self._key(heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = item

    def poll(self) -> Item:
        """Remove the smallest element: the last one takes its place and sinks below smaller ones.

        Raises IndexError if the queue is empty.
        """
        heap = self._heap
        item = heap.pop()
        if not heap:
            return item
        smallest, key = heap[0], self._key(item)
        place = 0
        while (child := 2 * place + 1) < len(heap):
            right = child + 1
            if right < len(heap) and self._key(heap[child]) > self._key(heap[right]):
                child = right
            if key <= self._key(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = item
        return smallest
