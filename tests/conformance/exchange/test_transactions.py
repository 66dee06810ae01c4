"""Open, decided, expired and hanging transactions go to Apache Kafka and back.

One broker writes them. Of some the end is taken out of the directory, as if the broker had been
killed before. Then Apache Kafka serves one copy and odradek another: both must end each transaction
as it was decided, and let its producer go on. Then they change places.
"""

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.transactions.states import TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WriteTxnMarkersTopic,
)
from odradek.storage.producer_entry import MAX_EPOCH
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.conformance.exchange.first_turn import GROUP, batch_of_now, find_coordinator
from tests.conformance.exchange.producers import Producer
from tests.conformance.exchange.seen import committed_offsets, log_of
from tests.conformance.exchange.shared_directory import SETTINGS, SharedDirectory
from tests.conformance.exchange.undecided import Undecided
from tests.conformance.requests import BY_NAME, request_with
from tests.support.broker_process import BrokerProcess
from tests.support.committed import committed_by_partition
from tests.support.lengths import by_length
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow]

LONG_MS, SHORT_MS = 900_000, 2_000
INTERVAL = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
ENDED = {TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
BEGUN = {TransactionState.ONGOING}
OFFSETS = -1
BLOCK = 1000  # producer ids are given in blocks; a broker takes another when it starts


class Case(NamedTuple):
    """A transaction: how it ends, and what of that is taken back.

    `commit` None: the producer does not end it. `lost`: the partitions that get no marker; OFFSETS
    stands for that of the group.
    """

    commit: bool | None = None
    lost: tuple[int, ...] = ()
    lost_states: frozenset[TransactionState] = frozenset()
    timeout_ms: int = LONG_MS
    finished: str = ""  # the state that the next broker brings it to

    @property
    def is_prepared(self) -> bool:
        return bool(self.lost_states & ENDED)


UNMARKED, PARTLY, OTHERWISE = (0, 1, OFFSETS), (1, OFFSETS), (0,)
COMMITTED, ABORTED = "CompleteCommit", "CompleteAbort"
CASES = {
    "committed": Case(True, finished=COMMITTED),
    "aborted": Case(False, finished=ABORTED),
    "commit-decided": Case(True, UNMARKED, frozenset(ENDED), finished=COMMITTED),
    "commit-partly": Case(True, PARTLY, frozenset(ENDED), finished=COMMITTED),
    "commit-marked": Case(True, (), frozenset(ENDED), finished=COMMITTED),
    "abort-decided": Case(False, UNMARKED, frozenset(ENDED), finished=ABORTED),
    "abort-partly": Case(False, OTHERWISE, frozenset(ENDED), finished=ABORTED),
    "open": Case(finished="Ongoing"),
    "left-open": Case(finished="Ongoing"),
    "last-epoch": Case(finished="Ongoing"),
    "expired": Case(timeout_ms=SHORT_MS, finished=ABORTED),
    "hanging": Case(lost_states=frozenset(BEGUN), finished=ABORTED),
}
NAMES = [f"{name}-{version}" for name in CASES for version in (1, 2)]


def case_of(name: str) -> Case:
    return CASES[name[:-2]]


class Story:
    """What happens to one directory, and what clients are told on the way."""

    def __init__(self, shared: SharedDirectory, producers: dict[str, Producer]) -> None:
        self.shared = shared
        self.producers = producers

    # -- the first broker --------------------------------------------------------------------------

    def write(self, broker: BrokerProcess) -> None:
        for name in NAMES:
            create_topic(broker.bootstrap, name, 2)
        with WireClient(broker.port) as client:
            for name in NAMES:
                self._write(client, name)

    def _write(self, client: WireClient, name: str) -> None:
        case = case_of(name)
        producer = self.producers[name] = Producer(name, int(name[-1]))
        producer.init(client, case.timeout_ms)
        for commit in (True, False):  # a history
            self._transaction(client, producer, "early", 5 if commit else 6)
            assert producer.end(client, commit=commit) == ErrorCode.NONE
        self._transaction(client, producer, "last", 7)
        if case.commit is not None:
            before = producer.producer_id, producer.epoch
            assert producer.end(client, commit=case.commit) == ErrorCode.NONE
            wait_until(lambda: state_of(client, name) == case.finished)
            if case.is_prepared:
                producer.producer_id, producer.epoch = before  # it did not get the answer
        for partition in (0, 1):
            plain(client, name, partition)

    def _transaction(self, client: WireClient, producer: Producer, value: str, offset: int) -> None:
        for partition in (0, 1):
            assert producer.write(client, partition, value, f"{value} 2") == ErrorCode.NONE
        assert producer.commit_offset(client, offset) == ErrorCode.NONE

    def take_back(self) -> None:
        """Lose what was not written when the broker was killed."""
        undecided = Undecided(self.shared.data)
        for name in NAMES:
            case, producer_id = case_of(name), self.producers[name].producer_id
            if case.lost_states:
                undecided.drop_states(name, set(case.lost_states))
            if name.startswith("last-epoch"):
                undecided.raise_epoch(name, producer_id, MAX_EPOCH - 1)
                self.producers[name].epoch = MAX_EPOCH - 1
            for place in case.lost:
                if place == OFFSETS:
                    undecided.drop_offset_marker(producer_id)
                else:
                    undecided.drop_marker(name, place, producer_id)

    # -- the second broker -------------------------------------------------------------------------

    def check_ends(self, broker: BrokerProcess) -> dict[str, Any]:
        """Wait until the broker has ended what it should, and return what it tells."""
        with WireClient(broker.port) as client:
            for name in NAMES:
                finished = case_of(name).finished
                wait_until(lambda name=name, state=finished: state_of(client, name) == state)
        found = told(broker)
        for name in NAMES:
            assert found[name]["values"] == expected_values(name), name
            assert found[name]["offsets"] == expected_offsets(name), name
        return found

    def go_on(self, broker: BrokerProcess) -> dict[str, list[int]]:
        """Let the producers go on with the ids and epochs that they have; return the answers."""
        with WireClient(broker.port) as client:
            return {name: list(self._go_on(client, name)) for name in NAMES}

    def _go_on(self, client: WireClient, name: str) -> Iterator[int]:
        case, producer = case_of(name), self.producers[name]
        if name.startswith("left-open"):
            return
        if case.commit is None:
            if name.startswith("open"):
                yield producer.write(client, 0, "more")
            yield producer.end(client, commit=True)
            yield producer.end(client, commit=False)
            return
        if case.is_prepared:
            yield producer.end(client, commit=case.commit)  # as it has got no answer
        self._transaction(client, producer, "again", 8)
        yield producer.end(client, commit=True)

    # -- the third broker --------------------------------------------------------------------------

    def end_the_rest(self, broker: BrokerProcess) -> dict[str, list[int]]:
        """Commit what was left open, and abort what hangs as an administrator does."""
        with WireClient(broker.port) as client:
            answers = {}
            for name in NAMES:
                producer = self.producers[name]
                if name.startswith("left-open"):
                    answers[name] = [producer.end(client, commit=True)]
                elif name.startswith("hanging"):
                    answers[name] = abort(client, name, producer)
                else:
                    if name.startswith("expired"):
                        producer.init(client, LONG_MS)  # it is fenced
                    self._transaction(client, producer, "once more", 9)
                    answers[name] = [producer.end(client, commit=True)]
            for name in NAMES:
                wait_until(lambda name=name: state_of(client, name) in (COMMITTED, ABORTED))
            return answers


def state_of(client: WireClient, name: str) -> str:
    return str(described(client, name)[1])


def described(client: WireClient, name: str) -> tuple[Any, ...]:
    """Error, state, producer id, epoch, timeout and partitions of a transactional id."""
    request = DescribeTransactionsRequest(transactional_ids=[name])
    [found] = client.ask(request, DescribeTransactionsResponse, 0).transaction_states
    return (
        found.error_code,
        found.transaction_state,
        known(found.producer_id),
        found.producer_epoch,
        found.transaction_timeout_ms,
        sorted((topic.topic, sorted(topic.partitions)) for topic in found.topics),
    )


def told(broker: BrokerProcess) -> dict[str, Any]:
    """All that a broker tells of each case, without times."""
    places = [(name, partition) for name in NAMES for partition in (0, 1)]
    values = committed_by_partition(broker.bootstrap, places)
    with WireClient(broker.port) as client:
        for name in NAMES:
            find_coordinator(client, name, GROUP)
        return {
            name: {
                "transaction": described(client, name),
                "logs": [timeless(log_of(client, name, partition)) for partition in (0, 1)],
                "values": [
                    [value.decode() for value in values[name, partition]] for partition in (0, 1)
                ],
                "offsets": [
                    [(offset, error) for _, _, offset, _, _, error in offsets]
                    for offsets in committed_offsets(client, name)
                ],
            }
            for name in NAMES
        }


def known(producer_id: int) -> int:
    """The producer id; the same for all that were given after the first broker."""
    return min(producer_id, BLOCK)


def timeless(log: dict[str, Any]) -> dict[str, Any]:
    """What a log has, without times, and without epochs of leaders, which Kafka raises more."""
    return {
        "offsets": log["offsets"],
        "records": [_timeless_batch(*each) for each in log["records"]],
        "committed": [_timeless_batch(*each) for each in log["committed"]],
        "producers": [
            (known(producer_id), epoch, sequence, first)
            for producer_id, epoch, sequence, _, _, first in log["producers"]
        ],
    }


def _timeless_batch(header: Any, records: Any) -> Any:
    if header == "aborted":
        return header, records
    producer = (known(header.producer_id), header.producer_epoch, header.base_sequence)
    return (
        producer,
        header.attributes,
        [
            (offset, key, b"" if header.is_control else value)
            for offset, _, key, value, _ in records
        ],
    )


def expected_values(name: str) -> list[list[str]]:
    """What a consumer of committed records reads from each partition."""
    case = case_of(name)
    values = ["early", "early 2"]
    if case.finished == COMMITTED:
        values += ["last", "last 2"]
    if is_unstable(name):
        return [values, values]
    return [[*values, "plain"], [*values, "plain"]]


def expected_offsets(name: str) -> list[list[tuple[int, int]]]:
    """The group's offset, and the answer to a request for stable ones."""
    offset = 7 if case_of(name).finished == COMMITTED else 5
    unstable = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return [[(offset, 0)], [unstable if is_unstable(name) else (offset, 0)]]


def is_unstable(name: str) -> bool:
    return case_of(name).finished == "Ongoing" or name.startswith("hanging")


def abort(client: WireClient, name: str, producer: Producer) -> list[int]:
    """Write the markers of a transaction that its coordinator does not know."""
    partition = partition_of(name, int(SETTINGS["offsets.topic.num.partitions"]))
    places = [(name, 0), (name, 1), (CONSUMER_OFFSETS_TOPIC, partition)]
    marker = WriteTxnMarkersMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[WriteTxnMarkersTopic(name=topic, partition_indexes=[at]) for topic, at in places],
        coordinator_epoch=99,
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    [answer] = client.ask(request, WriteTxnMarkersResponse, 1).markers
    return [one.error_code for topic in answer.topics for one in topic.partitions]


def plain(client: WireClient, topic: str, partition: int) -> None:
    """A record outside of transactions, after them."""
    request = request_with(topic, batch_of_now("plain"), partition=partition)
    answer = client.ask(request, ProduceResponse, BY_NAME)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


# Both brokers go on with a copy each, and then with that of the other.
@pytest.mark.parametrize("writer", by_length(["kafka"], ["odradek", "kafka"]))
def test_each_ends_what_the_other_has_left(writer: str, tmp_path: Path) -> None:
    killed = writer == "kafka"
    story = Story(SharedDirectory(tmp_path / "written", **{INTERVAL: "3600000"}), {})
    # `take_back` makes a killed broker of one that ended cleanly. Kafka must have been the last: it
    # leaves partitions without leaders. From a broker that was killed, and from odradek, it finds
    # leaders, takes them away while it starts, and drops the markers that its coordinator sends
    # meanwhile (TransactionMarkerChannelManager takes a topic without a leader for deleted).
    with story.shared.served_by(writer, killed=False) as broker:
        story.write(broker)
    if writer != "kafka":
        with story.shared.served_by("kafka", killed=False):
            pass
    story.take_back()
    of_kafka, of_odradek = (
        turns(story, tmp_path / name, [name, other], killed=killed)
        for name, other in (("kafka", "odradek"), ("odradek", "kafka"))
    )
    same(of_kafka, of_odradek)


def turns(story: Story, directory: Path, names: list[str], *, killed: bool) -> dict[str, Any]:
    """Go on with a copy of a directory under two brokers; return what they have told."""
    shutil.copytree(story.shared.directory, directory)
    story = Story(SharedDirectory(directory, **{INTERVAL: "500"}), copy.deepcopy(story.producers))
    with story.shared.served_by(names[0], killed=killed) as broker:
        ended = story.check_ends(broker)
        answers = story.go_on(broker)
        after = told(broker)
    with story.shared.served_by(names[1], killed=not killed) as broker:
        same(after, told(broker))
        last_answers = story.end_the_rest(broker)
        last = told(broker)
    return {
        "ended": ended,
        "answers": answers,
        "after": after,
        "last answers": last_answers,
        "last": last,
    }


def same(expected: Any, found: Any, where: str = "") -> None:
    """Compare, and name the place where something differs."""
    if isinstance(expected, dict):
        assert expected.keys() == found.keys(), where
        for key, value in expected.items():
            same(value, found[key], f"{where}/{key}")
    elif isinstance(expected, list):
        same(dict(enumerate(expected)), dict(enumerate(found)), where)
    else:
        assert expected == found, where
