"""Strongly connected components of a directed graph, after Tarjan (1972), without recursion."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

NONE = -1  # no node


def components(edges: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Each node with those that it reaches and that reach it; nodes are numbers from 0 on."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    for one, other in edges:
        after[one].append(other)
        after[other] += ()
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []  # of nodes whose component is not complete
    on_path: set[int] = set()
    for root in after:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        calls = [(root, iter(after[root]))]
        while calls:
            node, others = calls[-1]
            other = next(others, NONE)
            if other == NONE:
                calls.pop()
                if calls:
                    caller = calls[-1][0]
                    low[caller] = min(low[caller], low[node])
                if low[node] == index[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    on_path.difference_update(component)
                    yield component
            elif other not in index:
                index[other] = low[other] = len(index)
                path.append(other)
                on_path.add(other)
                calls.append((other, iter(after[other])))
            elif other in on_path:
                low[node] = min(low[node], index[other])
