"""Random subscriptions and requests: the answers equal those of Kafka's ClientMetricsManager."""

import base64
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from odradek.broker.security.session import Session
from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest
from odradek.protocol.primitives import random_uuid, uuid_text
from tests.support.java_program import JavaProgram
from tests.support.otlp import gauge, metrics_data
from tests.support.telemetry import MAX_BYTES, Telemetry, new_session

pytestmark = pytest.mark.java

STARTED_MS = 1_700_000_000_000
STEPS = 1_500
NAMES = ["", "*", *(f"org.apache.kafka.{word}." for word in ("producer", "consumer", "admin"))]
NAMES += [f"metric-{number}" for number in range(30)]  # more than a table of 16 holds
# The tables of Java's maps grow with their content, and do not shrink again. So the order in which
# more than these are combined depends on what was there before.
MAX_SUBSCRIPTIONS, MAX_NAMES = 11, 11
MATCHES = [None, "client_id=one", "client_id=t.*", "client_software_name=Java", "client_id=o.*e"]
SMALL = metrics_data(gauge("org.apache.kafka.producer.a", 1.0))
LARGE = random.Random(0).randbytes(MAX_BYTES + 1)


@pytest.fixture(scope="module")
def kafka() -> Iterator[JavaProgram]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"  # it logs what it refuses
    with JavaProgram("KafkaTelemetry.java", str(MAX_BYTES), options=(quiet,)) as program:
        yield program


class Duet:
    """The same steps for both. `errors` counts what they answered."""

    def __init__(self, kafka: JavaProgram, chance: random.Random) -> None:
        self.errors: Counter[int] = Counter()
        self._kafka = kafka
        self._chance = chance
        self._ours = Telemetry()
        self._ours.now_ms = STARTED_MS
        self._stored: dict[str, dict[str, str]] = {}
        self._sessions: dict[str, Session] = {}
        self._ids = [random_uuid() for _ in range(4)]
        self._subscription_ids = dict.fromkeys(self._ids, 0)

    def close(self) -> None:
        """Remove the subscriptions, and end the threads."""
        for name in list(self._stored):
            self._configure(name, {})
        self._ours.disk.close()

    async def step(self) -> None:
        """Do one thing, and compare."""
        self._ours.now_ms += self._chance.choice([0, 1, 50, 100, 500, 1_000, 30_000, 300_000])
        match self._chance.choice("cdgggpppp"):
            case "c":
                settings = self._random_settings() if self._chance.random() < 0.7 else {}
                name = self._chance.randrange(MAX_SUBSCRIPTIONS)
                self._configure(f"subscription-{name}", settings)
            case "d":
                name = self._chance.choice("ab")
                self._ours.clients.connection_closed(self._session(name))
                del self._sessions[name]
                self._kafka.ask_json({"do": "close", "connection": name})
            case "g":
                self._get()
            case "p":
                await self._push()

    def _random_settings(self) -> dict[str, str]:
        names = self._chance.sample(NAMES[1:], self._chance.randrange(1, MAX_NAMES))
        if self._chance.random() < 0.9 and "*" in names:
            names.remove("*")
        settings = {"metrics": ",".join(names)}
        match = self._chance.choice(MATCHES)
        if match is not None:
            settings["match"] = match
        if self._chance.random() < 0.8:
            settings["interval.ms"] = str(self._chance.choice([100, 1_000, 60_000, 3_600_000]))
        return settings

    def _configure(self, name: str, settings: dict[str, str]) -> None:
        if name not in self._stored and not settings:
            return  # nothing changes
        gone = dict.fromkeys(self._stored.pop(name, {}), None)
        self._ours.configure(
            name, **{key.replace(".", "_"): value for key, value in (gone | settings).items()}
        )
        if settings:
            self._stored[name] = settings
        self._kafka.ask_json({"do": "configure", "name": name, "settings": settings})

    def _session(self, name: str) -> Session:
        return self._sessions.setdefault(name, new_session())

    def _asked(self) -> tuple[dict[str, Any], bytes]:
        id_ = self._chance.choice(self._ids)
        asked = {
            "now": self._ours.now_ms,
            "connection": self._chance.choice("ab"),
            "client": self._chance.choice(["one", "two"]),
            "id": uuid_text(id_),
        }
        self._ours.session = self._session(asked["connection"])
        return asked, id_

    def _get(self) -> None:
        asked, id_ = self._asked()
        try:
            instance = self._ours.subscribe(id_, asked["client"])
        except ApiError as error:
            found = {"error": int(error.code), "subscription": 0, "interval": 0, "metrics": []}
        else:
            found = {
                "error": 0,
                "subscription": instance.subscription_id,
                "interval": instance.wanted.push_interval_ms,
                "metrics": list(instance.wanted.metrics),
            }
            self._subscription_ids[id_] = instance.subscription_id
        assert found == self._kafka.ask_json({"do": "get", **asked}), self._stored
        self.errors[found["error"]] += 1

    async def _push(self) -> None:
        asked, id_ = self._asked()
        compression = self._chance.choice([0, 1, 2, 3, 4, 4, 4, 5, -1])
        metrics = SMALL if compression not in range(1, 5) else b"garbage"
        if compression in range(5) and self._chance.random() < 0.8:
            metrics = compress(CompressionType(compression), SMALL)
        if self._chance.random() < 0.1:
            metrics = self._chance.choice([b"", LARGE])
        wrong = self._chance.random() < 0.1
        request = PushTelemetryRequest(
            client_instance_id=id_,
            subscription_id=714 if wrong else self._subscription_ids[id_],
            terminating=self._chance.random() < 0.1,
            compression_type=compression,
            metrics=metrics,
        )
        error = 0
        try:
            await self._ours.push_request(request, asked["client"])
        except ApiError as refusal:
            error = int(refusal.code)
        expected = self._kafka.ask_json(
            {
                "do": "push",
                **asked,
                "subscription": request.subscription_id,
                "terminating": request.terminating,
                "compression": compression,
                "metrics": base64.b64encode(metrics).decode(),
            }
        )
        assert {"error": error} == expected
        self.errors[error] += 1


@pytest.fixture
async def duet(kafka: JavaProgram, request: pytest.FixtureRequest) -> AsyncIterator[Duet]:
    duet = Duet(kafka, random.Random(request.param))
    yield duet
    duet.close()


@pytest.mark.parametrize("duet", range(3), indirect=True)
async def test_random_requests_get_kafkas_answers(duet: Duet) -> None:
    for _ in range(STEPS):
        await duet.step()
    assert len(duet.errors) == 7, duet.errors
