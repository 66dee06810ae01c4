"""What befalls a broker and its clients, as a seed says."""

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.cut_proxy import CutProxy

from .clients.task import PARTITIONS, RENEWED, Recorder
from .crowd import Crowd

ANSWER_SECONDS = 20.0
HOUR_NS = 3_600_000_000_000
OTHER_SETTINGS: tuple[Mapping[str, str], ...] = (
    {"log.flush.interval.messages": "1"},
    {"log.segment.bytes": str(1 << 21), "log.index.interval.bytes": "512"},
    {"num.io.threads": "3", "offsets.topic.compression.codec": "4"},
    {"odradek.validate.records": "full"},
)


class Nemesis:
    """`step` does one thing, which comes to its end."""

    def __init__(
        self,
        broker: BrokerProcess,
        proxy: CutProxy,
        crowd: Crowd,
        chance: random.Random,
        clock: Path,
    ) -> None:
        self.done: Counter[str] = Counter()
        self._broker = broker
        self._proxy = proxy
        self._crowd = crowd
        self._chance = chance
        self._clock = clock
        self._settings = dict(broker.settings)
        self._recorder: Recorder = crowd.recorder("nemesis")
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self._actions: dict[str, tuple[int, Callable[[], None]]] = {
            "kill -9 of the broker": (6, self._kill),
            "SIGSTOP of the broker": (2, self._stop),
            "connections cut": (4, self._proxy.cut),
            "restart with other settings": (1, self._restart),
            "topic created again": (2, self.renew),
            "kill -9 of a client": (3, self._kill_client),
            "SIGSTOP of a client": (2, self._stop_client),
        }
        if not against_apache_kafka():
            self._actions["full disk"] = (1, self._fill)
            self._actions["clock jump"] = (2, self._set_clock)

    def step(self) -> None:
        """Do one of all things."""
        names = list(self._actions)
        weights = [weight for weight, _ in self._actions.values()]
        [name] = self._chance.choices(names, weights)
        self._actions[name][1]()
        self.done[name] += 1

    def _sleep(self, least: float, most: float) -> None:
        time.sleep(self._chance.uniform(least, most))

    def _kill(self) -> None:
        self._broker.kill()
        if self._chance.random() < 0.2:
            self._broker.start_without_waiting()
            self._sleep(0.05, 0.8)
            self._broker.kill()
        self._after_kill()
        self._sleep(0, 0.5)
        self._broker.start()

    def _after_kill(self) -> None:
        """What else befalls the broker then."""

    def _stop(self) -> None:
        os.kill(self._broker.pid, signal.SIGSTOP)
        self._sleep(0.2, 4)
        os.kill(self._broker.pid, signal.SIGCONT)

    def _restart(self) -> None:
        self._start_with(self._chance.choice(OTHER_SETTINGS))

    def _fill(self) -> None:
        """Too little space for what is produced; there is no disk here that we may fill."""
        self._start_with({"odradek.min.free.bytes": str(1 << 60)})
        self._sleep(0.5, 2)
        self._start_with({})

    def _start_with(self, settings: Mapping[str, str]) -> None:
        assert self._broker.terminate() in self._broker.clean_exit_codes
        self._broker.settings = {**self._settings, **settings}
        self._broker.start()

    def _set_clock(self) -> None:
        new = self._clock.with_suffix(".new")
        new.write_text(str(self._chance.randint(-HOUR_NS, HOUR_NS)))
        new.rename(self._clock)

    def _kill_client(self) -> None:
        self._crowd.one(self._chance).send(signal.SIGKILL)

    def _stop_client(self) -> None:
        client = self._crowd.one(self._chance)
        client.send(signal.SIGSTOP)
        self._sleep(0.2, 5)
        client.send(signal.SIGCONT)

    def renew(self) -> None:
        """Delete a topic and create it again."""
        number = self._recorder.begin("delete", topic=RENEWED)
        with contextlib.suppress(KafkaException, TimeoutError):
            self._admin.delete_topics([RENEWED])[RENEWED].result(ANSWER_SECONDS)
            self._recorder.add(number, "ok")
        self._sleep(0, 0.2)
        while not self._create():
            time.sleep(0.1)

    def _create(self) -> bool:
        """Whether the topic is there; who created it may not have been told."""
        number = self._recorder.begin("create", topic=RENEWED)
        topic = NewTopic(RENEWED, PARTITIONS[RENEWED], 1)
        try:
            self._admin.create_topics([topic])[RENEWED].result(ANSWER_SECONDS)
        except TimeoutError:
            return False
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
        self._recorder.add(number, "ok")
        return True
