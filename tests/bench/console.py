"""What the console costs a broker with many topics and groups, and what a producer feels of it.

Views are asked for as a browser does: by one request, or for an open page by a stream of
server-sent events. A process that gets the processor only when nobody else wants it reads the
streams, so that the broker is measured and not the browser.
"""

import multiprocessing
import os
import select
import shutil
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from tests.bench.compaction import round_trips
from tests.bench.figures import Figures, at
from tests.bench.over_the_wire import pipelined
from tests.bench.swarm import now
from tests.bench.two_brokers import GROUPS as OF_GROUPS
from tests.bench.two_brokers import await_coordinator, await_topic
from tests.support.broker_process import BrokerProcess
from tests.support.console_client import ConsoleClient, console_broker
from tests.support.requests import build
from tests.support.wire import WireClient

TOPICS, GROUPS = 10_000, 15_000
TOPICS_A_REQUEST = 500
CREATE_VERSION, COMMIT_VERSION = 7, 9
VIEWS = ("overview", "topics", "groups", "connections", "transactions", "maintenance", "log")
TABS = (*VIEWS, "overview", "topics", "groups")
REQUESTS = 15
SECONDS = 10.0
PAIRS = 5
JOIN_SECONDS = 10.0
READ_BYTES = 1 << 20


def console(scratch: Path, share: int) -> Figures:
    """A view's time; the CPU of an open overview; a producer's p99 with ten open pages."""
    directory = scratch / "console"
    with console_broker(directory, {}) as (broker, client):
        _fill(broker, TOPICS // share, GROUPS // share)
        figures = {f"{view}_ms": _milliseconds(client, view) for view in VIEWS}
        figures |= _cpu_of_overview(broker, client, SECONDS / share)
        figures |= _producer(broker, client, SECONDS / share)
    shutil.rmtree(directory)
    return figures


def _fill(broker: BrokerProcess, topics: int, groups: int) -> None:
    """Make topics of one partition, and groups that have committed an offset in one of them."""
    await_coordinator(broker, OF_GROUPS)
    names = [f"topic-{number}" for number in range(topics)]
    lots = [names[at : at + TOPICS_A_REQUEST] for at in range(0, topics, TOPICS_A_REQUEST)]
    with WireClient(broker.port) as client:
        creations = [_creation(lot) for lot in lots]
        pipelined(client, [client.frame_of(each, CREATE_VERSION) for each in creations])
        commits = [_commit(f"group-{number}", names[number % topics]) for number in range(groups)]
        pipelined(client, [client.frame_of(each, COMMIT_VERSION) for each in commits])
    for name in names[-1], names[0]:
        await_topic(broker, name)


def _creation(names: Sequence[str]) -> CreateTopicsRequest:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    request: CreateTopicsRequest = build(
        CreateTopicsRequest, CREATE_VERSION, topics=topics, timeout_ms=60_000
    )
    return request


def _commit(group_id: str, topic: str) -> OffsetCommitRequest:
    partition = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
    request: OffsetCommitRequest = build(
        OffsetCommitRequest,
        COMMIT_VERSION,
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": [partition]}],
    )
    return request


def _milliseconds(client: ConsoleClient, view: str) -> float:
    taken = []
    for _ in range(REQUESTS):
        began = now()
        client.get(f"/{view}")
        taken.append((now() - began) * 1e3)
    return statistics.median(taken)


def _cpu_of_overview(broker: BrokerProcess, client: ConsoleClient, seconds: float) -> Figures:
    """Per cent of one core, in turns without and with an open overview."""
    closed, opened = [], []
    for _ in range(PAIRS):
        closed.append(_cpu_percent(broker, seconds))
        with _open(client.port, ["overview"]):
            opened.append(_cpu_percent(broker, seconds))
    return {
        "idle_cpu_percent": statistics.median(closed),
        "overview_cpu_percent": statistics.median(opened),
    }


def _cpu_percent(broker: BrokerProcess, seconds: float) -> float:
    began, used = now(), broker.cpu_seconds()
    time.sleep(seconds)
    return (broker.cpu_seconds() - used) / (now() - began) * 100


def _producer(broker: BrokerProcess, client: ConsoleClient, seconds: float) -> Figures:
    """One record a millisecond, acks=all, in turns without and with ten open pages."""
    alone, beside = [], []
    for _ in range(PAIRS):
        alone.append(_trips(broker, seconds))
        with _open(client.port, TABS):
            beside.append(_trips(broker, seconds))
    return {
        "p50_us_alone": statistics.median(at(each, 0.50) for each in alone),
        "p50_us_beside": statistics.median(at(each, 0.50) for each in beside),
        "p99_us_alone": statistics.median(at(each, 0.99) for each in alone),
        "p99_us_beside": statistics.median(at(each, 0.99) for each in beside),
        "max_us_alone": max(each[-1] for each in alone),
        "max_us_beside": max(each[-1] for each in beside),
    }


def _trips(broker: BrokerProcess, seconds: float) -> list[float]:
    until = now() + seconds
    return round_trips(broker, "topic-0", lambda: now() < until)


@contextmanager
def _open(port: int, views: Sequence[str]) -> Iterator[None]:
    """Pages that show these views, and get them again whenever they change."""
    reader = multiprocessing.get_context("fork").Process(target=_read, args=(port, views))
    reader.start()
    try:
        yield
    finally:
        reader.kill()
        reader.join(JOIN_SECONDS)


def _read(port: int, views: Sequence[str]) -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    streams = [socket.create_connection(("127.0.0.1", port)) for _ in views]
    for stream, view in zip(streams, views, strict=True):
        request = (
            f"GET /api/v1/{view} HTTP/1.1\r\nHost: localhost:{port}\r\n"
            "Accept: text/event-stream\r\n\r\n"
        )
        stream.sendall(request.encode())
    while True:
        for stream in select.select(streams, [], [])[0]:
            if not stream.recv(READ_BYTES):
                raise ConnectionError("the broker has closed a page's stream")


WORKLOADS = {"console": console}
