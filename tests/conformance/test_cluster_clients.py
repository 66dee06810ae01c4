"""What seven client libraries live through while nodes fail: of odradek, and of Apache Kafka.

`tests/conformance/cluster/client_scripts.py` has the scripts. Both clusters must pass each, and an
application must see the same errors with both. The table of
docs/compatibility/cluster-clients.md is made of the same cells.
"""

import gc
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conformance.cluster.client_cells import (
    KEPT_SHORT,
    LIBRARY_NAMES,
    NOT_COMPARED,
    SEEN,
    TITLES,
)
from tests.conformance.cluster.client_scripts import CLIENT_SCRIPTS, Stage, restart_each
from tests.conformance.cluster.libraries import LIBRARIES
from tests.conformance.cluster.scripts import RACK_SETTINGS, RACKS
from tests.conformance.cluster.talk import ClusterTalk
from tests.support.clusters import CuttableCluster
from tests.support.kafka_answers import BROKERS
from tests.support.kafka_cluster import CuttableKafkaCluster, running_cluster
from tests.support.lengths import SEED, only_long
from tests.support.odradek_cluster import running_odradek_cluster
from tests.support.streams_application import CLASSIC, word_counting
from tests.support.word_count import why_no_streams

pytestmark = [
    pytest.mark.slow,
    # kafka-python leaves sockets to the collector where a node was killed; `talk` runs it.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@contextmanager
def _nodes(name: str, directory: Path) -> Iterator[CuttableCluster]:
    """Three nodes, each in a rack of its own."""
    if name == "kafka":
        kafka = CuttableKafkaCluster(directory, RACK_SETTINGS, of_node=RACKS)
        with running_cluster(kafka):
            yield kafka
        return
    racks = ",".join(one["broker.rack"] for one in RACKS.values())
    with running_odradek_cluster({**RACK_SETTINGS, "odradek.nodes.racks": racks}) as odradek:
        yield odradek


@pytest.fixture(scope="module", params=BROKERS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CuttableCluster]:
    """The nodes of most tests."""
    with _nodes(request.param, tmp_path_factory.mktemp("nodes")) as nodes:
        yield nodes


@pytest.fixture
def talk(cluster: CuttableCluster) -> Iterator[ClusterTalk]:
    """Raw requests to them; in the end all run again."""
    talk = ClusterTalk(cluster)
    yield talk
    talk.start_all()
    cluster.heal_cuts()
    talk.close()
    gc.collect()


def _cells() -> Iterator[Any]:
    for script in CLIENT_SCRIPTS:
        for library in LIBRARIES:
            cell = (script, library)
            marks = [pytest.mark.java] if library == "java" else []
            if cell in NOT_COMPARED:
                marks.append(pytest.mark.skip(NOT_COMPARED[cell]))
            if cell not in KEPT_SHORT:
                marks.append(only_long("other scripts and libraries"))
            yield pytest.param(script, library, marks=marks)


@pytest.mark.parametrize(("script", "library"), list(_cells()))
def test_a_client_lives_through_it(
    script: str, library: str, cluster: CuttableCluster, talk: ClusterTalk, topic: str
) -> None:
    client = LIBRARIES[library]
    reason = client.why_not()
    if reason:
        pytest.skip(reason)
    with ExitStack() as stack:
        seen = CLIENT_SCRIPTS[script](Stage(cluster, talk, client, topic, stack))
    assert {*seen} == {*SEEN.get((script, library), ())}


def test_the_page_has_every_script_and_library() -> None:
    assert list(TITLES) == list(CLIENT_SCRIPTS)
    assert list(LIBRARY_NAMES) == list(LIBRARIES)


@dataclass(frozen=True)
class _Nodes:
    """What Kafka Streams is told of a cluster."""

    bootstrap: str


@only_long("producers and consumers of the same library")
@pytest.mark.java
@pytest.mark.parametrize("protocol", ["classic", "streams"])
@pytest.mark.parametrize("name", BROKERS)
def test_kafka_streams_counts_each_word_once_while_every_node_is_restarted(
    name: str, protocol: str, tmp_path: Path
) -> None:
    reason = why_no_streams()
    if reason:
        pytest.skip(reason)
    settings = {
        "group.protocol": protocol,
        "replication.factor": "3",
        "transaction.timeout.ms": "20000",
        **(CLASSIC if protocol == "classic" else {}),
    }
    with (
        _nodes(name, tmp_path / "nodes") as cluster,
        closing(ClusterTalk(cluster)) as talk,
        word_counting(
            _Nodes(cluster.bootstrap_servers), tmp_path, Random(SEED), settings, replicas=3
        ) as (lines, counts, application),
    ):
        application.start(2)
        application.wait_until_counting(counts)
        restart_each(talk, "lines")
        application.wait_until_counting(counts)
        lines.stop()
        application.wait_until_counted(lines, counts)
        assert counts.words == lines.words, application.story()
