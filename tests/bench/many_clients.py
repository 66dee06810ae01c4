"""Producers with a connection each, which send a record when the last one is acknowledged."""

from collections.abc import Callable

from odradek.protocol.messages.produce import ProduceResponse
from tests.bench.figures import Figures, latencies
from tests.bench.over_the_wire import batch_of, partition_frame
from tests.bench.swarm import Swarm, now
from tests.bench.two_brokers import Meter, new_topic
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import PRODUCE_VERSION

SECONDS = 5.0
PARTITIONS = 6


class Producer:
    """One connection. `trips`: the microseconds of the round trips of all producers."""

    def __init__(self, swarm: Swarm, port: int, frame: bytes, trips: list[float]) -> None:
        self._peer = swarm.connect(port, self._acknowledged)
        self._frame = frame
        self._trips = trips
        self._is_checked = False

    def send(self) -> None:
        """Send a record."""
        self._peer.send(self._frame)

    def _acknowledged(self, answer: bytes) -> None:
        self._trips.append((now() - self._peer.sent_at) * 1e6)
        if not self._is_checked:
            response = ProduceResponse.decode(answer[1:], PRODUCE_VERSION)
            error = response.responses[0].partition_responses[0].error_code
            assert error == 0, f"error {error}"
            self._is_checked = True
        self.send()


def produce_200(broker: BrokerProcess, share: int) -> Figures:
    """200 producers, a record of 100 bytes at a time each, acks=all."""
    return produced(broker, SECONDS / share, busy=200)


def produce_beside_idle(broker: BrokerProcess, share: int) -> Figures:
    """100 such producers beside 1,000 connections that are idle."""
    return produced(broker, SECONDS / share, busy=100, idle=1000)


def produced(broker: BrokerProcess, seconds: float, *, busy: int, idle: int = 0) -> Figures:
    """What `busy` producers write, spread over a topic of six partitions."""
    trips: list[float] = []
    with new_topic(broker, PARTITIONS) as topic, Swarm() as swarm:
        frames = [partition_frame(topic, n, batch_of(100, 1)) for n in range(PARTITIONS)]
        producers = [
            Producer(swarm, broker.port, frames[n % PARTITIONS], trips) for n in range(busy)
        ]
        for _ in range(idle):
            swarm.connect(broker.port, lambda answer: None)
        swarm.await_greetings()
        meter = Meter(broker)
        for producer in producers:
            producer.send()
        swarm.run_for(seconds)
        memory = {"memory_MB": broker.memory_bytes() / 2**20}
        return meter.done(len(trips)) | latencies(trips) | memory


WORKLOADS: dict[str, Callable[[BrokerProcess, int], Figures]] = {
    work.__name__: work for work in (produce_200, produce_beside_idle)
}
