"""A broker and its clients in simulated time, killed and started again, by a seed.

Clients know what they have sent and what they were told. A kill leaves what the process had done
to its files; a power cut leaves a part of it (images.py). Then a new broker starts on what is left,
and the clients go on as real ones do: they send again what was not answered. All topics are synced
before a request is answered, so:

- What was acknowledged is there, at the offset that was told, or in the compacted topic a newer
  record of its key. A record is there once, although it
  may have been sent several times, and the records of a producer are in the order of its numbers.
- Of a transaction all records are read, or none; as its end says, if that was acknowledged.
- What a reader of committed records got is committed, and still there.
- A group's offset is the last one that was acknowledged, or one that was sent after it.
- A topic that was created is there, one that was deleted is not.
- No partition belongs to two members of a group at once, or in one generation of a classic group.
- A record that a share group has accepted is not delivered again.
- Clients that are silent lose what they had: at the end no group has members, and no transaction is
  open.
- No request gets an error but those after which clients try again.
"""

import asyncio
import os
import random
from pathlib import Path
from unittest import mock

from odradek.broker.startup.preflight import RefusedToStartError
from odradek.protocol.errors import ErrorCode
from odradek.storage.data_directory import DirectoryError

from .expectations import check
from .life import GROUP
from .simulated_clients import (
    administrator,
    cleaner,
    committing_consumer,
    create,
    find_coordinator,
    member,
    mover,
    producer,
    reader,
    transactional_producer,
)
from .simulated_groups import classic_member, share_member
from .simulated_loop import NoThreads, StalledError
from .world import COMPACTED, TOPIC, World

LIVES = 3
LIFE_S = 20.0  # at most
MEMBERS = 3
CLEANED = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "0",
    "delete_retention_ms": "0",
}
# After this, all open transactions have timed out.
LAST_S = 10.0


def simulate(seed: int, scratch: Path) -> World:
    """Run some lives. The same seed gives the same trace, in processes of one PYTHONHASHSEED.

    That the broker does not start, or somebody waits for ever, is a fault, too.
    """
    world = World(seed, scratch)
    state = random.getstate()
    random.seed(seed)
    asyncio.set_event_loop(world.loop)
    with (
        mock.patch.object(os, "urandom", world.random.randbytes),
        mock.patch("odradek.storage.log_manager.ThreadPoolExecutor", NoThreads),
        mock.patch("odradek.broker.turns.slices.monotonic", world.loop.time),
        mock.patch("odradek.broker.turns.group_slices.monotonic", world.loop.time),
    ):
        try:
            world.loop.run_until_complete(_run(world))
        except (StalledError, TimeoutError, DirectoryError, RefusedToStartError) as error:
            world.fault(f"{type(error).__name__}: {error}")
        finally:
            world.loop.cancel_all()
            random.setstate(state)
            asyncio.set_event_loop(None)
            world.loop.close()
    return world


async def _run(world: World) -> None:
    world.begin(None)
    client = world.connect("admin")
    assert await create(client, TOPIC) is ErrorCode.NONE
    assert await create(client, COMPACTED, **CLEANED) is ErrorCode.NONE
    await find_coordinator(client, 0, GROUP)
    await find_coordinator(client, 1, "shop")
    clients = [
        asyncio.ensure_future(each)
        for each in (
            producer(world, "a"),
            producer(world, "b"),
            producer(world, "c", COMPACTED, (b"x", b"y", b"z")),
            transactional_producer(world, "shop"),
            transactional_producer(world, "bank"),
            committing_consumer(world),
            reader(world),
            administrator(world),
            cleaner(world),
            mover(world),
            *(member(world, f"m{number}") for number in range(MEMBERS)),
            *(share_member(world, f"s{number}") for number in range(2)),
            *(classic_member(world, f"c{number}") for number in range(2)),
        )
    ]
    for _ in range(LIVES):
        await world.pause(LIFE_S)
        world.begin(await world.end())
    await world.pause(LIFE_S)
    world.is_over = True
    for each in clients:
        await each
    await asyncio.sleep(LAST_S)
    await check(world)
    await world.stop()
