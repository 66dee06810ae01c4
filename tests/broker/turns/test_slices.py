"""Work in slices gives way, keeps what belongs to it, and ends where it awaits something."""

import asyncio
import weakref
from contextlib import suppress
from functools import partial

import pytest
from greenlet import getcurrent, greenlet

from odradek.broker.turns import slices as slices_module
from odradek.broker.turns.full_collections import FullCollections
from odradek.broker.turns.large_turns import AT_ONCE_S, LargeTurns
from odradek.broker.turns.message_parts import Parts, parts_of
from odradek.broker.turns.slices import (
    LONG_SLICES,
    MAX_ITEMS,
    Result,
    SliceRunner,
    Slices,
    Surroundings,
    TooManyItemsError,
)
from odradek.coordinator.runtime.steps import free, sorted_in_steps
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionResponse,
    ProduceResponse,
    ProduceTopicResponse,
)
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.support.streams_members import subtopology, topology


@pytest.fixture(autouse=True)
def every_step_ends_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests see each step: a slice is over as soon as it has begun."""
    monkeypatch.setattr(slices_module, "SLICE_S", 0.0)


class Current:
    """The state of the broker that belongs to the request that runs."""

    def __init__(self) -> None:
        self.state: list[str] | None = None

    def enter(self, state: list[str] | None) -> None:
        assert self.state is None, "two requests run at once"
        self.state = [] if state is None else state

    def leave(self) -> list[str] | None:
        state, self.state = self.state, None
        return state


class Process:
    """A process with 100 blocks of memory at first, which counts its full collections."""

    def __init__(self) -> None:
        self.blocks = 100
        self.collected = 0
        self.collections = FullCollections(lambda: self.blocks, self._collect)

    def _collect(self) -> None:
        self.collected += 1


def runner(
    current: Current | None = None, collections: FullCollections | None = None
) -> SliceRunner:
    current = current or Current()
    turns = LargeTurns(asyncio.get_running_loop())
    surroundings = Surroundings(current.enter, current.leave)
    return SliceRunner(turns, surroundings, collections or FullCollections())


@pytest.mark.parametrize("count", [0, 1000, 2500])
def test_strings_are_sorted_in_steps(count: int) -> None:
    texts = {f"{number * 7919 % 10007}" for number in range(count)}
    assert sorted_in_steps(texts, lambda: None) == sorted(texts)


async def test_the_result_of_an_awaited_future_is_not_kept() -> None:
    class Large:
        pass

    async def made() -> Large:
        await asyncio.sleep(0)
        return Large()

    async def serve(slices: Slices) -> bool:
        large = await asyncio.ensure_future(made())
        kept = weakref.ref(large)
        del large
        slices.step()
        return kept() is not None

    assert not await runner().run(serve)


async def test_a_plain_function_gives_way_between_two_items() -> None:
    seen: list[str] = []

    def handle(name: str, slices: Slices) -> int:
        return sum(seen.append(f"{name}{item}") or item for item in slices.of([1, 2, 3]))

    async def serve(name: str, slices: Slices) -> int:
        return handle(name, slices)

    run = runner().run
    tasks = [run(lambda slices, name=name: serve(name, slices)) for name in "ab"]
    assert await asyncio.gather(*tasks) == [6, 6]
    assert seen == ["a1", "b1", "a2", "b2", "a3", "b3"]


async def test_work_that_needs_one_slice_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(slices: Slices) -> list[int]:
        return list(slices.of([1, 2]))

    monkeypatch.setattr(slices_module, "SLICE_S", 3600.0)
    begun = runner().begin(serve)
    assert isinstance(begun, Result)
    assert begun.value == [1, 2]


async def test_only_the_first_slice_runs_at_once_and_none_if_others_wait() -> None:
    seen: list[str] = []

    async def serve(name: str, slices: Slices) -> str:
        seen.extend(f"{name}{item}" for item in slices.of(range(2)))
        await asyncio.sleep(0)
        return name

    current = Current()
    turns = LargeTurns(asyncio.get_running_loop())
    begin = SliceRunner(turns, Surroundings(current.enter, current.leave), FullCollections()).begin
    begun = [begin(lambda slices, name=name: serve(name, slices)) for name in "abc"]
    assert not seen, "each step ends a slice, the first one too"
    assert all(isinstance(each, asyncio.Task) for each in begun)
    assert await asyncio.gather(*begun) == ["a", "b", "c"]


async def test_slices_that_run_at_once_take_half_of_the_time() -> None:
    turns = LargeTurns(asyncio.get_running_loop())
    now_s = at_once_s = 0.0
    while now_s < 1.0:
        if turns.may_run_now(now_s):
            turns.has_run(now_s, now_s + AT_ONCE_S / 4)
            at_once_s += AT_ONCE_S / 4
        now_s += AT_ONCE_S / 4
    assert at_once_s == pytest.approx(0.5, rel=0.02)


async def test_no_slice_runs_at_once_while_others_wait() -> None:
    turns = LargeTurns(asyncio.get_running_loop())
    assert turns.may_run_now(0.0)
    waiting = turns.next()
    assert not turns.may_run_now(0.0)
    await waiting
    assert turns.may_run_now(0.0)


async def test_a_turn_of_the_loop_runs_one_slice_however_many_wait() -> None:
    steps = 0
    per_turn: list[int] = []

    async def serve(slices: Slices) -> None:
        nonlocal steps
        for _ in slices.of(range(20)):
            steps += 1

    run = runner().run
    tasks = [run(serve) for _ in range(10)]
    while not all(task.done() for task in tasks):
        before = steps
        await asyncio.sleep(0)
        per_turn.append(steps - before)
    assert max(per_turn) == 1
    assert steps == 200


async def test_a_coroutine_can_await_between_its_slices() -> None:
    loop = asyncio.get_running_loop()

    async def serve(slices: Slices) -> list[int]:
        first = list(slices.of([1, 2]))
        answer: asyncio.Future[int] = loop.create_future()
        loop.call_later(0.001, answer.set_result, 3)
        with pytest.raises(ValueError, match="an error of what it awaits"):
            await failing()
        return [*first, await answer, *slices.of([4])]

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("an error of what it awaits")

    assert await runner().run(serve) == [1, 2, 3, 4]


async def test_a_task_of_its_own_does_not_give_way() -> None:
    async def rest(slices: Slices) -> list[int]:
        return list(slices.of([1, 2]))

    async def serve(slices: Slices) -> list[int]:
        return await asyncio.ensure_future(rest(slices))

    assert await runner().run(serve) == [1, 2]


async def test_what_belongs_to_a_request_is_there_in_its_slices_only() -> None:
    current = Current()

    async def serve(name: str, slices: Slices) -> list[str]:
        for item in slices.of(range(3)):
            assert current.state is not None
            current.state.append(f"{name}{item}")
        await asyncio.sleep(0)
        assert current.state is not None
        return current.state

    run = runner(current).run
    tasks = [run(lambda slices, name=name: serve(name, slices)) for name in "ab"]
    assert await asyncio.gather(*tasks) == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]
    assert current.state is None


async def test_an_error_in_a_slice_is_the_tasks() -> None:
    async def serve(slices: Slices) -> None:
        for item in slices.of(range(3)):
            if item == 2:
                raise KeyError("two")

    with pytest.raises(KeyError, match="two"):
        await runner().run(serve)


@pytest.mark.parametrize("turns", [1, 5, 6, 40])
async def test_a_cancelled_request_ends_where_it_awaits_something(turns: int) -> None:
    current = Current()
    done: list[int] = []
    waits_for = asyncio.get_running_loop().create_future()

    async def serve(slices: Slices) -> None:
        done.extend(slices.of(range(100)))
        try:
            await waits_for
        finally:
            for item in slices.of(range(100, 200)):
                done.append(item)
                if item == 150:
                    task.cancel()

    task = runner(current).run(serve)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert waits_for.cancelled()
    assert done == list(range(200))
    assert current.state is None


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancelled_task_ends_although_its_work_awaits_nothing(fails: bool) -> None:
    done: list[int] = []

    async def serve(slices: Slices) -> None:
        done.extend(slices.of(range(10)))
        if fails:
            raise KeyError

    async def serve_again_and_again() -> None:
        while True:
            with suppress(KeyError):
                await runner().run(serve)

    task = asyncio.ensure_future(serve_again_and_again())
    for _ in range(7):
        await asyncio.sleep(0)
    assert len(done) % 10, "it is amid its work"
    task.cancel()
    await asyncio.wait_for(asyncio.wait([task]), 100)
    assert task.cancelled()
    assert not len(done) % 10


async def test_stacks_are_used_again_and_hold_nothing_of_the_last_call() -> None:
    class Item:
        pass

    stacks: set[greenlet] = set()
    items: weakref.WeakSet[Item] = weakref.WeakSet()

    async def serve(fails: bool, slices: Slices) -> Item:
        stacks.add(getcurrent())
        item = Item()
        items.add(item)
        slices.step()
        if fails:
            raise ValueError
        return item

    run = runner().run
    for _ in range(3):
        tasks = [run(partial(serve, fails)) for fails in (False, True)]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in ended] == [Item, ValueError]
        del tasks, ended
    assert len(stacks) == 2
    await asyncio.sleep(0)  # the loop holds the last task until its turn is over
    assert not items


async def test_a_dict_may_change_while_it_is_iterated() -> None:
    items = {number: number for number in range(3)}

    async def serve(slices: Slices) -> list[int]:
        seen = []
        for key in slices.of(items):
            seen.append(key)
            items[key + 100] = key
        return seen

    assert await runner().run(serve) == [0, 1, 2]


async def test_too_many_items_are_refused() -> None:
    async def serve(slices: Slices) -> None:
        slices.count(MAX_ITEMS)
        slices.count(1)

    with pytest.raises(TooManyItemsError):
        await runner().run(serve)


async def test_a_long_request_puts_off_full_collections_until_it_ends() -> None:
    process = Process()
    process.collections.collect_if_due()

    async def serve(slices: Slices) -> None:
        for item in slices.of(range(50)):
            process.blocks = 100 if item < LONG_SLICES else 151
            process.collections.collect_if_due()

    work = runner(collections=process.collections)
    await asyncio.gather(work.run(serve), work.run(serve))
    assert process.collected == 0
    process.collections.collect_if_due()
    assert process.collected == 1


async def test_a_long_request_that_waits_does_not_put_off_collections() -> None:
    process = Process()
    process.collections.collect_if_due()
    waits_for: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def serve(slices: Slices) -> None:
        for _ in slices.of(range(50)):
            pass
        await waits_for

    task = runner(collections=process.collections).run(serve)
    for _ in range(500):
        await asyncio.sleep(0)
    process.blocks = 151
    process.collections.collect_if_due()
    assert process.collected == 1
    waits_for.set_result(None)
    await task


async def test_the_items_of_a_message_are_freed_in_parts() -> None:
    partitions = [ListOffsetsPartition(partition_index=i, timestamp=i) for i in range(1000)]
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name=f"t{i}", partitions=partitions) for i in (1, 2)],
    )

    async def serve(slices: Slices) -> int:
        parts = parts_of(request, slices)
        kept = {id(item) for part in parts for item in part}
        assert kept == {id(each) for each in (*request.topics, *partitions)}
        assert max(map(len, parts)) < 300
        free(slices.step, parts)
        return len(parts)

    assert await runner().run(serve) == 0
    assert len(partitions) == 1000, "the message itself stays as it is"


async def test_items_inside_of_a_struct_are_freed_in_parts_too() -> None:
    sent = topology(*(subtopology(str(number), "t") for number in range(1000)))
    request = StreamsGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, endpoint_information_epoch=0, topology=sent
    )

    async def serve(slices: Slices) -> Parts:
        return parts_of(request, slices)

    parts = await runner().run(serve)
    assert {id(item) for part in parts for item in part} >= set(map(id, sent.subtopologies))
    assert max(map(len, parts)) < 300


async def test_structs_without_arrays_are_freed_with_the_items_that_have_them() -> None:
    answers = [ProducePartitionResponse(index=index, base_offset=0) for index in range(1000)]
    response = ProduceResponse(
        responses=[ProduceTopicResponse(name="orders", partition_responses=answers)]
    )

    async def serve(slices: Slices) -> Parts:
        return parts_of(response, slices)

    assert len(await runner().run(serve)) < 10
