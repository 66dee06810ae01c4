"""Texts of the command line that no broker can be sent."""

import pytest
import typer
from typer.testing import CliRunner

from odradek.tools.app import app
from tests.docs.cli_page import commands

NOT_UTF8 = "\udcff"  # how Python reads the byte 0xff of an argument
WITHOUT_TEXTS = {"bench", "doctor", "pipeline"}
# Their bytes are kept as they are.
KEPT = {"--config", "--password-file", "--format"}
# What is no text at all, such as a number, is refused as such.
REFUSED = "is not UTF-8|valid|is not one of"


def test_a_text_that_is_not_utf8_is_refused_before_it_is_sent() -> None:
    for words, command in commands(typer.main.get_command(app), ()):
        parameters = {each.name: each for each in command.params}
        if "bootstrap" not in parameters or words[0] in WITHOUT_TEXTS:
            continue
        for each in parameters.values():
            if each.param_type_name == "option" and (each.is_flag or KEPT.intersection(each.opts)):
                continue
            before = ["topic"] if words[0] == "configs" else []
            given = [each.opts[0]] if each.param_type_name == "option" else before
            with pytest.raises(typer.BadParameter, match=REFUSED):
                command.make_context(words[-1], [*given, NOT_UTF8])


def test_a_replay_refuses_a_text_that_is_not_utf8() -> None:
    for option in ("--to-topic", "--topic-config", "--client-config"):
        words = ["pipeline", "replay", "archive", "--topic", "orders", option, f"a={NOT_UTF8}"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2, option
        assert "is not UTF-8" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["topics", "alter", "", "--set", "a=b"],
        ["topics", "alter", "orders", "--unset", ""],
        ["topics", "delete", "orders", ""],
        ["configs", "alter", "topic", "orders", "--unset", ""],
        ["groups", "reset-offsets", "", "--to", "earliest"],
        ["produce", ""],
        ["consume", ""],
        ["pipeline", "replay", "archive", "--topic", "orders", "--to-topic", ""],
    ],
)
def test_an_empty_name_is_refused(words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words, "-b", "127.0.0.1:1"])
    assert done.exit_code == 2
    assert "the name is empty" in done.stderr
