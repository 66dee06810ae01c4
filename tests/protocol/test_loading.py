"""What is loaded and compiled, and when: a broker starts in the time that this takes."""

import subprocess
import sys

from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.schema import codec_for

PROGRAM = """
import sys
import odradek.protocol.messages.produce, odradek.protocol.messages.fetch
print(*sorted(name.partition(".")[0] for name in sys.modules))
print("odradek.protocol.compiler" in sys.modules)
"""


def test_a_declaration_loads_no_compiler_and_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    loaded, compiler = done.stdout.splitlines()
    assert compiler == "False"
    heavy = {"asyncio", "kio", "pydantic", "hypothesis", "dataclasses", "uvloop"}
    assert not heavy & set(loaded.split())


def test_a_codec_is_made_once() -> None:
    assert codec_for(HeartbeatRequest, 3) is codec_for(HeartbeatRequest, 3)


def test_the_generated_source_can_be_looked_at() -> None:
    codec = codec_for(HeartbeatRequest, 4)
    assert codec.reader_source().startswith("def read(b, p, limit):")
    assert codec.writer_source().startswith("def write(m, out, splices):")
