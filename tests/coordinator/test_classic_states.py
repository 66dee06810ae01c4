"""Every state of a classic group, and what it answers to every call."""

import re
from collections.abc import Callable, Iterator

import pytest

from odradek.coordinator.classic_group import LEGAL, ClassicGroup, ClassicState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from tests.support.groups import GROUP, Groups, Waiting, answered

PARKED = "parked"


def in_state(state: str) -> tuple[Groups, str]:
    """A group in that state, and the id of the member that speaks (a follower, where it can be)."""
    groups = Groups()
    if state == "none":
        return groups, "nobody"
    if state == "simple":
        groups.commit(1)
        return groups, "nobody"
    leader, follower = groups.stable_group(2)
    if state == "empty":
        groups.leave(leader, follower)
        return groups, follower
    if state == "preparing":
        groups.parked_join()
    if state == "completing":
        third, _ = groups.parked_join()
        for member_id in (leader, follower):
            groups.send_join(member_id)
        assert third in groups.group().members
    expected = {"preparing": "PreparingRebalance", "completing": "CompletingRebalance"}
    assert groups.group().state.value == expected.get(state, "Stable")
    return groups, follower


def outcome(response: object) -> object:
    if isinstance(response, Waiting) and not response.done():
        return PARKED
    return ErrorCode(answered(response).error_code)


def call(groups: Groups, name: str, member_id: str) -> object:
    known = groups.coordinator.shards.of(GROUP).state.groups.get(GROUP)
    generation = known.generation_id if known else 0
    calls: dict[str, Callable[[], object]] = {
        "heartbeat": lambda: groups.heartbeat(member_id, generation),
        "heartbeat, old": lambda: groups.heartbeat(member_id, generation - 1),
        "heartbeat, stranger": lambda: groups.heartbeat("stranger", generation),
        "sync": lambda: groups.send_sync(member_id, generation),
        "sync, old": lambda: groups.send_sync(member_id, generation - 1),
        "sync, other protocol": lambda: groups.send_sync(
            member_id, generation, protocol_name="sticky"
        ),
        "sync, stranger": lambda: groups.send_sync("stranger", generation),
        "join again": lambda: groups.send_join(member_id),
        "join again, changed": lambda: groups.send_join(member_id, protocols={"range": b"other"}),
        "join, new": groups.send_join,
        "join, new, v3": lambda: groups.send_join(version=3),
        "join, other type": lambda: groups.send_join(protocol_type="connect"),
        "join, other protocol": lambda: groups.send_join(protocols={"sticky": b""}),
        "leave": lambda: leave(groups, member_id),
        "leave, stranger": lambda: leave(groups, "stranger"),
        "commit": lambda: groups.commit(5, member_id=member_id, generation_id=generation),
        "commit, old": lambda: groups.commit(5, member_id=member_id, generation_id=generation - 1),
        "commit, stranger": lambda: groups.commit(
            5, member_id="stranger", generation_id=generation
        ),
        "commit, simple": lambda: groups.commit(5),
        "delete": lambda: ErrorCode(groups.coordinator.delete_groups([GROUP])[0].error_code),
    }
    try:
        answer = calls[name]()
    except ApiError as error:
        return error.code
    return answer if isinstance(answer, ErrorCode) else outcome(answer)


def leave(groups: Groups, member_id: str) -> ErrorCode:
    response = groups.leave(member_id)
    assert response.error_code == ErrorCode.NONE
    return ErrorCode(response.members[0].error_code)


WORDS: dict[str, object] = {
    "ok": ErrorCode.NONE,
    "parked": PARKED,
    "unknown": ErrorCode.UNKNOWN_MEMBER_ID,
    "rebalancing": ErrorCode.REBALANCE_IN_PROGRESS,
    "generation": ErrorCode.ILLEGAL_GENERATION,
    "inconsistent": ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    "required": ErrorCode.MEMBER_ID_REQUIRED,
    "non-empty": ErrorCode.NON_EMPTY_GROUP,
    "no-group": ErrorCode.GROUP_ID_NOT_FOUND,
}
STATES = ("none", "simple", "empty", "preparing", "completing", "stable")
# A row for each call, a column for each state.
TABLE = """
heartbeat              unknown   unknown   unknown   rebalancing   ok            ok
heartbeat, old         unknown   unknown   unknown   generation    generation    generation
heartbeat, stranger    unknown   unknown   unknown   unknown       unknown       unknown
sync                   unknown   unknown   unknown   rebalancing   parked        ok
sync, old              unknown   unknown   unknown   generation    generation    generation
sync, other protocol   unknown   unknown   unknown   inconsistent  inconsistent  inconsistent
sync, stranger         unknown   unknown   unknown   unknown       unknown       unknown
join again             unknown   unknown   unknown   parked        ok            ok
join again, changed    unknown   unknown   unknown   parked        parked        parked
join, new              required  required  required  required      required      required
join, new, v3          ok        ok        ok        parked        parked        parked
join, other type       required  required  required  inconsistent  inconsistent  inconsistent
join, other protocol   required  required  required  inconsistent  inconsistent  inconsistent
leave                  unknown   unknown   unknown   ok            ok            ok
leave, stranger        unknown   unknown   unknown   unknown       unknown       unknown
commit                 no-group  unknown   unknown   ok            rebalancing   ok
commit, old            ok        ok        unknown   generation    generation    generation
commit, stranger       no-group  unknown   unknown   unknown       unknown       unknown
commit, simple         ok        ok        ok        unknown       unknown       unknown
delete                 no-group  ok        ok        non-empty     non-empty     non-empty
"""


def cells() -> Iterator[tuple[str, str, object]]:
    for line in TABLE.strip().splitlines():
        name, *answers = re.split(r"\s{2,}", line)
        for state, answer in zip(STATES, answers, strict=True):
            yield state, name, WORDS[answer]


@pytest.mark.parametrize(("state", "name", "expected"), list(cells()))
def test_each_state_answers_each_call_as_kafka_does(
    state: str, name: str, expected: object
) -> None:
    groups, member_id = in_state(state)
    assert call(groups, name, member_id) == expected


def test_a_dead_group_sends_everybody_to_look_for_another_coordinator() -> None:
    groups, member_id = in_state("empty")
    dead = groups.group()
    groups.coordinator.delete_groups([GROUP])
    assert dead.state is ClassicState.DEAD
    with pytest.raises(ApiError) as caught:
        dead.check_member(member_id, None)
    assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


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
