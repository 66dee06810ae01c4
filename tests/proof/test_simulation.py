"""Lives of a broker and its clients in simulated time, each decided by a seed.

A failing seed is named with its faults; `simulate(seed, directory).trace` says what happened. The
order in which Python iterates over sets of texts is a part of it: PYTHONHASHSEED is named too.
"""

import logging
import os
from pathlib import Path

import pytest

from tests.proof.planted import HARMLESS, PLANTED, planted
from tests.proof.simulation import simulate
from tests.support.lengths import LONG, SEED, by_length

logger = logging.getLogger(__name__)

SEEDS = by_length(8, 10_000)
SHOWN = 20
PLANTED_SEEDS = 100
ONE = ["a batch that is sent again is stored again"]  # in a short run


@pytest.mark.slow
def test_clients_find_what_they_were_promised_after_kills_and_power_cuts(scratch: Path) -> None:
    requests = 0
    for seed in range(SEED, SEED + SEEDS):
        world = simulate(seed, scratch / str(seed))
        requests += len(world.trace)
        hash_seed = os.environ.get("PYTHONHASHSEED", "random")
        assert not world.faults, "\n".join(
            [f"seed {seed}, PYTHONHASHSEED={hash_seed}:", *world.faults, *world.trace[-SHOWN:]]
        )
    logger.info("%d seeds, %d lines of traces", SEEDS, requests)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace(scratch: Path) -> None:
    first = simulate(SEED, scratch / "first")
    assert first.trace == simulate(SEED, scratch / "second").trace
    assert len(first.trace) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", by_length(ONE, [*PLANTED]))
def test_a_fault_that_is_planted_is_found(scratch: Path, name: str) -> None:
    for seed in range(PLANTED_SEEDS):
        with planted(PLANTED[name]):
            try:
                faults = simulate(seed, scratch / str(seed)).faults
            except Exception as error:  # noqa: BLE001 # the broker has raised it
                faults = [repr(error)]
        if faults:
            logger.info("%s: seed %d: %s", name, seed, faults[0])
            return
    raise AssertionError(f"not found by {PLANTED_SEEDS} seeds")


@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="long only: it shows what is not a fault")
@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_harmless_is_not_called_a_fault(scratch: Path, name: str) -> None:
    for seed in range(PLANTED_SEEDS):
        with planted(HARMLESS[name]):
            assert not simulate(seed, scratch / str(seed)).faults
