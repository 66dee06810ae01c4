"""An error at any call to the disk: nothing that was acknowledged is lost, and nothing else stops.

A life is lived once without errors, and the directory is kept as it was before each act. Then an
act is played again for each call in it, and that call fails. Then the broker starts on what is
left, without errors, and all claims must hold.
"""

import asyncio
import logging
import random
import shutil
from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.disk import log_sync
from tests.proof.claims import faults
from tests.proof.failing import MAY_FAIL, FailingFiles, Fault
from tests.proof.images import last_image
from tests.proof.life import ACTS, Act, Ledger, Life
from tests.proof.life_over_errors import LifeOverErrors
from tests.proof.planted import PLANTED_ON_DISKS, planted
from tests.support.lengths import LONG, SEED, by_length

logger = logging.getLogger(__name__)

pytestmark = pytest.mark.slow

NEVER = -1
SHOWN = 10
PLANTED_CALLS = 100  # of each act
ONE = ["the rest of a short write is left out"]  # in a short run


class Before(NamedTuple):
    """All that an act begins with, and how many calls it makes, by their names."""

    act: Act
    root: Path
    ledger: Ledger
    told: list[object]
    calls: Counter[str]

    def numbers(self, fault: Fault) -> Iterable[int]:
        """The calls to try. How many there are differs by a few from one time to the next."""
        if LONG:
            return count()
        calls = sum(self.calls[name] for name in MAY_FAIL[fault])
        chance = random.Random(f"{SEED} {fault.name} {self.act.__name__}")
        return chance.sample(range(calls), 1)


async def lived(scratch: Path) -> list[Before]:
    """What each act of a life begins with."""
    root = scratch / "life"
    root.mkdir()
    files = FailingFiles(root, Fault.EIO, NEVER)
    life = Life(root, files)
    acts = []
    for act in ACTS:
        before = scratch / f"before-{act.__name__}"
        shutil.copytree(root, before)
        ledger, told, calls = deepcopy(life.ledger), life.told, Counter(files.calls)
        await life.play(act)
        acts.append(Before(act, before, ledger, told, files.calls - calls))
    return acts


@pytest.fixture(scope="module")
def acts(tmp_path_factory: pytest.TempPathFactory) -> list[Before]:
    return asyncio.run(lived(tmp_path_factory.mktemp("acts")))


async def played(before: Before, fault: Fault, at: int, root: Path) -> tuple[FailingFiles, str]:
    """Play an act with a fault at a call; return what should not have been, in lines."""
    shutil.copytree(before.root, root)
    files = FailingFiles(root, fault, at)
    life = LifeOverErrors(root, files, before.ledger)
    await life.play(before.act)
    wrong = life.wrong
    files.end_process()
    if fault in (Fault.LOST, Fault.LOST_SIZE):
        shutil.rmtree(root)
        last_image(files.journal).write(root)
    if files.failed is not None:
        try:
            wrong += await faults(root, life.ledger, [*before.told, *life.told])
        except Exception as error:  # noqa: BLE001 # whatever it is: a start should be clean
            wrong.append(f"afterwards: {error!r}")
    shutil.rmtree(root)
    if not wrong:
        return files, ""
    call = f"{before.act.__name__}, {fault.name} at call {at}, {files.failed}, end: {life.end}"
    return files, "\n    ".join([call, *wrong])


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
async def test_an_error_at_a_call_costs_nothing_that_was_acknowledged(
    scratch: Path, acts: list[Before], fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_sync, "RETRY_SECONDS", 0.01)
    wrong: list[str] = []
    tried = Counter[str]()
    for before in acts:
        for at in before.numbers(fault):
            files, text = await played(before, fault, at, scratch / "played")
            if files.failed is None:
                break
            tried[files.failed[0]] += 1
            if text:
                wrong.append(text)
    logger.info("%s at %d calls: %s", fault.name, tried.total(), dict(tried))
    shown = "\n".join(wrong[:SHOWN])
    assert not wrong, f"{len(wrong)} of {tried.total()} calls:\n{shown}"


@pytest.mark.parametrize("name", by_length(ONE, [*PLANTED_ON_DISKS]))
async def test_a_fault_that_is_planted_is_found(
    scratch: Path, acts: list[Before], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_sync, "RETRY_SECONDS", 0.01)
    fault, changes = PLANTED_ON_DISKS[name]
    chance = random.Random(name)
    tried = 0
    for before in acts[::-1]:
        calls = range(sum(before.calls[each] for each in MAY_FAIL[fault]))
        for at in chance.sample(calls, min(PLANTED_CALLS, len(calls))):
            tried += 1
            with planted(changes):
                _, text = await played(before, fault, at, scratch / "played")
            if text:
                logger.info("%s: call %d: %s", name, tried, text)
                return
    raise AssertionError(f"not found by {tried} calls")
