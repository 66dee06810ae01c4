"""What must hold of all that the members of a group ever did, whatever happened to them.

The verdict rests on one notion: a member has *settled* an offset when it read it and then, in the
same assignment, had a commit behind it accepted.

    everything is read       each offset below the partitions' ends, at least once
    nothing settles twice    what is read again must be what nobody had committed
    reading goes on          whoever gets a partition begins where a commit stands: not before the
                             last one that was accepted, not where nobody has been; it leaves no gap
    one owner                once another has got a partition, its last owner's commit is refused

Times are those of the members' own clocks, in ms: they run on one machine. Java's members, who do
nothing while they commit, say only when they were answered.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.conformance.group_member import (
    Member,
    Partition,
    Place,
    batches_of,
    commits_of,
    partitions_of,
)

FOREVER = float("inf")


def assert_sound(members: Sequence[Member], ends: Mapping[Partition, int]) -> None:
    """All that the module's head says."""
    read = sum((member.read() for member in members), Counter[Place]())
    unread = {(*at, offset) for at, end in ends.items() for offset in range(end)} - set(read)
    assert not unread, f"never read: {sorted(unread)[:10]}"
    assert all(offset < ends[topic, partition] for topic, partition, offset in read)
    settled = sum((member.settled() for member in members), Counter[Place]())
    twice = [place for place, times in settled.items() if times > 1]
    assert not twice, f"committed, and read again: {sorted(twice)[:10]}"
    assert_goes_on(members)
    assert_one_owner(members)


class Commit(NamedTuple):
    """A commit that was accepted."""

    asked_ms: float
    answered_ms: float
    at: Partition
    offset: int


def commits(member: Member) -> list[Commit]:
    """Its accepted commits."""
    return [
        Commit(event.get("asked", event["timestamp"]), event["timestamp"], at, offset)
        for event in member.heard("offsets_committed")
        if event["success"]
        for at, offset in commits_of(event).items()
    ]


def committed_in_the_end(members: Sequence[Member]) -> dict[Partition, int]:
    """The highest offset that any of them was told to be committed."""
    last: dict[Partition, int] = {}
    for member in members:
        for commit in commits(member):
            last[commit.at] = max(commit.offset, last.get(commit.at, 0))
    return last


# -- reading goes on -------------------------------------------------------------------------------


class Beginning(NamedTuple):
    """The first that a member read of a partition after it got it."""

    assigned_ms: float
    at: Partition
    offset: int


def assert_goes_on(members: Sequence[Member]) -> None:
    """Each beginning is where a commit stands: the last accepted, or one whose answer was lost."""
    accepted = defaultdict(list)
    for commit in (each for member in members for each in commits(member)):
        accepted[commit.at].append(commit)
    reached = {(at, 0) for member in members for at in _assigned(member)}
    for member in members:
        for event in member.heard("records_consumed"):
            reached |= {(at, last + 1) for at, _, last in batches_of(event)}
    for member in members:
        for begun in beginnings(member):
            before = (
                one.offset for one in accepted[begun.at] if one.answered_ms < begun.assigned_ms
            )
            due = max(before, default=0)
            assert begun.offset >= due, f"{member.name} began before {due}: {begun}"
            assert begun[1:] in reached, f"{member.name} began where nobody was: {begun}"


def beginnings(member: Member) -> Iterator[Beginning]:
    """Where it began; fails where it passes over offsets, or reads one twice, while it owns."""
    assigned: dict[Partition, float] = {}
    expected: dict[Partition, int] = {}
    for event in list(member.events):
        if event["name"] == "partitions_assigned":
            for at in partitions_of(event):
                assigned[at] = event["timestamp"]
                expected.pop(at, None)
        elif event["name"] == "records_consumed":
            for at, first, last in batches_of(event):
                if at in expected:
                    assert first == expected[at], f"{member.name}: {expected[at]} is due: {event}"
                else:
                    yield Beginning(assigned[at], at, first)
                expected[at] = last + 1


def _assigned(member: Member) -> set[Partition]:
    return {at for event in member.heard("partitions_assigned") for at in partitions_of(event)}


# -- one owner -------------------------------------------------------------------------------------


class Ownership(NamedTuple):
    """A member had a partition from one moment to another."""

    member: Member
    since_ms: float
    until_ms: float


def assert_one_owner(members: Sequence[Member]) -> None:
    """Nobody's commit is accepted while another has the partition since."""
    owners = ownerships(members)
    for member in members:
        for commit in commits(member):
            mine = [
                one.since_ms
                for one in owners[commit.at]
                if one.member is member and one.since_ms <= commit.asked_ms
            ]
            for other in owners[commit.at]:
                is_heir = other.member is not member and other.since_ms > max(mine, default=0)
                assert not (is_heir and other.since_ms < commit.asked_ms < other.until_ms), (
                    f"{member.name} could commit {commit}, of {other.member.name} "
                    f"since {other.since_ms}"
                )


def ownerships(members: Sequence[Member]) -> dict[Partition, list[Ownership]]:
    """Who had each partition, and when."""
    found: defaultdict[Partition, list[Ownership]] = defaultdict(list)
    for member in members:
        begun: dict[Partition, float] = {}
        for event in list(member.events):
            if event["name"] == "partitions_assigned":
                begun |= dict.fromkeys(partitions_of(event), event["timestamp"])
            elif event["name"] == "partitions_revoked":
                for at in partitions_of(event) & begun.keys():
                    found[at].append(Ownership(member, begun.pop(at), event["timestamp"]))
        last_ms = FOREVER if member.killed_at_ms is None else member.killed_at_ms
        for at, since_ms in begun.items():
            found[at].append(Ownership(member, since_ms, last_ms))
    return found
