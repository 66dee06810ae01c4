"""Serves a request in slices, between which the event loop serves other connections.

A request may have a hundred thousand entries, and a short one may ask about everything the broker
has. Apache Kafka loses one of its threads to such a request. Here it would stop every client. So:

- Such a request is served by a coroutine in a task of its own. It is decoded, handled and encoded
  in slices of at most SLICE_S; what takes longer between two steps is a fault.
- A slice ends in `Slices.step`. The decoder and the encoder call it for each item of an array, and
  a handler for each entry that it serves (RequestContext.sliced). Nothing else ends a slice, so all
  that is done for one entry is done in one turn: nothing comes between a decision, its record in a
  log, and the change of state by that record.
- A step does not end a request that is cancelled: it ends where it awaits something, or when its
  work is done. So a request that changes one entry after the other is not left half done when its
  client closes.
- What a handler has looked up before a step may have changed after it. It looks up the state of an
  entry when it serves the entry.
- A first slice may run as soon as its request arrives, so a request that needs one slice costs
  little more than one that is served at once.
- LargeTurns lets one slice run in each turn of the loop. Any number of such requests together
  delay others by one slice.

How a plain function can be interrupted: it runs in a greenlet, a call stack of its own. `step`
switches back to the stack of the event loop, and the next slice continues inside `step`. So a
handler is the same code whether its request is small, and served at once, or not. A request that is
served at once has no Slices, and pays nothing.

The limits: MAX_ITEMS bounds the objects that a request can make the broker hold. Objects are freed
in slices too (message_parts.py), because freeing many of them takes as long as making them; a
request that needed one slice has few. A full garbage collection looks at all objects in one turn,
so there is none while a request has many.

docs/decisions.md says what was rejected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from functools import partial
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from .full_collections import FullCollections, collect_young
from .large_turns import LargeTurns

SLICE_S = 0.00025
# A request with more items in its arrays is refused. The largest requests of clients name each
# partition of a broker.
MAX_ITEMS = 100_000
# A request that takes this many slices without waiting may hold many objects.
LONG_SLICES = 20
# At most this many stacks are kept for the next requests.
_IDLE_STACKS = 16

T = TypeVar("T")


class TooManyItemsError(Exception):
    """A request has more than MAX_ITEMS items."""


class Surroundings(NamedTuple):
    """Saves what the broker keeps about the request that runs, while other requests run.

    `leave` is called at the end of a slice. It returns that state, and takes it away. `enter` puts
    it back when the next slice begins; for the first slice it gets None. A node's state is the
    fsyncs that the response waits for, and the attempt to read without the disk (node.py).
    """

    enter: Callable[[Any], None]
    leave: Callable[[], Any]


class Slices:
    """The slices of one request, seen from inside."""

    def __init__(self, surroundings: Surroundings) -> None:
        # Called when a slice begins and ends: a meter of quotas measures the time in between.
        self.on_begin: Callable[[], object] | None = None
        self.on_end: Callable[[], object] | None = None
        self._surroundings = surroundings
        self._state: Any = None
        self._begun = 0
        self._ends_s = 0.0
        self._items = 0

    @property
    def is_first(self) -> bool:
        """Whether one slice was enough until now."""
        return self._begun <= 1

    def step(self) -> None:
        """End the slice if its time is over. Other requests are served meanwhile."""
        if monotonic() >= self._ends_s:
            _give_way()

    def count(self, items: int) -> None:
        """Count items of the request, and end the slice if its time is over.

        Raises TooManyItemsError.
        """
        self._items += items
        if self._items > MAX_ITEMS:
            raise TooManyItemsError(f"it has more than {MAX_ITEMS} items")
        if monotonic() >= self._ends_s:
            _give_way()

    def of(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate with a step before each item.

        A dict or a set may change between two steps, so a copy of it is iterated. A caller whose
        dict nobody else knows gives its iterator: a copy of 100,000 items takes 20 ms.
        """
        if not isinstance(items, (list, Iterator)):
            items = list(items)
        for item in items:
            if monotonic() >= self._ends_s:
                _give_way()
            yield item

    def begin(self) -> None:
        """Begin a slice."""
        self._begun += 1
        self._ends_s = monotonic() + SLICE_S
        self._surroundings.enter(self._state)
        if self.on_begin is not None:
            self.on_begin()

    def end(self) -> None:
        """End a slice."""
        if self.on_end is not None:
            self.on_end()
        self._state = self._surroundings.leave()


def _give_way() -> None:
    stack_of_loop = getcurrent().parent
    if stack_of_loop is not None:  # else a task of its own runs, which the handler has started
        stack_of_loop.switch()


class _Stack:
    """A call stack beside that of the loop, for one call at a time.

    It is reused: making one takes 20 µs, because the interpreter asks the system for memory.
    Switching to it takes 0.4 µs.
    """

    def __init__(self) -> None:
        self.is_busy = False
        self._call: tuple[Callable[[Any], Any], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        self._greenlet = greenlet(self._run)
        self._greenlet.switch()

    def call(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Begin a call. It is busy until the call has ended; meanwhile it gives way."""
        self._call = function, argument
        self.is_busy = True
        self._greenlet.switch()

    def go_on(self) -> None:
        """Continue the call."""
        self._greenlet.switch()

    def throw(self, error: BaseException) -> None:
        """Continue the call with an error where it gave way."""
        self._greenlet.throw(error)

    def result(self) -> Any:
        """Of the call. Raises what it has raised."""
        result, error = self._result, self._error
        self._result = self._error = None
        if error is None:
            return result
        try:
            raise error
        finally:
            del error  # its traceback holds this frame

    def _run(self) -> None:
        while True:
            _give_way()  # until there is a call
            self._serve()

    def _serve(self) -> None:
        """Make the call. Nothing here refers to it afterwards."""
        assert self._call is not None
        function, argument = self._call
        self._call = None
        try:
            self._result = function(argument)
        except GreenletExit:  # the loop has ended, and nobody will continue the call
            raise
        except BaseException as error:  # noqa: BLE001 # raised by `result`
            self._error = error
        finally:
            del argument  # an error that is raised again and this frame would hold each other
        self.is_busy = False


# Makes the coroutine that serves a request.
Make = Callable[[Slices], Coroutine[Any, Any, T]]


class SliceRunner:
    """Runs coroutines whose work gives way at each step."""

    def __init__(
        self, turns: LargeTurns, surroundings: Surroundings, collections: FullCollections
    ) -> None:
        self._turns = turns
        self._surroundings = surroundings
        self._collections = collections
        self._idle: list[_Stack] = []

    def run(self, make: Make[T]) -> asyncio.Task[T]:
        """Run the coroutine that `make` returns. Cancelling the task ends it at its next await."""
        return asyncio.ensure_future(self._work(make))

    def begin(self, make: Make[T]) -> Result[T] | asyncio.Task[T]:
        """Run the coroutine's first slice now if this turn has time for it, and the rest later.

        Returns the result if nothing is left, or a task as `run`. Raises what the first slice
        raises.
        """
        began_s = monotonic()
        if not self._turns.may_run_now(began_s):
            return self.run(make)
        steps = self._work(make).begin_now()
        try:
            first = next(steps)
        except StopIteration as end:
            return Result(end.value)
        finally:
            self._turns.has_run(began_s, monotonic())
        return asyncio.ensure_future(_Begun(steps, first))

    def _work(self, make: Make[T]) -> _InSlices[T]:
        slices = Slices(self._surroundings)
        return _InSlices(self._turns, slices, make, self._collections, self._idle)


class Result(NamedTuple, Generic[T]):
    """The result of work that is complete."""

    value: T


class _Begun(Awaitable[T]):
    """The rest of work that has begun, and waits for a future now."""

    def __init__(self, steps: Generator[Any, Any, T], first: Any) -> None:
        self._steps = steps
        self._first = first

    def __await__(self) -> Generator[Any, Any, T]:
        waits_for = self._first
        while True:
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 # passed on to the work
                resume = partial(self._steps.throw, error)
            else:
                resume = partial(next, self._steps)
            try:
                waits_for = resume()
            except StopIteration as end:
                done: T = end.value
                return done


class _InSlices(Awaitable[T]):
    """An awaitable that runs a coroutine, and each step of it on a stack of its own."""

    def __init__(
        self,
        turns: LargeTurns,
        slices: Slices,
        make: Make[T],
        collections: FullCollections,
        idle: list[_Stack],
    ) -> None:
        self._turns = turns
        self._slices = slices
        self._make = make
        self._collections = collections
        self._idle = idle
        self._begins_now = False
        self._is_cancelled = False

    def begin_now(self) -> Generator[Any, Any, T]:
        """Like `__await__`, but the first slice does not wait for a turn."""
        self._begins_now = True
        return self.__await__()

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine = self._make(self._slices)
        resume: Callable[[Any], Any] = coroutine.send
        argument: Any = None
        try:
            while True:
                is_complete, result = yield from self._advance(coroutine, resume, argument)
                if is_complete:
                    done: T = result
                    return done
                if self._is_cancelled:
                    self._is_cancelled = False
                    # Then it does not wait for what it awaits now. Unless the cancellation was that
                    # of a timeout which has ended since.
                    if _own_task().cancelling():
                        _own_task().cancel()
                try:
                    yield result  # a future, for the task that awaits this
                    resume, argument = coroutine.send, None
                except BaseException as error:  # noqa: BLE001 # passed on to the coroutine
                    resume, argument = coroutine.throw, error
                result = None  # a future refers to its result, which may be large
        finally:
            del argument  # an error that is raised again and this frame would hold each other
            if self._is_cancelled and _own_task().cancelling():
                # The work has ended, but the tasks that await it have not.
                raise asyncio.CancelledError

    def _advance(
        self, coroutine: Coroutine[Any, Any, T], resume: Callable[[Any], Any], argument: Any
    ) -> Generator[Any, Any, tuple[bool, Any]]:
        """Run the coroutine to its next await. Returns the future, or the result and True."""
        stack = self._idle.pop() if self._idle else _Stack()
        go_on: Callable[[], None] = partial(stack.call, resume, argument)
        slice_count = 0
        try:
            while True:
                try:
                    yield from self._turn()
                except asyncio.CancelledError:
                    self._is_cancelled = True
                except BaseException as error:  # noqa: BLE001 # passed on to the coroutine
                    throws = stack.throw if stack.is_busy else partial(stack.call, coroutine.throw)
                    go_on = partial(throws, error)
                slice_count += 1
                if slice_count == LONG_SLICES:
                    self._collections.put_off()
                self._slices.begin()
                try:
                    go_on()
                finally:
                    self._slices.end()
                if slice_count > 1:
                    collect_young()
                if not stack.is_busy:
                    return _outcome(stack)
                go_on = stack.go_on
        finally:
            if not stack.is_busy and len(self._idle) < _IDLE_STACKS:
                self._idle.append(stack)
            del argument, resume, go_on  # see __await__
            if slice_count >= LONG_SLICES:
                self._collections.allow()

    def _turn(self) -> Generator[Any, Any, None]:
        """Wait for a turn of the loop."""
        if self._begins_now:
            self._begins_now = False
            return
        yield from self._turns.next()


def _own_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _outcome(stack: _Stack) -> tuple[bool, Any]:
    """The future that the coroutine awaits, or its result and True."""
    try:
        return False, stack.result()
    except StopIteration as end:
        return True, end.value
