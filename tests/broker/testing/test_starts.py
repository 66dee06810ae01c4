"""What a fork of the template need not do: compile codecs and import modules."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.testing.broker import (
    MODULES_OF_CLUSTER,
    MODULES_OF_CONSOLE,
    MODULES_OF_REGISTRY,
    MODULES_OF_TLS,
    SETTINGS,
)
from odradek.broker.testing.security import Security
from odradek.broker.testing.start_codecs import READ, WRITTEN

# A start as in a fork. Prints what it compiles and imports.
START = """
import asyncio, json, sys
from odradek.broker.common.event_loop import new_event_loop
from odradek.broker.handlers import HANDLERS
from odradek.broker.testing.call_server import CallServer
from odradek.broker.testing.faults import Faults
from odradek.broker.testing.process import import_modules
from odradek.broker.testing.service import Setup
from odradek.broker.testing.leftover_clients import LeftoverClients
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.compiler import Codec

settings, modules, is_prepared = json.loads(sys.argv[1])
if is_prepared:
    CallServer()
import_modules(modules)
compiled = []

def noted(name):
    method = getattr(Codec, name)

    def call(codec, *arguments):
        compiled.append([name, codec.name, codec.version])
        return method(codec, *arguments)

    setattr(Codec, name, call)

for name in ("compile_decode", "compile_write", "_compile_reader", "_compile_small_reader"):
    noted(name)

async def start():
    config = BrokerConfig.from_texts(settings)
    running = await Setup(config, Faults(HANDLERS), LeftoverClients(HANDLERS)).open()
    imported = [name for name in sys.modules if name not in before]
    found = {"compiled": compiled[:], "imported": imported}
    await running.stop()
    return found

before = set(sys.modules)
with asyncio.Runner(loop_factory=new_event_loop) as runner:
    print(json.dumps(runner.run(start())))
"""


def start(settings: dict[str, str], modules: tuple[str, ...] = (), *, is_prepared: bool) -> Any:
    """What a start compiles and imports."""
    argument = json.dumps([{**SETTINGS, **settings}, modules, is_prepared])
    done = subprocess.run(
        [sys.executable, "-c", START, argument], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_template_compiles_what_a_start_uses_and_nothing_else(tmp_path: Path) -> None:
    found = start({"log.dirs": str(tmp_path)}, is_prepared=False)
    expected = [["compile_decode", message.__name__, version] for message, version in READ]
    expected += [["compile_write", message.__name__, version] for message, version in WRITTEN]
    assert sorted(found["compiled"]) == sorted(expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "secure", "registry", "console", "cluster"])
def test_a_broker_in_a_fork_compiles_and_imports_nothing(tmp_path: Path, kind: str) -> None:
    settings = {"log.dirs": str(tmp_path / "data")}
    modules: tuple[str, ...] = ()
    match kind:
        case "secure":
            settings |= Security(tmp_path / "tls").settings()
            modules = MODULES_OF_TLS
        case "registry":
            settings["odradek.registry.listener"] = "127.0.0.1:0"
            modules = MODULES_OF_REGISTRY
        case "console":
            settings |= {"odradek.http.listener": "127.0.0.1:0", "odradek.console": "true"}
            modules = MODULES_OF_CONSOLE
        case "cluster":
            settings["odradek.nodes"] = "3"
            modules = MODULES_OF_CLUSTER
    found = start(settings, modules, is_prepared=True)
    assert found["compiled"] == []
    assert [name for name in found["imported"] if name != "google"] == []  # a namespace, no file
