"""Lives of a broker and its clients in simulated time, each decided by a seed.

A failing seed is named with its faults; `simulate(seed, directory).trace` says what happened. The
order in which Python iterates over sets of texts is a part of it: PYTHONHASHSEED is named too.
"""

import logging
import os
from pathlib import Path

import pytest

from tests.proof.simulation import simulate
from tests.support.lengths import SEED, by_length

logger = logging.getLogger(__name__)

SEEDS = by_length(12, 10_000)
SHOWN = 20


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
    assert first.trace != simulate(SEED + 1, scratch / "third").trace
