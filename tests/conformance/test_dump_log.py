"""kafka-dump-log finds nothing wrong in any file of a broker that has been used hard.

The broker has short segments and dense indexes, was killed once in the middle, and was then ended
properly; its clients wrote every codec, idempotently and not, and committed offsets.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from odradek.tools.app import app
from tests.conformance.clients import CLIENTS
from tests.conformance.clients.client import CODECS, Sent
from tests.support.broker_process import BrokerProcess, make_broker, why_no_broker
from tests.support.dumps import KafkasDumps, difference, our_dump
from tests.support.java_tools import JavaTools, ToolFailedError
from tests.support.lengths import only_long
from tests.support.topics import create_topic, delete_topic

pytestmark = [
    pytest.mark.java,
    only_long("what Kafka dumps of our logs is in test_kafka_dumps_our_logs.py"),
]

SETTINGS = {
    "log.roll.ms": "1000",  # of the records' own time: a segment for every few batches
    "log.index.interval.bytes": "512",
    "log.cleaner.enable": "false",  # what it compacts has gaps
    "offsets.topic.segment.bytes": "1048576",
    "offsets.topic.num.partitions": "5",
}
START_MS = 1_700_000_000_000
# The tool compares the first record of a file with offset 0, whatever the file's name says.
QUIRK = re.compile(r"^(Non-consecutive offsets in .*|  -1 is followed by \d+)$")
HARMLESS = re.compile(r"^(Ignoring unknown file .*|SLF4J.*)$")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, java: JavaTools) -> Iterator[Path]:
    """The data directory that is left behind."""
    reason = why_no_broker()
    if reason:
        pytest.skip(reason)
    broker = make_broker(tmp_path_factory.mktemp("dump"), SETTINGS)
    try:
        use(broker.start(), "before")
        broker.kill()
        use(broker.start(), "after")
        broker.terminate()
        yield broker.data
    finally:
        broker.stop()


def use(broker: BrokerProcess, round_name: str) -> None:
    """Topics come and go, records of every kind are written, offsets are committed."""
    for name, client in CLIENTS.items():
        topic = f"{round_name}-{name}"
        create_topic(broker.bootstrap, topic, len(CODECS))
        for partition, codec in enumerate(CODECS):
            records = [
                Sent(f"{n} {'x' * (n % 700)}".encode(), b"key", partition, START_MS + n * 5)
                for n in range(1200)
            ]
            client.produce(broker.bootstrap, topic, records[:600], codec=codec)
            client.produce(broker.bootstrap, topic, records[600:], codec=codec, idempotent=False)
        reader = client.reader(broker.bootstrap, topic, [0, 1], f"group-{name}")
        for place in range(10, 200, 10):
            reader.read(10)
            reader.commit(0, place, "metadata")
        reader.close()
    create_topic(broker.bootstrap, f"{round_name}-deleted")
    delete_topic(broker.bootstrap, f"{round_name}-deleted")


def files(data: Path, *endings: str) -> list[str]:
    found = [
        str(path)
        for path in sorted(data.rglob("*"))
        if path.suffix in endings and not path.parent.name.endswith(("-delete", "-stray"))
    ]
    assert found, f"no {endings} in {data}"
    return found


def complaints(output: str) -> list[str]:
    """The lines of the tool that tell of something wrong."""
    wrong = re.compile(
        r"isvalid: false|isValid: false|invalid bytes|Mismatch|mismatch|[Nn]on-consecutive"
        r"|is followed by|out of order|not found|could not|[Ee]xception|[Ee]rror|^\s+at "
    )
    lines = (line for line in output.splitlines() if not HARMLESS.match(line))
    return [line for line in lines if wrong.search(line) and not QUIRK.match(line)]


def dump(java: JavaTools, names: list[str], *options: str) -> str:
    output = java.run("DumpLogSegments", *options, "--files", ",".join(names), limit_s=300)
    assert complaints(output) == []
    assert output.count("Dumping ") == len(names)
    return output


def test_the_records_of_every_segment(data: Path, java: JavaTools) -> None:
    output = dump(java, files(data, ".log"), "--deep-iteration")
    for codec in CODECS:
        assert f"compresscodec: {codec} " in output
    rolled = [name for name in files(data, ".log") if not name.endswith(f"/{0:020}.log")]
    assert len(rolled) > 20, "the segments were meant to be rolled"


@pytest.mark.parametrize(
    "options", [["--index-sanity-check"], ["--verify-index-only"], []], ids=["sane", "match", "all"]
)
def test_the_entries_of_every_index(data: Path, java: JavaTools, options: list[str]) -> None:
    output = dump(java, files(data, ".index", ".timeindex"), *options)
    if options == ["--index-sanity-check"]:
        assert output.count("passed sanity check.") > 20
    if not options:
        assert len(re.findall(r"^offset: \d+ position: \d+$", output, re.MULTILINE)) > 200
        assert len(re.findall(r"^timestamp: \d+ offset: \d+$", output, re.MULTILINE)) > 200


def test_the_producers_of_every_snapshot(data: Path, java: JavaTools) -> None:
    output = dump(java, files(data, ".snapshot"))
    assert re.search(r"producerId: \d+ producerEpoch: 0 .* lastSequence: 599 ", output)


def test_the_committed_offsets_are_decoded(data: Path, java: JavaTools) -> None:
    names = [name for name in files(data, ".log") if "__consumer_offsets-" in name]
    output = dump(java, names, "--offsets-decoder")
    for name in CLIENTS:
        pattern = rf'"group":"group-{name}","topic":"(before|after)-{name}","partition":0'
        assert len(re.findall(pattern, output)) == 2 * 19, name


def test_the_metadata_log_is_decoded(data: Path, java: JavaTools) -> None:
    names = [name for name in files(data, ".log") if "__cluster_metadata-0" in name]
    output = dump(java, names, "--cluster-metadata-decoder")
    for name in CLIENTS:
        assert f'"name":"before-{name}"' in output
        assert f'"name":"after-{name}"' in output
    for kind in ("TOPIC_RECORD", "PARTITION_RECORD", "REMOVE_TOPIC_RECORD", "FEATURE_LEVEL_RECORD"):
        assert f'"type":"{kind}"' in output
    assert '"type":"PRODUCER_IDS_RECORD"' in output


def test_our_own_tools_see_the_same(data: Path) -> None:
    """odradek's dump is Kafka's, line for line, and its verification finds nothing to say."""
    with KafkasDumps() as kafka:
        for options in (["--deep-iteration"], ["--offsets-decoder"]):
            for name in files(data, ".log"):
                if options[0] == "--offsets-decoder" and "__consumer_offsets-" not in name:
                    continue
                arguments = [*options, "--files", name]
                assert difference(kafka.dump(*arguments), our_dump(*arguments)) is None, name
    done = CliRunner().invoke(app, ["verify", "--deep", str(data)])
    assert done.exit_code == 0, done.stdout
    assert "problem: " not in done.stdout


def test_the_tool_would_tell(data: Path, java: JavaTools, tmp_path: Path) -> None:
    """A guard on the tests above: a flipped byte and a moved index entry are complained about."""
    partition = data / "before-kafka-python-0"
    for ending in ("log", "index", "timeindex"):
        name = f"{0:020}.{ending}"
        content = bytearray((partition / name).read_bytes())
        content[7 if ending != "log" else len(content) - 2] ^= 0x41
        (tmp_path / name).write_bytes(content)
    for ending, options in (("log", []), ("index", ["--verify-index-only"]), ("timeindex", [])):
        file = str(tmp_path / f"{0:020}.{ending}")
        try:
            output = java.run("DumpLogSegments", "--deep-iteration", *options, "--files", file)
        except ToolFailedError as error:
            output = str(error)
        assert complaints(output) != [], f"{ending}: {output}"
