"""The queues in which the requests of one event loop wait for their turn."""

import asyncio

from .group_turns import GroupTurns
from .large_turns import LargeTurns
from .slices import SliceRunner, Surroundings


class Turns:
    """`group`: requests of group members. `large`: large ones, and slices, which `slices` makes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, surroundings: Surroundings) -> None:
        self.group = GroupTurns(loop)
        self.large = LargeTurns(loop)
        self.slices = SliceRunner(self.large, surroundings)
