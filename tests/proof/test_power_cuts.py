"""A power cut anywhere in the life of a broker, and any part of what was not synced is lost."""

import logging
import shutil
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from tests.proof.claims import faults
from tests.proof.images import images
from tests.proof.journal import Mark
from tests.proof.life import Life
from tests.support.lengths import LONG, SEED

logger = logging.getLogger(__name__)

pytestmark = pytest.mark.slow

# In `make test`, one of so many images; each run of it takes others.
EACH = 60
SHOWN = 10


async def test_what_was_promised_before_a_power_cut_is_kept(scratch: Path) -> None:
    home = scratch / "life"
    home.mkdir()
    life = Life(home)
    await life.run()
    journal = life.files.journal
    told = [entry.what for entry in journal if isinstance(entry, Mark)]
    found: list[str] = []
    count, kinds = 0, Counter[str]()
    step = 1 if LONG else EACH
    for image in islice(images(journal), SEED % step, None, step):
        root = scratch / "image"
        image.write(root)
        wrong = await faults(root, life.ledger, told[: image.promises])
        shutil.rmtree(root)
        count += 1
        kinds[type(journal[image.at - 1]).__name__] += 1
        if wrong:
            found.append("\n    ".join([f"after entry {image.at}, {image.what}:", *wrong]))
    logger.info("%d images of %d entries, by the last one: %s", count, len(journal), dict(kinds))
    assert not found, f"{len(found)} of {count} images: " + "\n".join(found[:SHOWN])
