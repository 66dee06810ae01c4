"""A broker in simulated time, and what its clients know of it."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.periodic_tasks import PeriodicTasks, periodic_tasks_of
from odradek.broker.producing.single_batch import SingleBatches
from odradek.broker.requests.answer import SlicedAnswer
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.security.session import Session
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.schema import Message
from tests.support.wire import request_frame

from .images import Image, last_image, some_image
from .journal import JournalledFiles
from .life import config_of, stop
from .simulated_loop import SimulatedLoop

Response = TypeVar("Response", bound=Message)

TOPIC = "kept"
COMPACTED = "cleaned"
PARTITIONS = 2
START_MS = 1_700_000_000_000
LATENCY_S = 0.005
CUT_PERCENT = 3  # of the requests: the connection ends before or after they are served
KILLS = 0.3  # the others are power cuts
CLOCK_JUMP_MS = 3_600_000
SESSION_MS = 6_000

SETTINGS = {
    "log.message.timestamp.after.max.ms": "9223372036854775807",  # the clock jumps
    "log.initial.task.delay.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": str(SESSION_MS),
    "group.share.session.timeout.ms": str(SESSION_MS),
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}

# What a client tries again after, with a new connection or without.
RETRIED: Container[ErrorCode] = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class Place(NamedTuple):
    """A partition of the topic."""

    topic: str
    partition: int


class ConnectionCutError(Exception):
    """The client does not know whether its request was served."""


class Transaction:
    """`end` is None while none was asked for; `is_told` if the broker has confirmed it."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.end: bool | None = None
        self.is_told = False


class Sent(NamedTuple):
    """Where a value was sent, and by which producer; the numbers of each grow."""

    place: Place
    producer: str
    number: int
    key: bytes = b"k"


class Known:
    """What the clients have sent, and what they were told."""

    def __init__(self) -> None:
        self.sent: dict[bytes, Sent] = {}
        self.acknowledged: defaultdict[Place, dict[int, bytes]] = defaultdict(dict)
        self.read: defaultdict[Place, dict[int, bytes | None]] = defaultdict(dict)
        """The committed values that a reader has got, by their offsets."""
        self.transactions: list[Transaction] = []
        self.offsets_sent: set[int] = set()
        self.offset_told = -1
        self.topics: dict[str, bool | None] = {}
        """Whether a topic is there; None: it is about to be created or deleted."""
        self.accepted: defaultdict[Place, set[int]] = defaultdict(set)
        """The offsets that the share group has accepted, as the broker has said."""
        self.classic_owners: dict[tuple[int, int], str] = {}
        """The member of the classic group that has a partition, by generation and partition."""
        self.owners: dict[str, tuple[float, set[tuple[bytes, int]]]] = {}
        """The partitions of each member of the group, and since when, in seconds, it knows that."""


class World:
    """The broker of now, its clients, and the faults that were found."""

    def __init__(self, seed: int, scratch: Path) -> None:
        self.loop = SimulatedLoop(seed)
        self.random = self.loop.random
        self.trace: list[str] = []
        self.faults: list[str] = []
        self.known = Known()
        self.is_over = False
        self._scratch = scratch
        scratch.mkdir(exist_ok=True)
        self.life = 0
        """The number of this life of the broker."""
        self._clock_ms = START_MS
        self._broker: Broker | None = None

    # -- the broker --------------------------------------------------------------------------------

    @property
    def broker(self) -> Broker:
        assert self._broker is not None
        return self._broker

    @property
    def running(self) -> Broker | None:
        """The broker; None between two lives."""
        return self._broker

    def now_ms(self) -> int:
        """The wall clock, which jumps."""
        return self._clock_ms + self.timer_ms()

    def timer_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def begin(self, left: Image | None) -> None:
        """Start a broker on what the one before has left."""
        self.life += 1
        root = self._scratch / f"life{self.life}"
        if left is None:
            root.mkdir()
        else:
            left.write(root)
        self.files = JournalledFiles(root)
        self._clock_ms += self.random.choice((0, 0, CLOCK_JUMP_MS, -CLOCK_JUMP_MS))
        self._broker = Broker(
            config_of(root, more=SETTINGS),
            self.loop,
            {"PLAINTEXT": 9092},
            now_ms=self.now_ms,
            timer_ms=self.timer_ms,
            files=self.files,
        )
        self.dispatcher = Dispatcher(self.broker, HANDLERS, SingleBatches())
        self._periodic_tasks = PeriodicTasks(periodic_tasks_of(self.broker))
        self.note(f"life {self.life} began")

    async def end(self) -> Image:
        """Kill the broker, or cut its power, after one of the next things that it does to its disk.

        Returns what is left of its directories.
        """
        entries = self.random.randint(1, 30)
        crashed = self.loop.create_future()
        old = self.broker

        def count() -> None:
            nonlocal entries
            entries -= 1
            if not entries:
                self._broker = None  # from here on clients hear nothing
                crashed.set_result(len(self.files.journal))

        self.files.on_entry = count
        journal = self.files.journal[: await crashed]
        is_kill = self.random.random() < KILLS
        left = last_image(journal) if is_kill else some_image(journal, self.random)
        self.note(f"life {self.life} ended: {'killed' if is_kill else left.what}")
        await self._close(old)  # on files that nobody looks at any more
        return left

    async def stop(self) -> None:
        """A clean stop."""
        await self._close(self.broker)

    async def _close(self, broker: Broker) -> None:
        await self._periodic_tasks.close()
        await stop(broker)

    # -- what clients use --------------------------------------------------------------------------

    def note(self, what: str) -> None:
        """Add a line to the trace, which is the same for the same seed."""
        self.trace.append(f"{self.loop.time():.6f} {what}")

    def fault(self, what: str) -> None:
        self.note(f"FAULT {what}")
        self.faults.append(what)

    async def pause(self, longest_s: float) -> None:
        await asyncio.sleep(self.random.random() * longest_s)

    def connect(self, name: str) -> "Client":
        return Client(self, name)


class Client:
    """A connection, which is made again when it was cut."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self._world = world
        self._session: Session | None = None

    async def ask(self, request: Message, response: type[Response], version: int) -> Response:
        """Send a request and wait for its answer. Raises ConnectionCutError."""
        world = self._world
        while world._broker is None:
            await world.pause(1.0)
        await world.pause(LATENCY_S)
        life = world.life
        if world._broker is None or self._is_cut():
            raise self._cut()
        frame = memoryview(bytearray(request_frame(request, version, 1, self.name)[4:]))
        try:
            answer = await self._served(frame)
        except ApiError:  # the connection ends, because the broker does
            if world.life == life:
                raise
        await world.pause(LATENCY_S)
        if world._broker is None or world.life != life or self._is_cut():
            raise self._cut()
        decoded = _decoded(answer, response, version)
        world.note(f"{self.name} {type(request).__name__}: {_shown(decoded)}")
        return decoded

    async def insist(
        self,
        request: Message,
        response: type[Response],
        version: int,
        code_of: Callable[[Response], int],
    ) -> tuple[Response, ErrorCode]:
        """Ask until there is an answer that is not to be asked for again, and its error."""
        while True:
            try:
                answer = await self.ask(request, response, version)
            except ConnectionCutError:
                await self._world.pause(0.2)
                continue
            code = ErrorCode(code_of(answer))
            if code not in RETRIED:
                return answer, code
            await self._world.pause(0.2)

    async def _served(self, frame: memoryview) -> Any:
        dispatcher = self._world.dispatcher
        answer = dispatcher.dispatch(self._of_now(), frame)
        if answer is None or isinstance(answer, bytes):
            return answer
        if isinstance(answer, SlicedAnswer):
            answer.begin(frame)
        if answer.pending is not None:
            await dispatcher.complete(answer)
        return answer.response

    def _of_now(self) -> Session:
        if self._session is None:
            listener = self._world.broker.config.open_listeners[0]
            self._session = Session(listener, ("127.0.0.1", 40000), "127.0.0.1")
        return self._session

    def _is_cut(self) -> bool:
        return self._world.random.random() * 100 < CUT_PERCENT

    def _cut(self) -> ConnectionCutError:
        self._session = None
        self._world.note(f"{self.name} is cut")
        return ConnectionCutError()


def _decoded(answer: Any, response: type[Response], version: int) -> Response:
    if isinstance(answer, response):
        return answer
    data = memoryview(answer if isinstance(answer, bytes) else answer[0])
    decoded: Any = response.decode(data[9 if version in response.SPEC.flexible else 8 :], version)
    made: Response = decoded
    return made


def _shown(message: Message) -> str:
    return repr(message)[:300]
