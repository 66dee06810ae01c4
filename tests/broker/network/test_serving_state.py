"""Which holds keep a connection from serving, in which order they come and go."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.network.serving_state import (
    ANSWER,
    CLOSED,
    THROTTLE,
    TURN,
    UNSENT,
    ServingState,
)

HOLDS = (ANSWER, TURN, THROTTLE, UNSENT)
steps = st.lists(st.tuples(st.booleans(), st.sampled_from(HOLDS)))


@given(steps)
def test_a_request_is_served_when_every_hold_is_released(script: list[tuple[bool, int]]) -> None:
    state, held = ServingState(), set()
    for holds, reason in script:
        (state.hold if holds else state.release)(reason)
        (held.add if holds else held.discard)(reason)
        assert bool(state.holds) == bool(held)
        assert not state.must_close


@given(steps)
def test_a_connection_that_finishes_waits_for_its_answers_and_for_nothing_else(
    script: list[tuple[bool, int]],
) -> None:
    state = ServingState()
    for holds, reason in script:
        (state.hold if holds else state.release)(reason)
    state.finish()
    assert state.holds
    assert not state.holds & (TURN | THROTTLE)
    assert state.must_close == (not state.holds & (ANSWER | UNSENT))
    state.release(ANSWER)
    state.release(UNSENT)
    assert state.must_close


@given(steps)
def test_a_client_that_ends_leaves_something_to_do_while_there_are_holds(
    script: list[tuple[bool, int]],
) -> None:
    state = ServingState()
    for holds, reason in script:
        (state.hold if holds else state.release)(reason)
    assert state.end() == state.has_ended == bool(state.holds)
    state.hold(CLOSED)
    assert not state.end()


def test_a_closed_connection_neither_serves_nor_closes_again() -> None:
    state = ServingState()
    state.hold(CLOSED)
    state.finish()
    assert state.holds
    assert not state.must_close
