"""The judge of share groups notices what it is there for."""

from tests.crash.settled import Settled

TEA, COFFEE = (0, 7), (1, 7)
LOCK_S = 3600.0
ASKED_S = 1e9  # later than now


def test_a_record_that_comes_again_after_it_is_done_is_noticed() -> None:
    settled = Settled(LOCK_S)
    settled.delivered(0, TEA, 2, ASKED_S)
    settled.settling([TEA])
    settled.settled(0, [(TEA, 2)], is_done=True, is_late=False)
    settled.delivered(0, TEA, 1, ASKED_S)  # reported late
    assert settled.faults == []
    settled.delivered(1, TEA, 1, ASKED_S)
    assert len(settled.faults) == 1
    settled.settled(1, [(TEA, 1)], is_done=True, is_late=False)
    assert len(settled.faults) == 2


def test_a_late_acknowledgement_may_be_of_a_record_that_another_has_settled() -> None:
    settled = Settled(LOCK_S)
    settled.delivered(0, TEA, 1, -LOCK_S)
    settled.delivered(0, TEA, 2, ASKED_S)
    assert settled.give_up(0, [(TEA, 1)]) == 0.0
    for delivery_count, is_late in ((1, True), (2, False), (1, True)):
        settled.settling([TEA])
        settled.settled(0, [(TEA, delivery_count)], is_done=True, is_late=is_late)
    assert settled.faults == []
    settled.settled(0, [(TEA, 1)], is_done=True, is_late=False)
    assert len(settled.faults) == 1


def test_a_record_that_is_delivered_while_it_is_locked_is_noticed() -> None:
    settled = Settled(LOCK_S)
    settled.delivered(0, TEA, 1, ASKED_S)
    settled.delivered(1, TEA, 1, ASKED_S)  # a kill ends the locks
    assert settled.give_up(1, [(TEA, 1)]) == ASKED_S + LOCK_S
    settled.delivered(1, TEA, 2, ASKED_S)
    assert settled.faults == []
    settled.delivered(1, TEA, 3, ASKED_S)
    assert len(settled.faults) == 1


def test_a_lock_that_has_ended_is_renewed_for_its_member_only() -> None:
    settled = Settled(LOCK_S)
    settled.delivered(0, TEA, 1, -LOCK_S)
    settled.delivered(0, TEA, 2, -LOCK_S)
    settled.renewed(0, [(TEA, 1)], ASKED_S)
    settled.delivered(0, TEA, 3, -LOCK_S)
    assert settled.faults == []
    settled.renewed(0, [(TEA, 3)], ASKED_S)
    settled.delivered(0, TEA, 4, -LOCK_S)
    assert len(settled.faults) == 1


def test_a_record_is_missing_until_it_is_done_or_may_be() -> None:
    settled = Settled(LOCK_S)
    ends = [0, 8]
    assert COFFEE in settled.missing(ends)
    settled.settling([COFFEE])
    assert COFFEE not in settled.missing(ends)
    settled.settled(0, [(COFFEE, 1)], is_done=False, is_late=False)
    assert COFFEE in settled.missing(ends)
    settled.settling([COFFEE])
    settled.settled(0, [(COFFEE, 1)], is_done=True, is_late=False)
    assert len(settled.missing(ends)) == 7
