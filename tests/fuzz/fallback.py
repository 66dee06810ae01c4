"""The fuzzer where atheris is not installed: hypothesis mutates, our own tracer tells what is new.

It goes in rounds. In a round hypothesis takes inputs of the corpus and edits them; `target` makes
it climb towards inputs that go further. What reached something new joins the corpus for the next
round, not for this one: while hypothesis makes a failing input smaller, an example must mean the
same every time. Some hundred inputs a second, where atheris runs tens of thousands.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis import strategies as st

from tests.fuzz.coverage import Feature, features_of
from tests.fuzz.findings import Findings
from tests.fuzz.target import MAX_INPUT_BYTES, Target

ROUND = 200
_TEMPTING = [
    *(bytes([number]) for number in (0, 1, 2, 0x7F, 0x80, 0xFF)),
    *(number.to_bytes(2, "big", signed=True) for number in (-1, -2, 2**15 - 1, -(2**15))),
    *(number.to_bytes(4, "big", signed=True) for number in (-1, -2, 2**31 - 1, -(2**31))),
    *(number.to_bytes(8, "big", signed=True) for number in (-1, 2**63 - 1, -(2**63))),
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01",
]
_PIECE = st.one_of(st.sampled_from(_TEMPTING), st.binary(max_size=8))
_PLACE = st.integers(0, MAX_INPUT_BYTES)
# Where, how many bytes of the input go, and what comes instead.
_EDIT = st.tuples(_PLACE, st.sampled_from([0, 1, 2, 4, 8, 64]), _PIECE)
_ROUND_SETTINGS = settings(
    max_examples=ROUND,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    phases=[Phase.generate, Phase.target, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


class Effort(NamedTuple):
    """What a run did; `corpus` are the inputs that reach something of their own."""

    executions: int
    seconds: float
    corpus: list[bytes]
    features: int


class _Run:
    """The state between rounds."""

    def __init__(self, fuzzed: Target, findings: Findings, ends: float) -> None:
        self.executions = 0
        self.reached: set[Feature] = set()
        self.corpus: list[bytes] = []
        self.findings = findings
        self.ends = ends
        self._one_input = fuzzed.one_input

    def try_input(self, data: bytes) -> int:
        """Run one input, and keep it for later if it reached something new.

        Returns how many features it has. Raises what the target raised, once it is noted.
        """
        self.executions += 1
        try:
            features = features_of(self._one_input, data)
        except Exception as error:
            self.findings.add(data, error)
            raise
        if not features <= self.reached:
            self.reached |= features
            self.corpus.append(data)
        return len(features)

    def round(self, number: int) -> None:
        """Up to ROUND inputs made of the corpus as it is now."""
        pool = list(self.corpus) or [b""]

        @seed(number)
        @_ROUND_SETTINGS
        @given(st.integers(0, len(pool) - 1), st.lists(_EDIT, min_size=1, max_size=4))
        def run(origin: int, edits: list[tuple[int, int, bytes]]) -> None:
            if time.monotonic() < self.ends:
                target(float(self.try_input(edited(pool[origin], edits))))

        with suppress(Exception):  # it is among the findings
            run()


def fuzz(
    fuzzed: Target,
    findings: Findings,
    inputs: Iterable[bytes],
    seconds: float,
    *,
    start: int = 0,
    max_findings: int = 10,
) -> Effort:
    """Try `inputs`, then mutations, for that long or until so many kinds of failures are found.

    `start` is the seed of the first round.
    """
    began = time.monotonic()
    run = _Run(fuzzed, findings, began + seconds)
    for data in inputs:
        with suppress(Exception):
            run.try_input(data)
    number = start
    while time.monotonic() < run.ends and len(findings) < max_findings:
        run.round(number)
        number += 1
    return Effort(run.executions, time.monotonic() - began, run.corpus, len(run.reached))


def edited(data: bytes, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
    """`data` after each edit; places are taken modulo its length."""
    for place, dropped, piece in edits:
        at = place % (len(data) + 1)
        data = (data[:at] + piece + data[at + dropped :])[:MAX_INPUT_BYTES]
    return data
