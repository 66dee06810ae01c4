"""Long work on schemas, in a process that walks batches (processes/walk_process.py)."""

from __future__ import annotations

import pickle

from odradek.coordinator.registry.formats import Parsed
from odradek.coordinator.registry.schema_work import Form, Work, outcome
from odradek.protocol.batch_header import TooManyRecordsError
from odradek.storage.record_walk import WalkLimits


def do_work(pickled: bytes, *, limits: WalkLimits) -> object:
    """Return the result of the work, or Invalid. A letter counts as a step.

    Raises TooManyRecordsError if that is more than the limit.
    """
    work: Work[object] = pickle.loads(pickled)
    if work.letters > limits.steps:
        raise TooManyRecordsError("the schemas are long")
    parsed: dict[Form, Parsed] = {}

    def parse(form: Form) -> Parsed:
        if form not in parsed:
            parsed[form] = form.parsed()
        return parsed[form]

    return outcome(work, parse)
