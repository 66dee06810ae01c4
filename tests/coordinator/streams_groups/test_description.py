"""A streams group is described in steps."""

from functools import partial
from itertools import count

import pytest

from odradek.coordinator.streams_groups.description import described
from tests.support.streams_members import StreamsMembers, internal, subtopology, topology

SUBTOPOLOGIES = 10
CHANGELOGS = 40


@pytest.mark.parametrize("is_ready", [False, True])
def test_each_topic_of_a_topology_is_described_in_a_step(is_ready: bool) -> None:
    changelogs = [internal(f"log-{number}") for number in range(CHANGELOGS)]
    members = StreamsMembers()
    members.join(
        "a",
        topology(
            subtopology("large", "lines", changelogs=changelogs),
            *(subtopology(f"{number}", "lines") for number in range(SUBTOPOLOGIES)),
        ),
    )
    if is_ready:
        for name in ("lines", *(changelog.name for changelog in changelogs)):
            members.topic(name, 1)
        members.beat("a", members.group.member("a").member_epoch)
    configured = members.group.configured
    assert (configured is not None and configured.is_ready) == is_ready
    steps = count()
    found = described(members.group, 0, partial(next, steps), wants_readable_topology=False)
    assert next(steps) > SUBTOPOLOGIES + CHANGELOGS
    assert found.topology is not None
    assert found.topology.subtopologies is not None
    described_ids = [one.subtopology_id for one in found.topology.subtopologies]
    assert described_ids == [*map(str, range(SUBTOPOLOGIES)), "large"]
    names = [topic.name for topic in found.topology.subtopologies[-1].state_changelog_topics]
    assert names == sorted(changelog.name for changelog in changelogs)
