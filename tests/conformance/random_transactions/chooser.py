"""What is said next, at random.

Mostly a producer does what a sensible client would do now, as a client of transactions version 1
or 2 or by turns; often with one thing wrong about it. In between somebody reads, describes or
deletes, or a member of a group commits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from tests.conformance.random_groups.admin_steps import (
    Commit,
    CreateTopic,
    DeleteGroup,
    DeleteOffsets,
    DeleteTopic,
    FetchOffsets,
)
from tests.conformance.random_groups.classic_steps import ClassicBeat, Join, Leave, Sync
from tests.conformance.random_groups.participants import GroupMember
from tests.conformance.random_groups.steps import JOINING, LEAVING, NOBODYS, OWN, Beat, Step
from tests.conformance.random_groups.steps import LONG_MS as LONG_SESSION_MS
from tests.conformance.random_transactions.admin_steps import (
    OFFSETS,
    DeleteRecords,
    DescribeProducers,
    DescribeTransactions,
    Ends,
    FindCoordinator,
    ListTransactions,
    Read,
    WriteMarkers,
)
from tests.conformance.random_transactions.participants import (
    Place,
    Producer,
    TransactionParticipants,
)
from tests.conformance.random_transactions.plain import FOREIGN_COORDINATOR
from tests.conformance.random_transactions.producer_steps import (
    LONG_MS,
    NONE,
    SHORT_MS,
    WRONG,
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    End,
    Init,
    Write,
)

T = TypeVar("T")

TOPICS = ("a", "b")
PARTITIONS = 2
MEMBER = "m1"
STATES = ("Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "PrepareCommit", "Dead", "odd")
PATTERNS = ("", "TAG-.*", "TAG-x", "x", ".*y", "(")
OLD, NEW, MIXED = "old", "new", "mixed"


class Chooser:
    """Draws the steps of one conversation."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.groups = ("g", "h")
        self.seats = [GroupMember(MEMBER, self._either(None, None, "i1"))]
        second = self._either("x", "x", "y", None)
        self.producers = [Producer("p1", "x"), Producer("p2", second), Producer("p3", "y")]
        del self.producers[self._either(1, 2, 2, 3) :]
        self._styles: dict[str, str] = {}
        self._style_rate = self._either((OLD,), (NEW,), (NEW,), (OLD, NEW), (OLD, NEW, MIXED))
        self._speaks_new = {group: self._either(True, False) for group in self.groups}
        self._error_rate = self._either(0.05, 0.15, 0.3, 0.45)
        self._marker_rate = self._either(0.0, 0.02, 0.05)
        self._short_rate = self._either(0.0, 0.0, 0.15)

    def first(self) -> list[Step]:
        """How a conversation begins."""
        return [CreateTopic(names=TOPICS, partitions=PARTITIONS)]

    def last_words(self, participants: TransactionParticipants) -> Iterator[Step]:
        """Sometimes a transaction ends immediately before the brokers do."""
        open_ones = [each for each in participants.producers.values() if each.is_open]
        if open_ones and self._random.random() < 0.4:
            who, commit = self._either(*open_ones).name, self._either(True, False)
            yield End(who=who, commit=commit, waits=False, version=self._either(4, 5))

    def next(self, participants: TransactionParticipants) -> Step:
        """The next step, among those who have been told what `participants` knows."""
        while True:
            step = self._next(participants)
            if step is not None:
                return step

    def _next(self, participants: TransactionParticipants) -> Step | None:
        draw = self._random.random()
        if draw < 0.14:
            return self._look(participants)
        if draw < 0.24:
            return self._member(participants, self._either(*self.groups))
        if draw < 0.28:
            return self._change()
        if draw < 0.28 + self._marker_rate:
            return self._marker(participants)
        producer = participants.producers[self._either(*self.producers).name]
        step = self._sensible(participants, producer)
        if self._random.random() < self._error_rate:
            return self._spoilt(step)
        return step

    def _either(self, *ones: T) -> T:
        return self._random.choice(ones)

    def _maybe(self, chance: float, value: T) -> T | None:
        return value if self._random.random() < chance else None

    def _place(self) -> Place:
        return self._either(*TOPICS), self._random.randrange(PARTITIONS)

    def _places(self) -> tuple[Place, ...]:
        return tuple(sorted({self._place() for _ in range(self._either(1, 1, 2, 3))}))

    # -- what a producer would do ------------------------------------------------------------------

    def _style(self, producer: Producer) -> str:
        style = self._styles.setdefault(producer.name, self._either(*self._style_rate))
        return self._either(OLD, NEW) if style == MIXED else style

    def _sensible(self, participants: TransactionParticipants, producer: Producer) -> Step:
        who = producer.name
        if producer.producer_id < 0 or producer.is_fenced or self._random.random() < 0.04:
            return self._init(producer)
        if producer.transactional_id is None:
            return self._plain_write(who)
        is_new = self._style(producer) == NEW
        draw = self._random.random()
        if producer.is_open and draw < 0.25:
            del self._styles[who]
            return End(
                who=who,
                commit=self._either(True, False),
                version=5 if is_new else self._random.randrange(5),
            )
        if draw < 0.45:
            return self._commit_offsets(participants, producer, is_new=is_new)
        if is_new:
            return Write(
                who=who,
                places=self._places(),
                count=self._either(1, 1, 3),
                version=self._either(12, 13),
            )
        places = self._places()
        if producer.added.issuperset(places):
            version = self._random.randrange(3, 12)
            return Write(who=who, places=places, count=self._either(1, 3), version=version)
        return AddPartitions(who=who, places=places, version=self._either(0, 1, 2, 3, 3, 4, 5))

    def _init(self, producer: Producer) -> Init:
        is_short = self._random.random() < self._short_rate
        has_expected = producer.producer_id >= 0 and self._random.random() < 0.3
        return Init(
            who=producer.name,
            id=OWN if has_expected else NONE,
            timeout_ms=SHORT_MS if is_short else LONG_MS,
            version=self._either(5, 4, 3, 6) if has_expected else self._random.randrange(7),
        )

    def _plain_write(self, who: str) -> Write:
        return Write(
            who=who,
            places=self._places(),
            transactional=False,
            version=self._random.randrange(3, 14),
        )

    def _commit_offsets(
        self, participants: TransactionParticipants, producer: Producer, *, is_new: bool
    ) -> Step:
        group = self._either(*self.groups)
        if not is_new and group not in producer.added_groups:
            return AddOffsets(who=producer.name, of=group, version=self._random.randrange(5))
        seat = participants.seat(group, MEMBER)
        is_member = seat.epoch > 0 or seat.generation > 0
        return CommitOffsets(
            who=producer.name,
            of=group,
            member=MEMBER if is_member and self._random.random() < 0.8 else None,
            classic=seat.epoch <= 0,
            instance=seat.instance if is_member else None,
            places=self._places(),
            offset=self._either(0, 5, 100),
            metadata=self._either("", "m", None),
            version=5 if is_new else self._random.randrange(5),
        )

    # -- what goes wrong ---------------------------------------------------------------------------

    def _spoilt(self, step: Step) -> Step:
        """The step with one word or two that are wrong, or at least unusual."""
        for _ in range(self._either(1, 1, 2)):
            odd = self._odd(step)
            name = self._either(*odd)
            step = replace(step, **{name: self._either(*odd[name])})
        return step

    def _odd(self, step: Step) -> dict[str, Sequence[Any]]:
        """What may be said instead, by field."""
        names = tuple(each.name for each in self.producers)
        places = ((), (("a", 7),), (("z", 0),), (("a", 0), ("a", 7)), (("a", 1), ("z", 0)))
        common: dict[str, Sequence[Any]] = {
            "txn": ("x", "y", "z", "", OWN),
            "id": (WRONG, NONE, *names),
            "epoch": ("-1", "+1", "-1", "+1", 0, -1, 5),
        }
        odd: dict[str, dict[str, Sequence[Any]]] = {
            "Init": common
            | {
                "id": (OWN, OWN, WRONG, *names),
                "txn": ("x", "y", "z", "", None),
                "timeout_ms": (0, -1, 1, 900_000, 900_001, 2**31 - 1),
                "two_phase": (True,),
                "keep": (True,),
                "version": (*range(7),),
            },
            "AddPartitions": common
            | {
                "places": places,
                "verify": (True, False),
                "others": ((), names),
                "version": (*range(6), 4, 5),
            },
            "AddOffsets": common | {"of": ("g", "", "z"), "version": (*range(5),)},
            "CommitOffsets": common
            | {
                "of": ("g", "", "z"),
                "member": (None, MEMBER),
                "classic": (True, False),
                "member_id": (NOBODYS, "", OWN),
                "generation": ("-1", "+1", -1, 0, 9),
                "instance": (None, "i1", "i9"),
                "places": places[1:],
                "offset": (-1, 2**40),
                "metadata": ("x" * 65,),
                "version": (*range(6),),
            },
            "Write": common
            | {
                "txn": ("x", "y", "z", "", None),
                "sequence": ("-1", "-1", "+1", "+1", "-2", 0, 3, 2**31 - 1),
                "transactional": (True, False),
                "places": places[1:],
                "count": (2, 5),
                "acks": (1, 1, 2),
                "last_by": names,
                "version": (*range(3, 14),),
            },
            "End": common | {"commit": (True, False), "version": (*range(6),)},
        }
        return odd[type(step).__name__]

    # -- the rest ----------------------------------------------------------------------------------

    def _look(self, participants: TransactionParticipants) -> Step:
        names = [each.name for each in self.producers]
        committed = self._either(True, True, False)
        draws: list[Step] = [
            Read(places=self._places(), committed=committed, version=self._random.randrange(4, 19)),
            Read(
                places=self._places(),
                committed=committed,
                offset=self._random.randrange(1, 12),
                version=self._random.randrange(4, 19),
            ),
            Ends(
                places=self._places(),
                at=self._either(-1, -1, -2, -3, 0, 1_700_000_001_000),
                committed=committed,
                version=self._random.randrange(1, 12),
            ),
            DescribeTransactions(ids=self._either(("x",), ("x", "y"), ("z",), ("",))),
            ListTransactions(
                states=tuple(self._random.sample(STATES, self._either(0, 0, 1, 2))),
                of=tuple(self._random.sample(names, self._either(0, 0, 1))),
                duration_ms=self._either(-1, -1, -5, 3_600_000),
                pattern=self._maybe(0.3, self._either(*PATTERNS)),
                version=self._random.randrange(3),
            ),
            DescribeProducers(places=self._either(self._places(), (("a", 7), ("z", 0)))),
            FindCoordinator(
                ids=self._either(("x",), ("y", "x")), version=self._random.randrange(1, 7)
            ),
            self._fetch_offsets(),
            self._fetch_offsets(),
        ]
        return self._either(*draws)

    def _fetch_offsets(self) -> FetchOffsets:
        return FetchOffsets(
            group=self._either(*self.groups),
            topics=self._maybe(0.6, TOPICS),
            stable=self._either(True, False),
            version=self._either(10, 9, 8, 7, 6, 2),
        )

    def _member(self, participants: TransactionParticipants, group: str) -> Step | None:
        seat = participants.seat(group, MEMBER)
        who: dict[str, Any] = {"group": group, "who": seat.name}
        draw = self._random.random()
        if draw < 0.2:
            is_member = seat.epoch > 0 or seat.generation > 0
            return Commit(
                **(who if is_member else {"group": group}),
                classic=seat.epoch <= 0,
                topics=(self._either(*TOPICS),),
                version=self._either(10, 9, 8, 7),
            )
        if draw < 0.3:
            return DeleteOffsets(group=group, topics=(self._either(*TOPICS),))
        if draw < 0.38:
            return DeleteGroup(group=group)
        if seat.parked:
            return None
        if draw < 0.45:
            self._speaks_new[group] ^= True
            if seat.epoch > 0:
                return Beat(**who, instance=seat.instance, epoch=LEAVING)
            return Leave(**who, leaving=((OWN, seat.instance),))
        return self._joining(group, seat)

    def _joining(self, group: str, seat: GroupMember) -> Step:
        who: dict[str, Any] = {"group": group, "who": seat.name, "instance": seat.instance}
        if self._speaks_new[group]:
            if seat.epoch > 0:
                return Beat(**who, owned="all")
            return Beat(
                **who, epoch=JOINING, topics=("a",), owned="none", timeout_ms=LONG_SESSION_MS
            )
        if seat.phase == "join":
            return Join(**who, version=self._either(9, 5, 3))
        return Sync(**who) if seat.phase == "sync" else ClassicBeat(**who)

    def _change(self) -> Step:
        name = self._either(*TOPICS)
        return self._either(
            CreateTopic(names=(name,), partitions=PARTITIONS),
            CreateTopic(names=(name,), partitions=PARTITIONS),
            DeleteTopic(name=name),
            DeleteRecords(place=self._place(), before=self._either(-1, 1, 2, 3, 99)),
            DeleteRecords(place=self._place(), before=self._either(-1, 1, 2, 3, 99)),
        )

    def _marker(self, participants: TransactionParticipants) -> WriteMarkers | None:
        # Without a producer id, or with epoch -1, it would be an accident to Kafka.
        known = [each for each in participants.producers.values() if each.producer_id >= 0]
        if not known:
            return None
        whose = self._either(*known)
        version = self._either(1, 2)
        return WriteMarkers(
            whose=whose.name,
            id=self._either(OWN, OWN, OWN, WRONG),
            epoch=self._either("+0", "+0", "+1", "-1" if whose.epoch else "+0"),
            commit=self._either(True, False),
            places=self._either(
                (self._place(),),
                (self._place(),),
                ((OFFSETS, 0),),
                (("a", 0), ("a", 7)),
                (("z", 0),),
            ),
            coordinator_epoch=self._either(*[0] * 8, -1, -1, FOREIGN_COORDINATOR),
            transaction_version=self._either(0, 1, 2) if version > 1 else 0,
            version=version,
        )
