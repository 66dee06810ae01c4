"""What is loaded and compiled, and when: a broker starts in the time that this takes."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from odradek.protocol.compiler import Codec
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.schema import DecodeError, codec_for
from odradek.protocol.source import Source

PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module("odradek.protocol." + name)
print(*sorted(name.partition(".")[0] for name in sys.modules))
print("odradek.protocol.compiler" in sys.modules)
"""


MESSAGES = ["messages.produce", "messages.fetch"]
RECORDS = [
    f"records.{log}"
    for log in ("consumer_offsets", "transaction_state", "share_group_state", "cluster_metadata")
]


@pytest.mark.parametrize("modules", [MESSAGES, RECORDS], ids=["messages", "records"])
def test_a_declaration_loads_no_compiler_and_nothing_heavy(modules: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *modules], check=True, capture_output=True, text=True
    )
    loaded, compiler = done.stdout.splitlines()
    assert compiler == "False"
    heavy = {"asyncio", "kio", "hypothesis", "dataclasses", "uvloop"}
    assert not heavy & set(loaded.split())


ROOM = """
import importlib, pkgutil, sys
import odradek.protocol
for module in pkgutil.iter_modules(odradek.protocol.__path__):
    if not module.ispkg:
        importlib.import_module("odradek.protocol." + module.name)
print(*(name for name in sys.modules if name.startswith("odradek.protocol.messages")))
"""


def test_no_message_is_imported_by_what_reads_and_writes_them() -> None:
    done = subprocess.run([sys.executable, "-c", ROOM], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is compiled from now on."""
    names: list[str] = []
    compile_it = Source.compiled

    def compile_and_note(source: Source, function: str) -> Callable[..., Any]:
        made = compile_it(source, function)
        names.append(made.__code__.co_filename)
        return made

    monkeypatch.setattr(Source, "compiled", compile_and_note)
    return names


def test_a_codec_compiles_what_is_used_and_when_it_is_used(compiled: list[str]) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    codec = Codec(HeartbeatRequest, 4)
    assert compiled == []
    data = codec.encode(request)
    assert compiled == ["<write HeartbeatRequest v4>"]
    assert codec.decode(bytes(data)) == codec.decode(bytes(data)) == (request, len(data))
    assert compiled[1:] == ["<quickly read HeartbeatRequest v4>"]
    with pytest.raises(DecodeError):
        codec.decode(b"")
    assert compiled[2:] == ["<read HeartbeatRequest v4>"]


def test_a_codec_is_made_once() -> None:
    assert codec_for(HeartbeatRequest, 3) is codec_for(HeartbeatRequest, 3)


def test_the_generated_source_can_be_looked_at() -> None:
    codec = codec_for(HeartbeatRequest, 4)
    assert codec.quick_reader_source().startswith("def read(data, p):")
    assert codec.reader_source().startswith("def read(data, p):")
    assert codec.writer_source().startswith("def write(m, out, splices, pieces):")
