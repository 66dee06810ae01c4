"""Long work on schemas, in a process that walks batches (processes/walk_process.py).

The work is bounded by the steps that it counts (formats/effort.py), and by the time of the
processor, for what counts none. So other clients wait for it no longer than for a large batch, even
if the one that asked for it is gone.
"""

from __future__ import annotations

import io
import pickle
import signal
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from odradek.broker.processes.record_walks import RecordWalks
from odradek.broker.turns.slices import SliceRunner, Slices
from odradek.coordinator.registry.formats import Parsed
from odradek.coordinator.registry.formats.effort import TooManyStepsError
from odradek.coordinator.registry.schema_work import TOO_COMPLICATED, Form, Invalid, Work, outcome
from odradek.coordinator.runtime.steps import Step
from odradek.protocol.batch_header import TooManyRecordsError
from odradek.protocol.compression import NO_LIMIT
from odradek.storage.record_walk import WalkLimits

# Of the processor, where the steps are limited to SHORT, and where they are not.
_SHORT_SECONDS = 1.0
_LONG_SECONDS = 60.0


async def in_process(
    work: Work[object], walks: RecordWalks, slices: SliceRunner, client: Hashable
) -> object:
    """Have work done, and return its result, or Invalid. Raises ApiError."""

    async def pickled(slices: Slices) -> bytes:
        file = io.BytesIO()
        _Pickler(file, slices.step).dump(work)
        return file.getvalue()

    return await walks.run(do_work, await slices.run(pickled), client)


class _Pickler(pickle.Pickler):
    """Gives way before each object. Ten megabytes of texts take 8 ms."""

    def __init__(self, file: io.BytesIO, step: Step) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._step = step

    def persistent_id(self, _: Any) -> None:
        self._step()


def do_work(pickled: bytes, *, limits: WalkLimits) -> object:
    """Return the result of the work, or Invalid.

    Raises TooManyRecordsError if it needs more than the limit; a letter counts as a step, too.
    """
    work: Work[object] = pickle.loads(pickled)
    is_short = limits.steps != NO_LIMIT
    if work.letters > limits.steps:
        raise TooManyRecordsError("the schemas are long")
    parsed: dict[Form, Parsed] = {}

    def parse(form: Form) -> Parsed:
        if form not in parsed:
            parsed[form] = form.parsed()
        return parsed[form]

    try:
        with _limited_time(_SHORT_SECONDS if is_short else _LONG_SECONDS):
            return outcome(work, parse, steps=limits.steps)
    except TooManyStepsError:
        if is_short:
            raise TooManyRecordsError("the schemas are complicated") from None
        return Invalid(TOO_COMPLICATED)


@contextmanager
def _limited_time(seconds: float) -> Iterator[None]:
    """Raise TooManyStepsError in the body when it has used this much processor time."""

    if not hasattr(signal, "setitimer"):  # Windows: the number of steps is the only limit
        yield
        return

    def end(*_: object) -> None:
        raise TooManyStepsError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
