"""kafka-consumer-groups.sh in all its modes: what it says of odradek, it says of Apache Kafka.

One script, with the tool in one JVM. Groups are made by raw requests, so that
nothing moves while the tool looks.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.conformance.conversation import Conversation, advertised_versions
from tests.conformance.requests import batch_of, produce
from tests.conformance.tool_answers import differences, told
from tests.conformance.wire_consumers import SETTINGS, WireConsumer, share_out
from tests.conformance.wire_groups import WireMember, commit, stabilise
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_answers import kafka_answers, kafka_when_asked
from tests.support.lengths import only_long
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.recorded,
    only_long("the answers are in test_same_answers.py"),
]

TOOL = "consumer.group.ConsumerGroupCommand"
TWO_HOURS_MS = 7_200_000


class GroupsOfEachKind:
    """One broker with topics, records and groups of every kind."""

    def __init__(self, broker: BrokerProcess, now_ms: int) -> None:
        self.broker = broker
        self.members: list[WireMember] = []
        self.consumers: list[WireConsumer] = []
        self._create(now_ms)

    def _create(self, now_ms: int) -> None:
        port = self.broker.port
        talk = Conversation(port, advertised_versions(port))
        for name in ("orders", "bills", "never-read"):
            talk.create_topic(name, 2)
            for partition in (0, 1):
                # Six records: three of them two hours old, three of now.
                old = batch_of("1", "2", "3", at_ms=now_ms - TWO_HOURS_MS)
                new = batch_of("4", "5", "6", at_ms=now_ms - 60_000)
                produce(talk, name, old, partition=partition)
                produce(talk, name, new, partition=partition)
        talk.close()

    def make_groups(self) -> None:
        """A group of each kind."""
        self._make_classic_groups()
        self._make_consumer_groups()

    def _make_classic_groups(self) -> None:
        port = self.broker.port
        first, second = self._member("alive", "orders"), self._member("alive", "orders", "bills")
        stabilise((first, {"orders": [0]}), (second, {"orders": [1], "bills": [0, 1]}))
        first.commit("orders", {0: 2})
        second.commit("bills", {0: 6, 1: 1})
        fixed = self._member("fixed", "orders", instance="place-1")
        stabilise((fixed, {"orders": [0, 1]}))
        fixed.commit("orders", {0: 5, 1: 5})
        waits = self._member("waits", "orders")
        waits.join()
        connect = self._member("connect-cluster", kind="connect", protocol="sessioned")
        stabilise((connect, {}))
        left = self._member("left", "orders")
        stabilise((left, {"orders": [0, 1]}))
        left.commit("orders", {0: 3, 1: 4})
        left.leave()
        with WireClient(port) as client:
            commit(client, "simple", "orders", {0: 1}, metadata="by hand")
            commit(client, "simple", "bills", {0: 2, 1: 3})
            commit(client, "spent", "orders", {1: 1})
            commit(client, "beyond", "orders", {0: 99})

    def _member(self, group: str, *topics: str, **words: str) -> WireMember:
        number = sum(member.group == group for member in self.members) + 1
        client_id = f"{group}-client-{number}"
        member = WireMember(self.broker.port, group, *topics, client_id=client_id, **words)  # type: ignore[arg-type] # instance, kind, protocol
        self.members.append(member)
        return member

    def _make_consumer_groups(self) -> None:
        first = self._consumer("modern", "m-1", "orders", "bills")
        second = self._consumer("modern", "m-2", "orders", instance="place-2", assignor="range")
        share_out(4, first, second)
        second.commit("orders", {0: 3, 1: 6})
        pattern = self._consumer("pattern", "p-1", regex="orde.*|b.lls")
        share_out(4, pattern)
        pattern.commit("bills", {1: 2})
        gone = self._consumer("modern-left", "g-1", "orders")
        share_out(2, gone)
        gone.commit("orders", {0: 3, 1: 4})
        gone.leave()
        away = self._consumer("away", "a-1", "bills", instance="place-3")
        share_out(2, away)
        away.commit("bills", {0: 5})
        away.leave(for_a_while=True)
        host = self._consumer("mixed", "h-1", "orders")
        share_out(2, host)
        guest = self._member("mixed", "orders")
        guest.join()
        guest.sync()
        host.beat()

    def _consumer(self, group: str, member_id: str, *topics: str, **words: str) -> WireConsumer:
        self.consumers.append(WireConsumer(self.broker.port, group, member_id, *topics, **words))
        return self.consumers[-1]

    def close(self) -> None:
        """Let the members' connections go."""
        clients = [one.client for one in self.members] + [one.client for one in self.consumers]
        for client in clients:
            client.close()


def script(now_ms: int, scratch: Path) -> Iterator[tuple[str, ...]]:
    """Tools and arguments, in this order: what one changes, the next ones show."""
    for words in (*looks(), *errors(), *resets(now_ms, scratch), *deletions()):
        yield TOOL, *words
    for shown in ("--offsets", "--members", "--state"):
        yield TOOL, "--describe", "--all-groups", shown
    for words in ((), ("--consumer",), ("--share",), ("--streams",), ("--group-type", "classic")):
        yield "GroupsCommand", "--list", *words
    for kind in ("consumer", "Consumer", "streams", "none"):
        yield "GroupsCommand", "--list", "--group-type", kind
    for kind in ("consumer", "connect", ""):
        yield "GroupsCommand", "--list", "--protocol", kind
        yield "GroupsCommand", "--list", "--protocol", kind, "--group-type", "classic"


def looks() -> Iterator[tuple[str, ...]]:
    """Modes that change nothing."""
    yield ("--list",)
    states = (None, "stable", "Stable,Empty", " empty , PreparingRebalance", "dead", "none", "")
    for state in states:
        yield ("--list", "--state", *([] if state is None else [state]))
    for kind in (None, "classic", "Classic,consumer", "consumer", "share", "none"):
        yield ("--list", "--type", *([] if kind is None else [kind]))
    yield ("--list", "--state", "stable", "--type", "classic")
    yield ("--describe", "--group", "alive")
    for shown in (("--offsets",), ("--members",), ("--state",)):
        for group in ("alive", "fixed", "waits", "connect-cluster", "left", "simple", "never"):
            # While a group waits for its members' sync, so would the tool.
            yield ("--describe", "--group", group, *shown, "--timeout", "2000")
        for group in ("modern", "pattern", "modern-left", "away", "mixed"):
            yield ("--describe", "--group", group, *shown)
        yield ("--describe", "--group", "alive", "--group", "left", *shown, "--verbose")
        yield ("--describe", "--all-groups", *shown, "--verbose")
        yield ("--describe", "--all-groups", *shown)


def errors() -> Iterator[tuple[str, ...]]:
    """Command lines that the tool itself refuses, and those that the broker does."""
    yield ()
    yield ("--describe",)
    yield ("--describe", "--list")
    yield ("--describe", "--group", "alive", "--members", "--state")
    yield ("--reset-offsets", "--group", "left", "--to-earliest")
    yield ("--reset-offsets", "--group", "left", "--topic", "orders", "--to-latest")
    yield ("--reset-offsets", "--group", "left", "--all-topics")
    yield ("--reset-offsets", "--group", "left", "--topic", "orders", "--to-offset", "x")
    yield ("--reset-offsets", "--group", "left", "--topic", "none", "--to-earliest")
    yield ("--reset-offsets", "--group", "left", "--topic", "orders:7", "--to-earliest")
    yield ("--reset-offsets", "--group", "left", "--topic", "orders:x", "--to-earliest")
    yield ("--reset-offsets", "--all-groups", "--all-topics", "--to-earliest", "--dry-run")
    yield ("--reset-offsets", "--group", "left", "--all-topics", "--to-earliest", "--to-latest")
    for group in (
        *("alive", "waits", "connect-cluster", "never", "beyond"),
        *("modern", "pattern", "away", "mixed"),
    ):
        yield ("--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--dry-run")
    for expression in ("ord.*", "a(b", "[", "(?i)x{2,3}", "(?<=a)b"):
        yield ("--validate-regex", expression)


def resets(now_ms: int, scratch: Path) -> Iterator[tuple[str, ...]]:
    """Every way to reset offsets, as a plan, as CSV, and for real."""
    hour_ago = datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(hours=1)
    moments = [
        f"{hour_ago:%Y-%m-%dT%H:%M:%S}.000",
        f"{hour_ago:%Y-%m-%dT%H:%M:%S}.000Z",
        f"{hour_ago:%Y-%m-%dT%H:%M:%S}.000+0000",
        "2100-01-01T00:00:00.000",
        "2000-01-01T00:00:00.000",
        "yesterday",
    ]
    one, many, wrong = (scratch / name for name in ("one.csv", "many.csv", "wrong.csv"))
    one.write_text("orders,0,1\norders,1,2\nbills,1,99\n")
    many.write_text("left,orders,0,2\nsimple,bills,1,1\n")
    wrong.write_text("orders;0;1\n")
    ways: list[tuple[str, ...]] = [
        ("--to-earliest",),
        ("--to-latest",),
        ("--to-current",),
        *(("--to-offset", offset) for offset in ("2", "99", "0")),
        *(("--shift-by", steps) for steps in ("1", "-2", "99", "-99")),
        *(("--by-duration", span) for span in ("PT1H", "P1D", "PT0S", "an hour")),
        *(("--to-datetime", moment) for moment in moments),
    ]
    reset = ("--reset-offsets", "--group", "left")
    for way in ways:
        yield (*reset, "--topic", "orders:1", *way, "--execute")
        yield (*reset, "--all-topics", *way, "--dry-run", "--export")
        yield ("--describe", "--group", "left")
    for chosen in (("orders:0,1",), ("orders", "bills:1"), ("orders:1", "never-read:0")):
        topics = [word for topic in chosen for word in ("--topic", topic)]
        yield (*reset, *topics, "--to-offset", "3", "--dry-run")
    yield ("--reset-offsets", "--group", "modern-left", "--all-topics", "--to-latest", "--execute")
    yield ("--describe", "--group", "modern-left")
    for file in (one, wrong, scratch / "none.csv"):
        yield (*reset, "--from-file", str(file), "--dry-run")
    yield (*reset, "--from-file", str(one), "--execute")
    both = ("--reset-offsets", "--group", "left", "--group", "simple")
    yield (*both, "--from-file", str(many), "--execute")
    yield (*both, "--all-topics", "--to-latest", "--execute", "--export")
    yield ("--reset-offsets", "--group", "new", "--topic", "never-read", "--to-offset", "4")
    yield (
        *("--reset-offsets", "--group", "new", "--topic", "never-read"),
        "--to-latest",
        "--execute",
    )
    yield ("--reset-offsets", "--all-groups", "--topic", "bills", "--to-offset", "1", "--execute")
    yield ("--describe", "--all-groups", "--offsets")


def deletions() -> Iterator[tuple[str, ...]]:
    """Offsets, then groups."""
    for group in (
        *("alive", "left", "simple", "waits", "connect-cluster", "never"),
        *("modern", "modern-left", "away"),
    ):
        for topics in (("orders",), ("orders:0,1", "bills:1"), ("none",), ("orders:9",)):
            chosen = [word for topic in topics for word in ("--topic", topic)]
            yield ("--delete-offsets", "--group", group, *chosen)
        yield ("--describe", "--group", group, "--offsets", "--timeout", "2000")
    yield ("--delete-offsets", "--group", "left")
    yield ("--delete", "--group", "left")
    yield ("--delete", "--group", "left")
    yield ("--delete", "--group", "never", "--group", "spent", "--group", "alive")
    yield ("--delete", "--group", "modern-left", "--group", "modern", "--group", "away")
    yield ("--delete", "--group", "alive", "--topic", "orders")
    yield ("--delete",)
    yield ("--delete", "--all-groups")


def test_the_tool_says_the_same_of_both_brokers(
    tmp_path: Path, start_broker: Callable[..., BrokerProcess]
) -> None:
    now_ms = time.time_ns() // 1_000_000
    lines = list(script(now_ms, tmp_path))

    def told_of(broker: BrokerProcess) -> list[list[str]]:
        side = GroupsOfEachKind(broker, now_ms)
        try:
            side.make_groups()
            return told(broker, lines, tmp_path)
        finally:
            side.close()

    with kafka_when_asked(tmp_path / "kafka", SETTINGS) as kafka:
        expected = kafka_answers("tools/consumer_groups", lambda: told_of(kafka()))
    found = told_of(start_broker(**SETTINGS))
    differing = differences(lines, expected, found)
    assert not differing, "\n".join(differing)
    saying_something = [answer for answer in found if len(answer) > 1]
    assert len(saying_something) > len(lines) * 0.9, "the tool hardly said anything"
