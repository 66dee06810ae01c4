"""What is said next, at random.

Mostly a member does what a sensible client would do now; often with one thing wrong about it; and
in between somebody commits, fetches, describes, deletes, or changes the topics.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from tests.conformance.random_groups.admin_steps import (
    Commit,
    CreateTopic,
    DeleteGroup,
    DeleteOffsets,
    DeleteTopic,
    Describe,
    DescribeClassic,
    FetchOffsets,
    GrowTopic,
    ListAll,
)
from tests.conformance.random_groups.classic_steps import ClassicBeat, Join, Leave, Sync
from tests.conformance.random_groups.participants import ADMIN, GroupMember, Participants
from tests.conformance.random_groups.steps import (
    AWAY,
    JOINING,
    LEAVING,
    LONG_MS,
    NOBODYS,
    OWN,
    Beat,
    Epoch,
    Step,
)

T = TypeVar("T")

TOPICS = ("a", "b", "c", "d")
REGEXES = ("TAG-[ab]", "TAG-.*", "TAG-z", "TAG-c|TAG-d")
EPOCHS: tuple[Epoch, ...] = ("+0", "+0", "-1", "+1", "-2", JOINING, LEAVING, AWAY, -3, 1, 99)
GENERATIONS: tuple[Epoch, ...] = ("+0", "-1", "+1", -1, 0, 1, 99)
PROTOCOLS = (("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("sticky",), ())
STATES = ("Stable", "Empty", "Dead", "PreparingRebalance", "Assigning", "reconciling", "nonsense")
TYPES = ("classic", "consumer", "Consumer", "share", "nonsense")


class Chooser:
    """Draws the steps of one conversation."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.groups = ("g", "h")[: self._either(1, 1, 1, 2)]
        count = random.randint(1, 5)
        self.seats = [
            GroupMember(f"m{index}", f"i{index}" if random.random() < 0.35 else None)
            for index in range(1, count + 1)
        ]
        likes_new = self._either(0.0, 0.5, 0.5, 1.0, 1.0)
        self._speaks_new = {
            (group, seat.name): random.random() < likes_new
            for group in self.groups
            for seat in self.seats
        }
        self._assignors = self._either(("range",), ("range",), ("range", None), ("uniform",))
        self._error_rate = self._either(0.05, 0.15, 0.3)
        # Who is to speak next, in turn, and whether to take leave.
        self._visits: deque[tuple[str, str, bool]] = deque()

    def first(self) -> list[Step]:
        """How a conversation begins."""
        names = TOPICS[: self._random.randint(1, 3)]
        return [CreateTopic(names=names, partitions=self._random.randint(1, 4))]

    def next(self, participants: Participants) -> Step:
        """The next step, among those who have been told what `participants` knows."""
        while True:
            step = self._next(participants)
            if step is not None:
                return step

    def _next(self, participants: Participants) -> Step | None:
        group = self._random.choice(self.groups)
        if self._visits:
            group, name, leaves = self._visits.popleft()
            seat = participants.seat(group, name)
            return self._leaving(group, seat) if leaves else self._sensible(group, seat)
        draw = self._random.random()
        if draw < 0.14:
            return self._about_offsets(participants, group)
        if draw < 0.22:
            return self._look(group)
        if draw < 0.25:
            return self._change_topics()
        if draw < 0.27:
            return DeleteGroup(group=group)
        if draw < 0.40:
            everybody = [(group, seat.name, draw < 0.28) for seat in self.seats]
            self._visits += everybody * self._either(1, 2, 3)
            return None
        seat = participants.seat(group, self._random.choice(self.seats).name)
        if self._random.random() < 0.04:
            self._speaks_new[group, seat.name] ^= True
        step = self._sensible(group, seat)
        if step is not None and self._random.random() < self._error_rate:
            return self._spoilt(step, seat)
        return step

    def _either(self, *ones: T) -> T:
        return self._random.choice(ones)

    def _maybe(self, chance: float, value: T) -> T | None:
        return value if self._random.random() < chance else None

    def _topics(self) -> tuple[str, ...]:
        """Mostly those that there are from the start."""
        names = self._either(TOPICS[:2], TOPICS[:2], TOPICS)
        return tuple(sorted(self._random.sample(names, self._either(1, 1, len(names)))))

    # -- what a client would do --------------------------------------------------------------------

    def _sensible(self, group: str, seat: GroupMember) -> Step | None:
        """None: it has nothing to say, for it waits for an answer."""
        if self._speaks_new[group, seat.name]:
            return self._consumer(group, seat)
        return self._classic(group, seat)

    def _consumer(self, group: str, seat: GroupMember) -> Step:
        who: dict[str, Any] = {"group": group, "who": seat.name, "instance": seat.instance}
        if seat.epoch <= 0:
            regex = self._maybe(0.2, self._either(*REGEXES))
            return Beat(
                **who,
                epoch=JOINING,
                topics=None if regex and self._either(True, False) else self._topics(),
                regex=regex,
                assignor=self._either(*self._assignors),
                owned="none",
                rack=self._maybe(0.1, "r1"),
                timeout_ms=LONG_MS,
            )
        draw = self._random.random()
        if draw < 0.05:
            return self._leaving(group, seat)
        if draw < 0.10 and seat.instance:
            return Beat(**who, epoch=AWAY)
        if draw < 0.15:
            return Beat(**who, topics=self._topics(), owned=self._either(None, "all"))
        if draw < 0.18:
            return Beat(**who, regex=self._either("", *REGEXES), owned=self._either(None, "all"))
        if draw < 0.21:
            return Beat(
                **who,
                topics=self._topics(),
                owned=self._either("all", "some"),
                timeout_ms=LONG_MS,
            )
        return Beat(**who, owned=self._either("all", "all", "all", None, "some"))

    def _classic(self, group: str, seat: GroupMember) -> Step | None:
        if seat.parked:
            return None
        who: dict[str, Any] = {"group": group, "who": seat.name}
        if seat.told_id and self._random.random() < 0.06:
            return self._leaving(group, seat)
        who["instance"] = seat.instance
        if seat.phase == "join" or self._random.random() < 0.05:
            return Join(
                **who,
                topics=self._topics(),
                protocols=self._either(*PROTOCOLS[:3]),
                metadata=self._either(0, 1, 2, 3),
                version=self._either(9, 9, 9, 5, 3),
            )
        if seat.phase == "sync":
            return Sync(**who, gives=self._either("shares", "shares", "shares", "part"))
        return ClassicBeat(**who)

    def _leaving(self, group: str, seat: GroupMember) -> Step:
        who: dict[str, Any] = {"group": group, "who": seat.name}
        if seat.epoch > 0:
            return Beat(**who, instance=seat.instance, epoch=LEAVING)
        said = self._either((OWN, seat.instance), ("", seat.instance), (OWN, None))
        return Leave(**who, leaving=(said,), version=self._either(5, 5, 4, 2))

    # -- what goes wrong ---------------------------------------------------------------------------

    def _spoilt(self, step: Step, seat: GroupMember) -> Step:
        """The step with one word or two that are wrong, or at least unusual."""
        for _ in range(self._either(1, 1, 2)):
            odd = self._odd(step, seat)
            name = self._either(*odd)
            step = replace(step, **{name: self._either(*odd[name])})
        return step

    def _odd(self, step: Step, seat: GroupMember) -> dict[str, Sequence[Any]]:
        """What may be said instead, by field."""
        other = self._either(*self.seats)
        ids = (OWN, NOBODYS, "", other.name, f"{other.name}'s")
        instances = (None, seat.instance, other.instance, "", "i9")
        odd: dict[str, dict[str, Sequence[Any]]] = {
            "Beat": {
                "id": ids,
                "epoch": EPOCHS,
                "topics": (None, (), ("a",), ("z",), ("a", "z"), TOPICS),
                "regex": (None, "", "(", *REGEXES),
                "assignor": (None, "range", "nonsense", ""),
                "owned": (None, "all", "some", "none", "more", "other"),
                "instance": instances,
                "rack": (None, "", "r1", "r2"),
                "timeout_ms": (-1, LONG_MS, 550_000),
                "version": (0, 1),
            },
            "Join": {
                "id": ids,
                "instance": instances,
                "topics": ((), ("a",), ("z",), TOPICS),
                "protocols": (*PROTOCOLS, ("nonsense",)),
                "protocol_type": ("consumer", "connect", ""),
                "metadata": (-1, 0, 1, 2, 3),
                "owned": ("all", "none"),
                "session_ms": (1, LONG_MS, 550_000, 2**30),
                "rebalance_ms": (LONG_MS, 550_000),
                "version": (*range(2, 10),),
            },
            "Sync": {
                "id": ids,
                "generation": GENERATIONS,
                "instance": instances,
                "protocol_type": ("consumer", "connect", None, ""),
                "protocol": ("chosen", "range", "roundrobin", "nonsense", None),
                "gives": ("shares", "part", "garbage", "none"),
                "version": (*range(6),),
            },
            "ClassicBeat": {
                "id": ids,
                "generation": GENERATIONS,
                "instance": instances,
                "version": (*range(5),),
            },
            "Leave": {
                "leaving": [
                    ((one, instance), *more)
                    for one in ids
                    for instance in instances
                    for more in ((), ((f"{other.name}'s", other.instance),))
                ],
                "version": (*range(6),),
            },
        }
        return odd[type(step).__name__]

    # -- the rest ----------------------------------------------------------------------------------

    def _about_offsets(self, participants: Participants, group: str) -> Step:
        if self._random.random() < 0.12:
            return DeleteOffsets(group=group, topics=self._topics())
        members = [one for one in participants.of(group) if one.epoch > 0 or one.generation > 0]
        seat = self._either(*(members or self.seats))
        classic = (seat.epoch <= 0) ^ (self._random.random() < 0.05)
        who: dict[str, Any] = {
            "group": group,
            "who": seat.name if members and self._random.random() < 0.8 else ADMIN,
            "classic": classic,
            "id": self._either(OWN, OWN, OWN, OWN, OWN, NOBODYS, ""),
            "epoch": self._either(*["+0"] * 8, "-1", "+1", -1, 0, AWAY),
        }
        if self._random.random() < 0.4:
            return FetchOffsets(
                **who,
                topics=self._maybe(0.6, self._topics()),
                stable=self._either(True, False),
                version=self._either(10, 10, 9, 9, 8, 7, 6, 2, 1),
            )
        return Commit(
            **who,
            instance=seat.instance if self._random.random() < 0.8 else self._either(None, "i9"),
            topics=self._topics(),
            partitions=self._either((0,), (0,), (0, 1), (0, 7)),
            offset=self._either(0, 5, 100),
            metadata=self._either("", "", "m", "m", None, "x" * 65),
            leader_epoch=self._either(-1, 0, 5),
            version=self._either(10, 9, 9, 8, 7, 6, 2),
        )

    def _look(self, group: str) -> Step:
        return self._either(
            Describe(group=group),
            DescribeClassic(group=group, version=self._either(6, 5, 3)),
            ListAll(
                states=tuple(self._random.sample(STATES, self._either(0, 0, 1, 2))),
                types=tuple(self._random.sample(TYPES, self._either(0, 0, 1))),
            ),
        )

    def _change_topics(self) -> Step:
        name = self._either(*TOPICS)
        return self._either(
            CreateTopic(names=(name,), partitions=self._random.randint(1, 4)),
            CreateTopic(names=(name,), partitions=self._random.randint(1, 4)),
            GrowTopic(name=name, partitions=self._random.randint(2, 6)),
            DeleteTopic(name=name),
        )
