"""The examples of the documentation do what they say."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer

from odradek.broker.requests.dispatch import request_class
from odradek.config.loading import load_config
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import DecodeError
from odradek.tools.app import app
from odradek.tools.serve import _parser as serve_parser
from tests.docs.markdown import Block, examples
from tests.support.broker_process import BrokerProcess

BLOCKS = examples()
PYTHON = [block for block in BLOCKS if block.language == "python"]
OF_PYTEST = [block for block in PYTHON if "odradek_" in block.text]
PROGRAMS = [block for block in PYTHON if re.search(r"KafkaProducer|with Broker", block.text)]
LIMIT_SECONDS = 60


def name_of(block: Block) -> str:
    return f"{block.file.name}-{BLOCKS.index(block)}"


@pytest.mark.parametrize(
    "block", [block for block in PROGRAMS if block not in OF_PYTEST], ids=name_of
)
@pytest.mark.slow
def test_a_program_runs(block: Block, broker: BrokerProcess) -> None:
    program = block.text.replace("localhost:9092", broker.bootstrap)
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "print(" not in program or done.stdout


@pytest.mark.slow
def test_the_tests_pass(tmp_path: Path) -> None:
    for number, block in enumerate(OF_PYTEST):
        directory = tmp_path / f"example_{number}"
        directory.mkdir()
        name = "test_it.py" if "def test_" in block.text else "conftest.py"
        (directory / name).write_text(block.text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )
    count = sum("def test_" in block.text for block in OF_PYTEST)
    assert f"{count} passed" in done.stdout, done.stdout + done.stderr


def test_the_example_of_the_protocol_ends_with_the_error_that_it_shows() -> None:
    (block,) = (block for block in PYTHON if "# DecodeError" in block.text)
    with pytest.raises(DecodeError) as caught:
        exec(compile(block.text, block.file.name, "exec"), {})
    assert f"# DecodeError: {caught.value}" in block.text


def test_the_example_of_a_handler_is_one() -> None:
    (block,) = (block for block in PYTHON if "def handle(" in block.text)
    names: dict[str, Any] = {}
    exec(compile(block.text, block.file.name, "exec"), names)
    assert request_class(names["handle"]).SPEC.key is ApiKey.UNREGISTER_CONTROLLER


@pytest.mark.parametrize("block", PYTHON, ids=name_of)
def test_an_example_is_python(block: Block) -> None:
    compile(block.text, block.file.name, "exec")


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "properties"], ids=name_of
)
def test_a_configuration_is_accepted(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(block.text)
    load_config(file, [])


def commands_in(text: str) -> Iterator[list[str]]:
    """The words of each call of odradek in shell lines."""
    for line in text.splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        call: list[str] = []
        for word in [*words, ";"]:
            if set(word) <= set("();<>|&"):
                if call[:1] == ["odradek"]:
                    yield call[1:]
                call = []
            else:
                call.append(word)


COMMANDS = [
    command for block in BLOCKS if block.language == "sh" for command in commands_in(block.text)
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_has_these_options(command: list[str]) -> None:
    with redirect_stderr(StringIO()) as said:
        try:
            parse(command)
        except SystemExit:
            pytest.fail(said.getvalue())


def parse(command: list[str]) -> None:
    """Parse the words as odradek does, without running the command."""
    if command[0] == "serve":
        serve_parser().parse_args(command[1:])
        return
    found: Any = typer.main.get_command(app)
    while hasattr(found, "get_command"):
        name, *command = command
        found = found.get_command(None, name)
        assert found is not None, f"there is no command {name}"
    found.make_context(name, command)


def test_a_wrong_option_would_be_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(["topics", "create", "orders", "--partition-count", "3"])
