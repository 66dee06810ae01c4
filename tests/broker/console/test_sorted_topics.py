"""The names of topics in order, while topics come and go."""

from typing import Any, cast

from odradek.broker.console.sorted_topics import SortedTopics
from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.topics import Topic, TopicEvent, Topics


class CountedSlices:
    """Counts the steps of the work. `on_step` is called in each."""

    def __init__(self) -> None:
        self.steps = 0
        self.on_step: Any = lambda: None

    def step(self) -> None:
        self.steps += 1
        self.on_step()


class NotedTopics:
    """Topics, and those who hear of their changes."""

    def __init__(self, *names: str) -> None:
        self.topics = Topics()
        self.slices = CountedSlices()
        self.sorted = SortedTopics(self.topics)
        for name in names:
            self.note(name, TopicEvent.CREATED)

    def note(self, name: str, event: TopicEvent) -> None:
        topic = cast(Topic, _Named(name))
        for callback in self.topics.on_change:
            callback(topic, event)

    def names(self) -> list[str]:
        slices = cast(Slices, self.slices)
        return self.sorted.matching(slices, "", internal=True)


class _Named:
    def __init__(self, name: str) -> None:
        self.name = name


def test_topics_that_have_come_and_gone_while_nobody_looked_leave_nothing() -> None:
    topics = NotedTopics("a", "c")
    assert topics.names() == ["a", "c"]
    for number in range(1000):
        for event in (TopicEvent.CREATED, TopicEvent.DELETED):
            topics.note(f"b-{number}", event)
    for event in (TopicEvent.DELETED, TopicEvent.CREATED) * 10:
        topics.note("a", event)
    topics.slices.steps = 0
    assert topics.names() == ["a", "c"]
    assert topics.slices.steps <= 1


def test_what_comes_and_goes_while_changes_are_made_counts() -> None:
    topics = NotedTopics("a", "b", "c")

    def change() -> None:
        topics.slices.on_step = lambda: None
        for name in "abc":
            topics.note(name, TopicEvent.DELETED)
        topics.note("d", TopicEvent.CREATED)

    topics.slices.on_step = change
    assert topics.names() == ["d"]
    assert topics.names() == ["d"]
