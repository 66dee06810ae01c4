"""Ask Apache Kafka 3.9 and write down its answers: python -m tests.conformance.legacy.write_golden

Needs Java and Maven. Names of conversations as arguments write only those.
"""

import os
import sys
import tempfile
from pathlib import Path

from tests.conformance.legacy import all_conversations
from tests.conformance.legacy.talk import LegacyTalk, golden_file, write_golden
from tests.support.broker_process import ApacheKafkaProcess
from tests.support.kafka_jars import kafka_39_jars, why_no_jars


def main(names: list[str]) -> None:
    """Hold the conversations with a fresh broker."""
    jars = kafka_39_jars()
    if jars is None:
        sys.exit(why_no_jars())
    os.environ["ODRADEK_KAFKA_LIBS"] = str(jars)  # the broker's jars, for this process
    with tempfile.TemporaryDirectory() as directory:
        kafka = ApacheKafkaProcess(Path(directory))
        try:
            _write(kafka.start().port, names)
        finally:
            kafka.stop()


def _write(port: int, names: list[str]) -> None:
    for name, hold in all_conversations().items():
        if names and name not in names:
            continue
        talk = LegacyTalk(port)
        try:
            hold(talk)
        finally:
            talk.close()
        write_golden(golden_file(name), talk.lines)


if __name__ == "__main__":
    main(sys.argv[1:])
