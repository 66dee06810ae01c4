"""Every state of a classic group, and what it answers to every call, as Kafka does.

A script brings a group into a state, sends one request, and looks at the error code, or at there
being no answer yet. Three members, where there are any: L leads, F follows, and S follows as the
instance "i1". tests/conformance/test_random_groups.py asks Kafka the same at random.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from odradek.coordinator.classic_groups.group import LEGAL, ClassicGroup, ClassicState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupResponse
from tests.support.groups import GROUP, Groups, Waiting

PARKED = "parked"
INSTANCE = "i1"
Codes = ErrorCode | str


@dataclass
class Sent:
    """A request to a coordinator in memory: a response, a Waiting, or an error code."""

    answer: Any

    def code(self) -> Codes:
        answer = self.answer.response if isinstance(self.answer, Waiting) else self.answer
        if answer is None:
            return PARKED
        if isinstance(answer, LeaveGroupResponse) and not answer.error_code:
            answer = answer.members[0]
        return answer if isinstance(answer, ErrorCode) else ErrorCode(answer.error_code)

    def joined(self) -> JoinGroupResponse:
        answer: JoinGroupResponse = (
            self.answer.response if isinstance(self.answer, Waiting) else self.answer
        )
        return answer


class Stage:
    """A group in memory."""

    def __init__(self, **settings: int) -> None:
        self.groups = Groups(**settings)

    def join(self, member_id: str = "", **words: Any) -> Sent:
        return Sent(self.groups.send_join(member_id, **words))

    def sync(
        self,
        member_id: str,
        generation: int,
        *,
        instance: str | None = None,
        protocol: tuple[str, str] = ("consumer", "range"),
        assignments: Mapping[str, bytes] | None = None,
    ) -> Sent:
        words = {"protocol_type": protocol[0], "protocol_name": protocol[1]}
        send = self.groups.send_sync
        return Sent(send(member_id, generation, assignments, instance=instance, **words))

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> Sent:
        return Sent(self.groups.heartbeat(member_id, generation, instance=instance))

    def leave(self, member_id: str, instance: str | None = None) -> Sent:
        who = LeaveGroupMemberIdentity(member_id=member_id, group_instance_id=instance)
        return Sent(self.groups.coordinator.members.leave_group(GROUP, [who]))

    def commit(
        self, member_id: str = "", generation: int = -1, instance: str | None = None
    ) -> Sent:
        words: dict[str, Any] = {"generation_id": generation, "instance": instance}
        try:
            return Sent(self.groups.commit(5, member_id=member_id, **words))
        except ApiError as error:
            return Sent(error.code)

    def delete(self) -> Sent:
        return Sent(self.groups.coordinator.admin.delete([GROUP])[0])

    def require_members(self, count: int) -> None:
        assert len(self.groups.group().members) == count


class MembersIn(NamedTuple):
    """Who is in the group, by id, and at which generation."""

    leader: str = "nobody-l"
    follower: str = "nobody-f"
    static: str = "nobody-s"
    generation: int = 0


# -- into each state -----------------------------------------------------------------------------


def nothing(_stage: Stage) -> MembersIn:
    return MembersIn()


def simple(stage: Stage) -> MembersIn:
    """Offsets without members."""
    require(stage.commit())
    return MembersIn()


def completing(stage: Stage) -> MembersIn:
    """All have joined, nobody has synced."""
    leader = stage.join(stage.join().joined().member_id).joined().member_id
    follower = stage.join().joined().member_id
    others = [stage.join(follower), stage.join(instance=INSTANCE)]
    stage.require_members(3)
    back = stage.join(leader).joined()
    static = [other.joined() for other in others][1].member_id
    assert (back.leader, back.generation_id, len(back.members)) == (leader, 2, 3)
    return MembersIn(leader, follower, static, back.generation_id)


def synced(stage: Stage) -> MembersIn:
    """F and S have synced, L has not."""
    return sync_followers(stage)[0]


def sync_followers(stage: Stage) -> tuple[MembersIn, list[Sent]]:
    members = completing(stage)
    return members, [
        stage.sync(members.follower, members.generation),
        stage.sync(members.static, members.generation, instance=INSTANCE),
    ]


def stable(stage: Stage) -> MembersIn:
    members, waiting = sync_followers(stage)
    for sync in [stage.sync(members.leader, members.generation), *waiting]:
        require(sync)
    return members


def preparing(stage: Stage) -> MembersIn:
    """A fourth member wants to join; nobody is back yet."""
    members = stable(stage)
    stage.join(version=3)
    stage.require_members(4)
    return members


def joined(stage: Stage) -> MembersIn:
    """As before, but F is back."""
    members = preparing(stage)
    stage.join(members.follower)
    return members


def empty(stage: Stage) -> MembersIn:
    members = stable(stage)
    for member_id in members[:3]:
        require(stage.leave(member_id))
    return members._replace(generation=members.generation + 1)


def require(request: Sent) -> None:
    assert request.code() is ErrorCode.NONE


STATES: Mapping[str, Callable[[Stage], MembersIn]] = {
    "none": nothing,
    "simple": simple,
    "empty": empty,
    "preparing": preparing,
    "joined": joined,
    "completing": completing,
    "synced": synced,
    "stable": stable,
}

# -- each request --------------------------------------------------------------------------------

OTHER = {"range": b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01x"}
STICKY = {"sticky": b""}
Call = Callable[[Stage, MembersIn], Sent]
CALLS: Mapping[str, Call] = {
    "heartbeat": lambda s, c: s.heartbeat(c.follower, c.generation),
    "heartbeat, old generation": lambda s, c: s.heartbeat(c.follower, c.generation - 1),
    "heartbeat, later generation": lambda s, c: s.heartbeat(c.follower, c.generation + 1),
    "heartbeat, stranger": lambda s, c: s.heartbeat("x", c.generation),
    "heartbeat, static": lambda s, c: s.heartbeat(c.static, c.generation, INSTANCE),
    "heartbeat, static, no name": lambda s, c: s.heartbeat(c.static, c.generation),
    "heartbeat, fenced": lambda s, c: s.heartbeat(c.follower, c.generation, INSTANCE),
    "heartbeat, other instance": lambda s, c: s.heartbeat(c.static, c.generation, "i2"),
    "sync": lambda s, c: s.sync(c.follower, c.generation),
    "sync, leader": lambda s, c: s.sync(c.leader, c.generation, assignments={c.follower: b"F"}),
    "sync, old generation": lambda s, c: s.sync(c.follower, c.generation - 1),
    "sync, stranger": lambda s, c: s.sync("x", c.generation),
    "sync, fenced": lambda s, c: s.sync(c.follower, c.generation, instance=INSTANCE),
    "sync, other name": lambda s, c: s.sync(
        c.follower, c.generation, protocol=("consumer", "sticky")
    ),
    "sync, other type": lambda s, c: s.sync(
        c.follower, c.generation, protocol=("connect", "range")
    ),
    "join": lambda s, _: s.join(),
    "join, v3": lambda s, _: s.join(version=3),
    "join, stranger": lambda s, _: s.join("x"),
    "join, other type": lambda s, _: s.join(protocol_type="connect"),
    "join, no type": lambda s, _: s.join(protocol_type=""),
    "join, other protocol": lambda s, _: s.join(protocols=STICKY),
    "join, no protocols": lambda s, _: s.join(protocols={}),
    "join again": lambda s, c: s.join(c.follower),
    "join again, changed": lambda s, c: s.join(c.follower, protocols=OTHER),
    "join again, other protocol": lambda s, c: s.join(c.follower, protocols=STICKY),
    "join again, leader": lambda s, c: s.join(c.leader),
    "join, other instance": lambda s, _: s.join(instance="i2"),
    "join, same instance": lambda s, _: s.join(instance=INSTANCE),
    "join, same instance, v5": lambda s, _: s.join(instance=INSTANCE, version=5),
    "join, same, other protocol": lambda s, _: s.join(instance=INSTANCE, protocols=STICKY),
    "join again, static": lambda s, c: s.join(c.static, instance=INSTANCE),
    "join again, fenced": lambda s, c: s.join(c.follower, instance=INSTANCE),
    "join again, other instance": lambda s, c: s.join(c.static, instance="i2"),
    "leave": lambda s, c: s.leave(c.follower),
    "leave, leader": lambda s, c: s.leave(c.leader),
    "leave, stranger": lambda s, _: s.leave("x"),
    "leave, nobody": lambda s, _: s.leave(""),
    "leave, by instance": lambda s, _: s.leave("", INSTANCE),
    "leave, by other instance": lambda s, _: s.leave("", "i2"),
    "leave, by both": lambda s, c: s.leave(c.static, INSTANCE),
    "leave, fenced": lambda s, c: s.leave(c.follower, INSTANCE),
    "leave, id and other instance": lambda s, c: s.leave(c.static, "i2"),
    "commit": lambda s, c: s.commit(c.follower, c.generation),
    "commit, old generation": lambda s, c: s.commit(c.follower, c.generation - 1),
    "commit, no generation": lambda s, c: s.commit(c.follower),
    "commit, stranger": lambda s, c: s.commit("x", c.generation),
    "commit, nobody": lambda s, _: s.commit(),
    "commit, nobody, generation": lambda s, c: s.commit("", c.generation),
    "commit, static": lambda s, c: s.commit(c.static, c.generation, INSTANCE),
    "commit, fenced": lambda s, c: s.commit(c.follower, c.generation, INSTANCE),
    "delete": lambda s, _: s.delete(),
}

# -- what is answered ----------------------------------------------------------------------------

WORDS: Mapping[str, Codes] = {
    "ok": ErrorCode.NONE,
    "wait": PARKED,
    "unkn": ErrorCode.UNKNOWN_MEMBER_ID,
    "reb": ErrorCode.REBALANCE_IN_PROGRESS,
    "gen": ErrorCode.ILLEGAL_GENERATION,
    "prot": ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    "id": ErrorCode.MEMBER_ID_REQUIRED,
    "fenc": ErrorCode.FENCED_INSTANCE_ID,
    "none": ErrorCode.GROUP_ID_NOT_FOUND,
    "full": ErrorCode.NON_EMPTY_GROUP,
}
# A row for each call, a column for each state:
# none, simple, empty, preparing, joined, completing, synced, stable.
TABLE = """
heartbeat                     unkn  unkn  unkn  reb   reb   ok    ok    ok
heartbeat, old generation     unkn  unkn  unkn  gen   gen   gen   gen   gen
heartbeat, later generation   unkn  unkn  unkn  gen   gen   gen   gen   gen
heartbeat, stranger           unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
heartbeat, static             unkn  unkn  unkn  reb   reb   ok    ok    ok
heartbeat, static, no name    unkn  unkn  unkn  reb   reb   ok    ok    ok
heartbeat, fenced             unkn  unkn  unkn  fenc  fenc  fenc  fenc  fenc
heartbeat, other instance     unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
sync                          unkn  unkn  unkn  reb   reb   wait  wait  ok
sync, leader                  unkn  unkn  unkn  reb   reb   ok    ok    ok
sync, old generation          unkn  unkn  unkn  gen   gen   gen   gen   gen
sync, stranger                unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
sync, fenced                  unkn  unkn  unkn  fenc  fenc  fenc  fenc  fenc
sync, other name              unkn  unkn  unkn  prot  prot  prot  prot  prot
sync, other type              unkn  unkn  unkn  prot  prot  prot  prot  prot
join                          id    id    id    id    id    id    id    id
join, v3                      ok    ok    ok    wait  wait  wait  wait  wait
join, stranger                unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
join, other type              id    id    id    prot  prot  prot  prot  prot
join, no type                 prot  prot  prot  prot  prot  prot  prot  prot
join, other protocol          id    id    id    prot  prot  prot  prot  prot
join, no protocols            prot  prot  prot  prot  prot  prot  prot  prot
join again                    unkn  unkn  unkn  wait  wait  ok    ok    ok
join again, changed           unkn  unkn  unkn  wait  wait  wait  wait  wait
join again, other protocol    unkn  unkn  unkn  prot  prot  prot  prot  prot
join again, leader            unkn  unkn  unkn  wait  wait  ok    ok    wait
join, other instance          ok    ok    ok    wait  wait  wait  wait  wait
join, same instance           ok    ok    ok    wait  wait  wait  wait  ok
join, same instance, v5       ok    ok    ok    wait  wait  wait  wait  ok
join, same, other protocol    ok    ok    ok    prot  prot  prot  prot  prot
join again, static            unkn  unkn  unkn  wait  wait  ok    ok    ok
join again, fenced            unkn  unkn  unkn  fenc  fenc  fenc  fenc  fenc
join again, other instance    unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
leave                         unkn  unkn  unkn  ok    ok    ok    ok    ok
leave, leader                 unkn  unkn  unkn  ok    ok    ok    ok    ok
leave, stranger               unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
leave, nobody                 unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
leave, by instance            unkn  unkn  unkn  ok    ok    ok    ok    ok
leave, by other instance      unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
leave, by both                unkn  unkn  unkn  ok    ok    ok    ok    ok
leave, fenced                 unkn  unkn  unkn  fenc  fenc  fenc  fenc  fenc
leave, id and other instance  unkn  unkn  unkn  unkn  unkn  unkn  unkn  unkn
commit                        none  unkn  unkn  ok    ok    reb   reb   ok
commit, old generation        ok    ok    unkn  gen   gen   gen   gen   gen
commit, no generation         ok    ok    ok    gen   gen   gen   gen   gen
commit, stranger              none  unkn  unkn  unkn  unkn  unkn  unkn  unkn
commit, nobody                ok    ok    ok    unkn  unkn  unkn  unkn  unkn
commit, nobody, generation    none  unkn  unkn  unkn  unkn  unkn  unkn  unkn
commit, static                none  unkn  unkn  ok    ok    reb   reb   ok
commit, fenced                none  unkn  unkn  fenc  fenc  fenc  fenc  fenc
delete                        none  ok    ok    full  full  full  full  full
"""


class Cell(NamedTuple):
    """One request in one state."""

    state: str
    call: str
    expected: Codes


def cells() -> Iterator[Cell]:
    """All cells of the table, a state after the other."""
    rows = [re.split(r"\s{2,}", line) for line in TABLE.strip().splitlines()]
    assert [row[0] for row in rows] == list(CALLS)
    for column, state in enumerate(STATES, 1):
        for row in rows:
            yield Cell(state, row[0], WORDS[row[column]])


# -- a group that is full ------------------------------------------------------------------------

FULL_AT = 4


def answers_of_a_full_group(stage: Stage) -> Iterator[tuple[str, Codes, Codes]]:
    """What is asked, expected, and answered, where `group.max.size` is FULL_AT."""
    full = ErrorCode.GROUP_MAX_SIZE_REACHED
    first = stage.join(version=3).joined().member_id
    others = [stage.join(version=3), stage.join(version=3), stage.join(instance=INSTANCE)]
    stage.require_members(4)
    again = stage.join(first)
    second, third, static = (other.joined().member_id for other in others)

    def ask(what: str, expected: Codes, sent: Sent) -> tuple[str, Codes, Codes]:
        return what, expected, sent.code()

    yield ask("the first is back", ErrorCode.NONE, again)
    yield ask("a new member", full, stage.join())
    yield ask("a new member, v3", full, stage.join(version=3))
    yield ask("a stranger", full, stage.join("x"))
    yield ask("somebody of another type", full, stage.join(protocol_type="connect"))
    yield ask("a known instance without its id", full, stage.join(instance=INSTANCE))
    yield ask("a member", ErrorCode.NONE, stage.join(second))
    # Whoever is first to join the next generation is in, also a newcomer.
    yield ask("a member has changed", PARKED, stage.join(second, protocols=OTHER))
    yield ask("a new member meanwhile", PARKED, stage.join(version=3))
    stage.require_members(5)
    yield ask("the first is back", PARKED, stage.join(first))
    yield ask("the static one is back", PARKED, stage.join(static, instance=INSTANCE))
    yield ask("the last member is back", full, stage.join(third))
    yield ask("the last member beats", ErrorCode.UNKNOWN_MEMBER_ID, stage.heartbeat(third, 2))
    yield ask("another new member", full, stage.join())
    yield ask("somebody repeats its join", ErrorCode.NONE, stage.join(first))


# -- the tests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", list(cells()), ids=lambda cell: f"{cell.state}: {cell.call}")
def test_each_state_answers_each_call_as_kafka_does(cell: Cell) -> None:
    stage = Stage()
    members = STATES[cell.state](stage)
    assert CALLS[cell.call](stage, members).code() == cell.expected


@pytest.mark.parametrize("call", CALLS)
def test_a_dead_group_sends_everybody_to_look_for_another_coordinator(call: str) -> None:
    """A group dies when it is removed, so nobody meets it; Kafka is as careful."""
    stage = Stage()
    members = stable(stage)
    stage.groups.group().become_dead()
    expected = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if call == "delete":
        expected = ErrorCode.GROUP_ID_NOT_FOUND
    assert CALLS[call](stage, members).code() == expected


def test_a_full_group_answers_as_kafka_does() -> None:
    for what, expected, found in answers_of_a_full_group(Stage(max_size=FULL_AT)):
        assert found == expected, what


def test_the_leader_that_joins_a_stable_group_again_starts_a_rebalance() -> None:
    groups = Groups()
    leader, _ = groups.stable_group(2)
    assert isinstance(groups.send_join(leader), Waiting)
    assert groups.group().state is ClassicState.PREPARING_REBALANCE


def test_the_leader_that_missed_its_join_response_gets_it_again_with_the_members() -> None:
    groups = Groups()
    leader = groups.join().member_id
    again = groups.join(leader)
    assert again.generation_id == 1
    assert [member.member_id for member in again.members] == [leader]


def test_an_unchanged_follower_that_joins_again_is_told_the_generation_and_nobodys_names() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2)
    assert groups.join(follower) == JoinGroupResponse(
        generation_id=2,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
        member_id=follower,
    )


def test_a_state_is_never_left_by_a_way_that_the_table_does_not_know() -> None:
    group = ClassicGroup("g")
    with pytest.raises(AssertionError, match="cannot go from Empty to CompletingRebalance"):
        group._become(ClassicState.COMPLETING_REBALANCE, 0)


def test_every_state_but_the_last_can_be_left_and_death_is_always_near() -> None:
    for state, following in LEGAL.items():
        assert (ClassicState.DEAD in following) == (state is not ClassicState.DEAD)


@pytest.mark.parametrize("state", ClassicState)
def test_a_rebalance_may_begin_where_the_table_knows_a_way(state: ClassicState) -> None:
    group = ClassicGroup("g")
    group.state = state
    assert group.can_rebalance == (ClassicState.PREPARING_REBALANCE in LEGAL[state])
