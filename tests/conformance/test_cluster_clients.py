"""What seven client libraries live through while nodes fail: of odradek, and of Apache Kafka.

`tests/conformance/cluster/client_scripts.py` has the scripts. Both clusters must pass each, and an
application must see the same errors with both. The table of
docs/compatibility/cluster-clients.md is made of the same cells.
"""

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.conformance.cluster.client_cells import (
    KEPT_SHORT,
    LIBRARY_NAMES,
    NOT_COMPARED,
    SEEN,
    TITLES,
)
from tests.conformance.cluster.client_scripts import CLIENT_SCRIPTS, Stage
from tests.conformance.cluster.libraries import LIBRARIES
from tests.conformance.cluster.scripts import RACK_SETTINGS, RACKS
from tests.conformance.cluster.talk import ClusterTalk
from tests.support.clusters import CuttableCluster
from tests.support.kafka_answers import BROKERS
from tests.support.kafka_cluster import CuttableKafkaCluster, running_cluster
from tests.support.lengths import only_long
from tests.support.odradek_cluster import running_odradek_cluster

pytestmark = [
    pytest.mark.slow,
    # kafka-python leaves sockets to the collector where a node was killed; `talk` runs it.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", params=BROKERS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CuttableCluster]:
    """Three nodes, each in a rack of its own."""
    if request.param == "kafka":
        kafka = CuttableKafkaCluster(tmp_path_factory.mktemp("kafka"), RACK_SETTINGS, of_node=RACKS)
        with running_cluster(kafka):
            yield kafka
        return
    racks = ",".join(one["broker.rack"] for one in RACKS.values())
    with running_odradek_cluster({**RACK_SETTINGS, "odradek.nodes.racks": racks}) as odradek:
        yield odradek


@pytest.fixture
def talk(cluster: CuttableCluster) -> Iterator[ClusterTalk]:
    """Raw requests to them; in the end all run again."""
    talk = ClusterTalk(cluster)
    yield talk
    cluster.heal_cuts()
    talk.start_all()
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
