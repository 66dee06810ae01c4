"""The file of --config, in the words of Kafka's own clients."""

from pathlib import Path

import pytest

from odradek.tools.client.client_config import client_settings
from odradek.tools.client.failure import CommandError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize(
    "options",
    [
        'username="ann" \\\n  password="p;w"',
        "username='ann' password='p;w'",
        "username=ann password='p;w'",
    ],
)
def test_user_and_password_are_read_as_java_reads_them(options: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.jaas.config={PLAIN} {options};\n")
    assert client_settings("x:1", file) == {
        "bootstrap.servers": "x:1",
        "sasl.username": "ann",
        "sasl.password": "p;w",
    }


@pytest.mark.parametrize(
    ("jaas", "reason"),
    [(f"{PLAIN};", "no username and password"), (f"{PLAIN} username='ann'", "sasl.jaas.config")],
)
def test_a_login_that_cannot_be_read_is_one_line_without_its_text(
    jaas: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.jaas.config={jaas}\n")
    with pytest.raises(CommandError, match=reason) as failure:
        client_settings(None, file)
    assert "LoginModule" not in str(failure.value)
