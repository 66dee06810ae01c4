"""The page of all commands."""

import argparse
from collections.abc import Iterator
from typing import Any

import typer

from odradek.tools.app import app
from odradek.tools.serve import _parser as serve_parser
from tests.docs.markdown import code, table

INTRODUCTION = """\
# Command line

`odradek serve` and the commands that read data directories need nothing but odradek. The others
talk to a broker, and work with any Kafka: `produce`, `consume`, `topics`, `configs`, `bench` and
`groups`, but for `groups list`, need `odradek[cli]`; `doctor`, `transactions`, `users`, `acls`,
`quotas` and `tokens` do not. `odradek pipeline` needs `odradek[pipeline]`; `--master` needs
`odradek[spark]` and Java 17. [Get started](../get-started.md#install) says how to install them.

`--bootstrap` (or `ODRADEK_BOOTSTRAP`) names the broker. `--config FILE` has the settings of the
client, as librdkafka or as Java writes them. `--help` of a command prints what is here. `odradek
--install-completion` completes names in the shell.
"""


def cli_page() -> str:
    """Every command with its arguments and options."""
    parts = [INTRODUCTION]
    for words, command in commands(typer.main.get_command(app), ("odradek",)):
        if not _is_group(command):
            parts += _serve() if words == ("odradek", "serve") else _command(words, command)
    return "\n".join(parts)


def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A typer command and those below it, each with the words that call it."""
    yield words, command
    if _is_group(command):
        for name in command.list_commands(None):
            yield from commands(command.get_command(None, name), (*words, name))


def _is_group(command: Any) -> bool:
    return hasattr(command, "list_commands")


def _command(words: tuple[str, ...], command: Any) -> list[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option"]
    usage = " ".join([*words, *map(_argument, arguments), *(["[OPTION]..."] if options else [])])
    parts = [f"## {' '.join(words)}\n", _paragraphs(command.help or ""), f"    {usage}\n"]
    described = [param for param in arguments if param.help]
    if described:
        parts.append(
            table(("argument", ""), ((code(_name(param)), _help(param)) for param in described))
        )
    shown = [param for param in options if not param.hidden]
    if shown:
        parts.append(table(("option", ""), ((_option(p), _meaning(p)) for p in shown)))
    return parts


def _paragraphs(text: str) -> str:
    return "\n".join(line.strip() for line in text.replace("\b", "").strip().splitlines()) + "\n"


def _name(param: Any) -> str:
    return str(param.metavar or param.name.upper()).strip("[]")


def _argument(param: Any) -> str:
    return _name(param) if param.required else f"[{_name(param)}]"


def _option(param: Any) -> str:
    names = ", ".join(map(code, [*reversed(param.opts), *param.secondary_opts]))
    return names if param.is_flag else f"{names} {_value(param)}"


def _value(param: Any) -> str:
    choices = param.type_descriptor.choices
    return " or ".join(code(str(choice)) for choice in choices or [_name(param)])


def _help(param: Any) -> str:
    """The help of an argument or option; brackets are escaped in it, because rich reads it."""
    return (param.help or "").replace("\\[", "[")


def _meaning(param: Any) -> str:
    words = [_help(param)]
    if param.required:
        words.append("Required.")
    if param.multiple and "several times" not in words[0]:
        words.append("May be given several times.")
    if param.envvar:
        words.append(f"Environment: {code(str(param.envvar))}.")
    if not param.is_flag and param.default not in (None, ()) and param.show_default is not False:
        words.append(f"Default: {code(str(param.default))}.")
    return " ".join(filter(None, words))


def _serve() -> list[str]:
    """`serve` is parsed by argparse: see tools/cli.py."""
    actions = [
        action for action in serve_parser()._actions if not isinstance(action, argparse._HelpAction)
    ]
    rows = (
        (
            ", ".join(map(code, action.option_strings)) or code(str(action.metavar)),
            " or ".join(map(code, action.choices or [str(action.metavar or "")])),
            action.help or "",
        )
        for action in actions
    )
    return [
        "## odradek serve\n",
        "Run the broker. Exit codes: 0 after a clean shutdown, 2 if the configuration, or what is\n"
        "in the data directories, cannot be served, 1 for any other failure.\n",
        "    odradek serve [FILE] [OPTION]...\n",
        table(("option", "value", ""), rows),
    ]
