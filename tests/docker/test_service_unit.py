"""The systemd unit: it is well-formed, and its command and paths agree with each other."""

import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "packaging" / "odradek.service"


def test_the_service_keeps_its_data_in_the_state_directory_and_notifies() -> None:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # the documented way
    parser.read(UNIT)
    service = parser["Service"]
    assert service["ExecStart"].split()[1:] == ["serve", "/etc/odradek/server.properties"]
    assert (service["Type"], service["StateDirectory"]) == ("notify", "odradek")
    assert service["RestartPreventExitStatus"] == "2"  # EXIT_BAD_CONFIG


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/odradek/bin/odradek", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
