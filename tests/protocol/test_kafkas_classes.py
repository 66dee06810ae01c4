"""Apache Kafka's own message classes read what we write, and write the same bytes again.

The newest clients' classes, and for the versions that only old clients speak those of Kafka 3.9.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.kafka_definitions import definitions
from tests.support.kafka_jars import clients_39_jar, kafka_jars, why_no_jars
from tests.support.messages import all_messages, emptiest, sample, smallest, versions_of

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parents[1] / "support" / "MessageEcho.java"


class Written(NamedTuple):
    """A message of ours: its bytes."""

    name: str
    version: int
    data: bytes

    @property
    def is_old(self) -> bool:
        """Whether the newest Kafka has dropped this version."""
        return self.version not in definitions()[self.name].versions


def everything() -> list[Written]:
    """Three values of every message in every version, written by us."""
    return [
        Written(message.__name__, version, make(message, version).encode(version))
        for message in all_messages()
        for version in versions_of(message)
        for make in (sample, smallest, emptiest)
    ]


def differences(written: list[Written]) -> list[str]:
    """What Kafka reads or writes otherwise, a line for each."""
    echoes = {
        each: echoed
        for is_old in (False, True)
        for each, echoed in echo([each for each in written if each.is_old is is_old], is_old)
    }
    return [
        f"{name} v{version}: {data.hex()} became {echoed}"
        for (name, version, data), echoed in echoes.items()
        if echoed != f"{data.hex()} 0"
    ]


def echo(written: list[Written], is_old: bool) -> Iterator[tuple[Written, str]]:
    """What the classes make of each: its bytes in hex, and the number of bytes left unread."""
    if not written:
        return iter(())
    jars, old_clients = kafka_jars(), clients_39_jar() if is_old else None
    if jars is None or (is_old and old_clients is None):
        pytest.skip(why_no_jars())
    first = f"{old_clients}:" if is_old else ""
    done = subprocess.run(
        ["java", "-cp", f"{first}{jars}/*", str(PROGRAM)],
        input="\n".join(f"{name} {version} {data.hex()}" for name, version, data in written),
        check=True,
        capture_output=True,
        text=True,
    )
    return zip(written, done.stdout.splitlines(), strict=True)


def test_kafka_reads_what_we_write_and_writes_the_same() -> None:
    written = everything()
    assert len(written) > 3 * 650
    assert differences(written) == []


def test_a_difference_would_be_told() -> None:
    good = next(each for each in everything() if each.name == "ShareUpdateValue")
    broken = [good._replace(data=good.data[:-1]), good._replace(data=good.data + b"\0"), good]
    assert len(differences(broken)) == 2
