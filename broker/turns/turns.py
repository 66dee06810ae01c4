"""The queues in which the requests and answers of one event loop wait for their turn."""

import asyncio

from .full_collections import FullCollections
from .group_turns import GroupTurns
from .large_turns import LargeTurns
from .slices import SliceRunner, Surroundings
from .turn_queue import TurnQueue

# How long one turn of the event loop sends large answers.
SEND_S = 0.001
# How long one turn serves ShareFetches that records have woken.
SHARE_FETCHES_S = 0.001


class Turns:
    """`group`: requests of group members. `large`: large ones, and slices, which `slices` makes.

    `send`: answers that take long to send. `share_fetches`: those that waited, and that records
    have woken. `collections` are the garbage collector's long turns.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, surroundings: Surroundings) -> None:
        self.group = GroupTurns(loop)
        self.large = LargeTurns(loop)
        self.send = TurnQueue(loop, SEND_S)
        self.share_fetches = TurnQueue(loop, SHARE_FETCHES_S)
        self.collections = FullCollections()
        self.slices = SliceRunner(self.large, surroundings, self.collections)
