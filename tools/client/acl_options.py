"""The options of `odradek acls`. The code that does the work is imported on demand."""

from typing import Annotated

import typer

from .acl_terms import CLUSTER_NAME, Operation, Resource
from .failure import reported
from .options import AsJson, Bootstrap, ConfigFile, parse_text
from .principals import principal_text

app = typer.Typer(help="List, add and remove access control entries (ACLs).", no_args_is_help=True)

_PRINCIPAL_HELP = "A user's name, or TYPE:NAME; User:* are all users."
Principal = Annotated[
    str, typer.Argument(metavar="PRINCIPAL", parser=parse_text, help=_PRINCIPAL_HELP)
]
AnyPrincipal = Annotated[
    str | None,
    typer.Argument(
        metavar="PRINCIPAL", parser=parse_text, help=f"{_PRINCIPAL_HELP} \\[default: any]"
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="NAME", parser=parse_text, help="A topic; *: all topics."),
]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME", parser=parse_text, help="A group; *: all groups."),
]
TransactionalIds = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="ID", parser=parse_text, help="A transactional id."),
]
Tokens = Annotated[
    list[str] | None,
    typer.Option("--delegation-token", metavar="ID", parser=parse_text, help="A delegation token."),
]
Users = Annotated[
    list[str] | None,
    typer.Option(
        "--user",
        metavar="USER",
        parser=parse_text,
        help="A user, as the owner of delegation tokens.",
    ),
]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster.")]
Prefix = Annotated[
    bool, typer.Option("--prefix", help="The names are prefixes: orders stands for orders.eu, too.")
]
Operations = Annotated[
    list[Operation] | None, typer.Option("--operation", "-o", help="What may be done.")
]
Producer = Annotated[
    bool,
    typer.Option(
        "--producer", help="All that a producer to --topic (and --transactional-id) does."
    ),
]
Consumer = Annotated[
    bool, typer.Option("--consumer", help="All that a consumer of --topic in --group does.")
]
Idempotent = Annotated[
    bool,
    typer.Option(
        "--idempotent", help="With --producer, for brokers older than 2.8, on the cluster."
    ),
]


def _resources(
    topics: list[str] | None,
    groups: list[str] | None,
    transactional_ids: list[str] | None,
    tokens: list[str] | None,
    users: list[str] | None,
    cluster: bool,
) -> list[tuple[Resource, str]]:
    """The resources that the options name, as (type, name)."""
    return [
        *((Resource.TOPIC, name) for name in topics or []),
        *((Resource.GROUP, name) for name in groups or []),
        *((Resource.TRANSACTIONAL_ID, name) for name in transactional_ids or []),
        *((Resource.DELEGATION_TOKEN, name) for name in tokens or []),
        *((Resource.USER, principal_text(name)) for name in users or []),
        *([(Resource.CLUSTER, CLUSTER_NAME)] if cluster else []),
    ]


@app.command("list")
def list_(  # noqa: PLR0913 # one for each option
    *,
    principal: AnyPrincipal = None,
    topics: Topics = None,
    groups: Groups = None,
    transactional_ids: TransactionalIds = None,
    tokens: Tokens = None,
    users: Users = None,
    cluster: Cluster = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """List the entries: all, a principal's, or those that apply to a topic, a group, …"""
    with reported():
        from .acls import AclCommands

        resources = _resources(topics, groups, transactional_ids, tokens, users, cluster)
        with AclCommands(bootstrap, config) as commands:
            commands.show(principal, resources, as_json=as_json)


@app.command()
def add(  # noqa: PLR0913 # one for each option
    *,
    principal: Principal,
    topics: Topics = None,
    groups: Groups = None,
    transactional_ids: TransactionalIds = None,
    tokens: Tokens = None,
    users: Users = None,
    cluster: Cluster = False,
    prefix: Prefix = False,
    operations: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    deny: Annotated[
        bool, typer.Option("--deny", help="Forbid it; that wins over what is allowed.")
    ] = False,
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--host", metavar="IP", parser=parse_text, help="The client's address. \\[default: any]"
        ),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Allow a principal to do something: add entries.

    Either --operation for each of the resources, or --producer, --consumer, or both.
    """
    with reported():
        from .acl_entries import AclChoice, entries_of
        from .acls import AclCommands

        resources = _resources(topics, groups, transactional_ids, tokens, users, cluster)
        choice = AclChoice(
            principal=principal,
            resources=resources,
            prefix=prefix,
            operations=operations or [],
            producer=producer,
            consumer=consumer,
            idempotent=idempotent,
            deny=deny,
            hosts=hosts or ["*"],
        )
        entries = entries_of(choice)
        with AclCommands(bootstrap, config) as commands:
            commands.add(entries, as_json=as_json)


@app.command()
def remove(  # noqa: PLR0913 # one for each option
    *,
    principal: AnyPrincipal = None,
    topics: Topics = None,
    groups: Groups = None,
    transactional_ids: TransactionalIds = None,
    tokens: Tokens = None,
    users: Users = None,
    cluster: Cluster = False,
    prefix: Prefix = False,
    operations: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    deny: Annotated[bool, typer.Option("--deny", help="Only entries that forbid.")] = False,
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="IP",
            parser=parse_text,
            help="Only entries of this address. \\[default: any]",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All entries of the cluster.")] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Remove them. Without it they are only shown.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Remove the entries that match, or show which would be removed."""
    with reported():
        from .acl_entries import AclChoice, filters_of
        from .acls import AclCommands

        resources = _resources(topics, groups, transactional_ids, tokens, users, cluster)
        choice = AclChoice(
            principal=principal,
            resources=resources,
            prefix=prefix,
            operations=operations or [],
            producer=producer,
            consumer=consumer,
            idempotent=idempotent,
            deny=deny,
            hosts=hosts or [],
        )
        filters = filters_of(choice, everything=everything)
        with AclCommands(bootstrap, config) as commands:
            commands.remove(filters, execute=execute, as_json=as_json)
