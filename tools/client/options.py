"""Options that several commands share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

LARGEST_INT32 = (1 << 31) - 1


def parse_text(text: str) -> str:
    """Parse a text that is sent to a broker. Raises BadParameter if it is not UTF-8.

    confluent-kafka ends the process at some of those. Kafka's protocol puts question marks in their
    place, and so may name something else.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise typer.BadParameter(f"{text!r} is not UTF-8") from None
    return text


def parse_name(text: str) -> str:
    """Parse the name of a topic, a group or a setting. Raises BadParameter, also if it is empty."""
    if not text:
        raise typer.BadParameter("the name is empty")
    return parse_text(text)


# Older versions of typer show it as the type of an argument.
parse_text.__name__ = parse_name.__name__ = "text"


Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        parser=parse_text,
        envvar="ODRADEK_BOOTSTRAP",
        help="The broker. \\[default: bootstrap.servers in --config, or localhost:9092]",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="ODRADEK_CLIENT_CONFIG",
        help="Properties of the client, for example its credentials; of librdkafka or of Java.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        parser=parse_text,
        help="A setting; may be given several times.",
    ),
]


def refuse_together(options: Mapping[str, bool]) -> None:
    """Raise BadParameter if more than one of these options is given: they contradict each other."""
    given = [name for name, is_given in options.items() if is_given]
    if len(given) > 1:
        raise typer.BadParameter(f"give {given[0]} or {given[1]}, not both")


def pairs(settings: Sequence[str] | None, removed: Sequence[str] | None = None) -> dict[str, str]:
    """Settings of --set as a dictionary. Raises BadParameter, also for one that is in --unset."""
    found: dict[str, str] = {}
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{setting} is not KEY=VALUE", param_hint="--set")
        if found.setdefault(name, value) != value:
            raise typer.BadParameter(f"{name} has two values", param_hint="--set")
    for name in found.keys() & set(removed or []):
        raise typer.BadParameter(f"{name} is in --set and in --unset")
    return found
