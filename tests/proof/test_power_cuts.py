"""A power cut anywhere in the life of a broker, and any part of what was not synced is lost."""

import logging
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.proof.claims import faults, recover
from tests.proof.images import Image, images, some_image
from tests.proof.journal import JournalledFiles
from tests.proof.life import Ledger, Life
from tests.proof.planted import PLANTED_IN_LIVES, planted
from tests.support.lengths import SEED, by_length

logger = logging.getLogger(__name__)

pytestmark = pytest.mark.slow

# Of so many images one is tried; each run takes others. Then again, of those of a recovery.
EACH = by_length(180, 1)
EACH_RECOVERED = by_length(8_000, 40)
EACH_OF_RECOVERY = by_length(150, 10)
SHOWN = 10
# A fault that is planted must be found by so many images.
PLANTED_IMAGES = 1_000
ONE = ["names are not synced"]  # in a short run


class Tried:
    """The images that were tried, and what was wrong with some."""

    def __init__(self, scratch: Path) -> None:
        self._root = scratch / "image"
        self._count = 0
        self._wrong: list[str] = []

    async def add(self, image: Image, ledger: Ledger, told: list[object], before: str = "") -> None:
        image.write(self._root)
        wrong = await faults(self._root, ledger, told)
        shutil.rmtree(self._root)
        self._count += 1
        if wrong:
            where = f"{before}after entry {image.at}, {image.what}:"
            self._wrong.append("\n    ".join([where, *wrong]))

    def check(self) -> None:
        logger.info("%d images", self._count)
        assert self._count
        shown = "\n".join(self._wrong[:SHOWN])
        assert not self._wrong, f"{len(self._wrong)} of {self._count} images:\n{shown}"


def some(found: Iterator[Image], each: int) -> Iterator[Image]:
    return islice(found, SEED % each, None, each)


async def lived(scratch: Path) -> tuple[Life, list[object]]:
    """A life, and what the broker told its clients."""
    root = scratch / "life"
    root.mkdir()
    life = Life(root)
    await life.run()
    return life, life.told


async def test_what_was_promised_before_a_power_cut_is_kept(scratch: Path) -> None:
    life, told = await lived(scratch)
    journal = life.files.journal
    tried, last = Tried(scratch), Counter[str]()
    for image in some(images(journal), EACH):
        await tried.add(image, life.ledger, told[: image.promises])
        last[type(journal[image.at - 1]).__name__] += 1
    logger.info("a journal of %d entries; images by their last one: %s", len(journal), dict(last))
    tried.check()


async def test_it_is_kept_if_the_power_goes_again_while_the_broker_recovers(scratch: Path) -> None:
    life, told = await lived(scratch)
    tried = Tried(scratch)
    for first in some(images(life.files.journal), EACH_RECOVERED):
        root = scratch / "recovered"
        first.write(root)
        files = JournalledFiles(root)
        await recover(root, files)
        shutil.rmtree(root)
        before = f"after entry {first.at}, {first.what}, and then in the recovery "
        for second in some(images(files.journal, files.first), EACH_OF_RECOVERY):
            await tried.add(second, life.ledger, told[: first.promises], before)
    tried.check()


@pytest.mark.parametrize("name", by_length(ONE, [*PLANTED_IN_LIVES]))
async def test_a_fault_that_is_planted_is_found(scratch: Path, name: str) -> None:
    with planted(PLANTED_IN_LIVES[name]):
        life, told = await lived(scratch)
        journal, chance = life.files.journal, random.Random(name)
        for number in range(1, PLANTED_IMAGES):
            # From the end on, where there is most to lose, and in turn anywhere.
            ends = len(journal) - number, chance.randrange(life.files.first + 1, len(journal))
            image = some_image(journal[: ends[number % 2]], chance)
            image.write(scratch / "image")
            wrong = await faults(scratch / "image", life.ledger, told[: image.promises])
            shutil.rmtree(scratch / "image")
            if wrong:
                logger.info("%s: image %d: %s", name, number, wrong[0])
                return
    raise AssertionError("not found")
