"""What a start does with the registry, and without it."""

import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker.lifecycle.running import start_broker
from odradek.broker.registry import libraries
from odradek.broker.testing import Broker, BrokerError
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from tests.support.registry_client import RegistryClient


async def test_without_its_libraries_a_start_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "_LIBRARIES", ("google.protobuf", "missing.part", "not_there"))
    settings = {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "odradek.registry.listener": "127.0.0.1:0",
    }
    with pytest.raises(ConfigError, match=r"missing.part, not_there: pip install 'odradek\[regi"):
        await start_broker(BrokerConfig.from_texts(settings))
    assert not (tmp_path / "data").exists(), "nothing was touched"


def test_a_broker_without_a_registry_imports_nothing_of_it() -> None:
    program = (
        "import sys\n"
        "from odradek.broker.testing.broker import Broker\n"
        "import odradek.tools.serve, odradek.broker.lifecycle.run\n"
        "import odradek.broker.testing.call_server\n"
        "names = ('h11', 'odradek.broker.http', 'odradek.broker.registry',"
        " 'odradek.coordinator.registry', 'referencing', 'google.protobuf')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_the_first_schemas_import_nothing_on_the_loop() -> None:
    program = """
import base64, sys
import odradek.broker.registry.rest_server
before = set(sys.modules)
from odradek.coordinator.registry import formats
texts = {
    "AVRO": '{"type":"record","name":"R","fields":[]}',
    "JSON": '{"patternProperties":{"a.*":{"$ref":"#/definitions/d"}},"definitions":{"d":{}}}',
    "PROTOBUF": "message M { optional bytes a = 1 [default = 'x']; }",
}
other = '{"properties":{"a":{"type":"string"}},"additionalProperties":false}'
for kind, text in texts.items():
    parsed = formats.parse(kind, text, {}, is_new=True)
    formats.compatibility(kind, parsed.normalized(), parsed)
serialized = formats.formatted("PROTOBUF", parsed, "serialized")
formats.parse("PROTOBUF", serialized, {}, is_new=True)
new, old = (formats.parse("JSON", text, {}, is_new=True) for text in (other, texts["JSON"]))
formats.compatibility("JSON", old, new)
print([name for name in sorted(set(sys.modules) - before) if not name.startswith("encodings.")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_broker_of_tests_has_a_registry_only_if_it_is_asked_for(tmp_path: Path) -> None:
    with Broker(tmp_path / "one") as broker, pytest.raises(BrokerError, match="registry=True"):
        _ = broker.registry_url


@pytest.mark.slow
def test_a_broker_of_tests_keeps_the_registry_in_its_snapshots(tmp_path: Path) -> None:
    with Broker(tmp_path / "one", registry=True) as broker:
        registry = RegistryClient(broker.registry_url)
        registry.register("s", '"int"')
        snapshot = broker.snapshot()
        registry.register("t", '"string"')
        broker.restore(snapshot)
        assert RegistryClient(broker.registry_url).get("/subjects") == ["s"]
