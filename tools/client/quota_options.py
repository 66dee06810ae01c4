"""The options of `odradek quotas`. The code that does the work is imported on demand."""

from typing import Annotated

import typer

from .failure import reported
from .options import AsJson, Bootstrap, ConfigFile, parse_text
from .quota_keys import QuotaKey

app = typer.Typer(
    help="List, set and remove limits of users, client ids and addresses.", no_args_is_help=True
)

_DEFAULT_HELP = "those without a quota of their own"
User = Annotated[
    str | None, typer.Option("--user", metavar="USER", parser=parse_text, help="A user.")
]
ClientId = Annotated[
    str | None,
    typer.Option("--client-id", metavar="ID", parser=parse_text, help="A client id (client.id)."),
]
Address = Annotated[
    str | None, typer.Option("--ip", metavar="IP", parser=parse_text, help="A client's address.")
]
AnyUser = Annotated[bool, typer.Option("--default-user", help=f"All users: {_DEFAULT_HELP}.")]
AnyClientId = Annotated[
    bool, typer.Option("--default-client-id", help=f"All client ids: {_DEFAULT_HELP}.")
]
AnyAddress = Annotated[bool, typer.Option("--default-ip", help=f"All addresses: {_DEFAULT_HELP}.")]


def _entity(
    user: str | None,
    client_id: str | None,
    ip: str | None,
    any_user: bool,
    any_client_id: bool,
    any_ip: bool,
) -> dict[str, str | None]:
    """The entity that the options name, by type; None stands for the default of a type."""
    entity: dict[str, str | None] = {}
    for kind, name, is_default in (
        ("user", user, any_user),
        ("client-id", client_id, any_client_id),
        ("ip", ip, any_ip),
    ):
        if name is not None and is_default:
            raise typer.BadParameter(f"give --{kind} or --default-{kind}, not both")
        if name is not None or is_default:
            entity[kind] = name
    return entity


@app.command("list")
def list_(  # noqa: PLR0913 # one for each option
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Address = None,
    any_user: AnyUser = False,
    any_client_id: AnyClientId = False,
    any_ip: AnyAddress = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """List the quotas: all, or those that name a user, a client id or an address."""
    entity = _entity(user, client_id, ip, any_user, any_client_id, any_ip)
    with reported():
        from .quotas import QuotaCommands

        with QuotaCommands(bootstrap, config) as commands:
            commands.show(entity, as_json=as_json)


@app.command("set")
def set_(  # noqa: PLR0913 # one for each option
    *,
    quotas: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=NUMBER",
            parser=parse_text,
            help="producer_byte_rate or consumer_byte_rate (bytes in a second),"
            " request_percentage (of a thread's time), controller_mutation_rate (partitions in a"
            " second); of an address: connection_creation_rate (in a second).",
        ),
    ],
    user: User = None,
    client_id: ClientId = None,
    ip: Address = None,
    any_user: AnyUser = False,
    any_client_id: AnyClientId = False,
    any_ip: AnyAddress = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Set quotas of a user, a client id, both together, or an address."""
    entity = _entity(user, client_id, ip, any_user, any_client_id, any_ip)
    with reported():
        from .quotas import QuotaCommands, parse_quotas

        values = parse_quotas(quotas)
        with QuotaCommands(bootstrap, config) as commands:
            commands.alter(entity, values)


@app.command()
def remove(  # noqa: PLR0913 # one for each option
    *,
    keys: Annotated[
        list[QuotaKey] | None, typer.Argument(metavar="KEY", help="\\[default: all quotas]")
    ] = None,
    user: User = None,
    client_id: ClientId = None,
    ip: Address = None,
    any_user: AnyUser = False,
    any_client_id: AnyClientId = False,
    any_ip: AnyAddress = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Remove quotas; those of a less specific entity apply again."""
    entity = _entity(user, client_id, ip, any_user, any_client_id, any_ip)
    with reported():
        from .quotas import QuotaCommands

        with QuotaCommands(bootstrap, config) as commands:
            commands.remove(entity, [key.value for key in keys or []])
