"""Replies that wait, and the turns in which they are released."""

import asyncio

import pytest

from odradek.coordinator.runtime.parked_replies import RELEASED_PER_TURN, Parked, ReleaseQueue


@pytest.fixture
async def queue() -> ReleaseQueue:
    return ReleaseQueue(asyncio.get_running_loop())


async def test_a_reply_that_is_given_at_once_need_not_be_waited_for(queue: ReleaseQueue) -> None:
    parked: Parked[str] = Parked(queue)
    parked("now")
    assert parked.result() == "now"


async def test_few_replies_are_released_in_the_turn_that_gives_them(queue: ReleaseQueue) -> None:
    futures = park(queue, 3)
    assert [future.done() for future in futures] == [True] * 3


async def test_of_many_replies_each_turn_releases_its_part_in_order(queue: ReleaseQueue) -> None:
    futures = park(queue, 2 * RELEASED_PER_TURN + 1)
    for released in (RELEASED_PER_TURN, 2 * RELEASED_PER_TURN, 2 * RELEASED_PER_TURN + 1):
        assert [future.done() for future in futures] == [
            number < released for number in range(len(futures))
        ]
        await asyncio.sleep(0)
    assert [await future for future in futures] == list(range(len(futures)))


async def test_a_turn_that_has_released_enough_leaves_later_replies_to_the_next(
    queue: ReleaseQueue,
) -> None:
    park(queue, RELEASED_PER_TURN)
    (late,) = park(queue, 1)
    assert not late.done()
    await asyncio.sleep(0)
    assert late.done()


async def test_a_client_that_went_away_meanwhile_is_passed_over(queue: ReleaseQueue) -> None:
    futures = park(queue, RELEASED_PER_TURN + 2)
    futures[-2].cancel()
    await asyncio.sleep(0)
    assert await futures[-1] == RELEASED_PER_TURN + 1


def park(queue: ReleaseQueue, count: int) -> "list[asyncio.Future[int]]":
    """Replies that are waited for, and then all given in one turn: each its number."""
    replies: list[Parked[int]] = [Parked(queue) for _ in range(count)]
    futures = [reply.result() for reply in replies]
    for number, reply in enumerate(replies):
        reply(number)
    return futures  # type: ignore[return-value] # nothing was given when they were asked for
