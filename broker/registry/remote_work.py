"""Long work on schemas, in a process that walks batches (processes/walk_process.py).

The work is bounded by the steps that it counts (formats/effort.py), and by the time of the
processor, for what counts none. So other clients wait for it no longer than for a large batch, even
if the one that asked for it is gone.
"""

from __future__ import annotations

import asyncio
import io
import pickle
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from odradek.coordinator.registry.formats import Parsed
from odradek.coordinator.registry.formats.effort import TooManyStepsError
from odradek.coordinator.registry.schema_work import (
    TOO_COMPLICATED,
    Check,
    Form,
    Invalid,
    Work,
    outcome,
)
from odradek.protocol.batch_header import TooManyRecordsError
from odradek.protocol.compression import NO_LIMIT
from odradek.storage.record_walk import WalkLimits

# Of the processor, where the steps are limited to SHORT, and where they are not.
_SHORT_SECONDS = 1.0
_LONG_SECONDS = 60.0
_TURN_BYTES = 64 << 10


async def pickled(work: Work[object]) -> bytes:
    """Pickle work. A Check may have many versions: it is pickled in several turns of the loop."""
    data = io.BytesIO()
    pickler = pickle.Pickler(data)
    if isinstance(work, Check):
        pickler.dump(work._replace(versions=()))
        turn_end = _TURN_BYTES
        for version in work.versions:
            pickler.dump(version)
            if data.tell() > turn_end:
                turn_end = data.tell() + _TURN_BYTES
                await asyncio.sleep(0)
    else:
        pickler.dump(work)
    return data.getvalue()


def _unpickled(data: bytes) -> Work[object]:
    unpickler = pickle.Unpickler(io.BytesIO(data))
    work: Work[object] = unpickler.load()
    if isinstance(work, Check):
        versions = []
        with suppress(EOFError):
            while True:
                versions.append(unpickler.load())
        work = work._replace(versions=tuple(versions))
    return work


def do_work(data: bytes, *, limits: WalkLimits) -> object:
    """Return the result of the work, or Invalid.

    Raises TooManyRecordsError if it needs more than the limit; a letter counts as a step, too.
    """
    work = _unpickled(data)
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
