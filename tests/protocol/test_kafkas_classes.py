"""Apache Kafka's own message classes read what we write, and write the same bytes again."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol.schema import Message
from tests.support.kafka_jars import clients_44_jar, kafka_jars, why_no_jars
from tests.support.messages import all_messages, sample, smallest, versions_of

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parents[1] / "support" / "MessageEcho.java"


def echo(written: list[tuple[type[Message], int, bytes]]) -> list[str]:
    """What Kafka's classes make of each: its bytes in hex, and the number of bytes left unread."""
    clients, jars = clients_44_jar(), kafka_jars()
    if clients is None or jars is None or shutil.which("java") is None:
        pytest.skip(why_no_jars())
    lines = [f"{message.__name__} {version} {data.hex()}" for message, version, data in written]
    done = subprocess.run(
        ["java", "-cp", f"{clients}:{jars}/*", str(PROGRAM)],
        input="\n".join(lines),
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("make", [sample, smallest], ids=lambda made: made.__name__)
def test_kafka_reads_what_we_write_and_writes_the_same(
    make: Callable[[type[Message], int], Message],
) -> None:
    written = [
        (message, version, make(message, version).encode(version))
        for message in all_messages()
        for version in versions_of(message)
    ]
    echoes = echo(written)
    assert len(echoes) == len(written) > 600
    differing = [
        f"{message.__name__} v{version}: {data.hex()} became {echoed}"
        for (message, version, data), echoed in zip(written, echoes, strict=True)
        if echoed != f"{data.hex()} 0"
    ]
    assert differing == []
