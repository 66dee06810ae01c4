"""How a command fails: one line on stderr that says what is wrong and what to do, and a code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from .security_protocol import uses_sasl

EXIT_FAILED = 1
CLIENT_MODULE = "confluent_kafka"

# By the name of an error of Kafka or librdkafka: what to do.
ADVICE = {
    "TOPIC_ALREADY_EXISTS": "use --if-not-exists, or `odradek topics alter`",
    "UNKNOWN_TOPIC_OR_PART": "`odradek topics list` shows the topics",
    "INVALID_PARTITIONS": "the number of partitions can only grow",
    "NON_EMPTY_GROUP": "stop its members first, or wait until their sessions expire",
    "GROUP_ID_NOT_FOUND": "`odradek groups list` shows the groups",
    "TOPIC_AUTHORIZATION_FAILED": "give --config FILE with the credentials of another user",
    "GROUP_AUTHORIZATION_FAILED": "give --config FILE with the credentials of another user",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "give --config FILE with the credentials of another user"
    ),
    "CLUSTER_AUTHORIZATION_FAILED": "give --config FILE with the credentials of another user",
    "SECURITY_DISABLED": "set authorizer.class.name in the broker's server.properties",
    "DELEGATION_TOKEN_AUTH_DISABLED": (
        "set delegation.token.secret.key in the broker's server.properties"
    ),
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": (
        "give --config FILE with SASL credentials, or with a client certificate"
    ),
    "DELEGATION_TOKEN_OWNER_MISMATCH": "only its owner and its renewers may",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": (
        "`odradek acls add USER --user OWNER --operation create-tokens` allows it"
    ),
    "_AUTHENTICATION": (
        "check security.protocol, sasl.mechanism and the credentials in the file of --config"
    ),
    "_SSL": "check ssl.ca.location in the file of --config",
    "_TIMED_OUT": "`odradek doctor` says what a client can reach",
    "_TRANSPORT": "`odradek doctor` says what a client can reach",
}


class CommandError(Exception):
    """A command cannot do what it was asked for. The message is one line, and says what to do."""


class NoAnswerError(CommandError):
    """No broker listens, or it closes the connection, or is silent. It may be starting."""


def kafka_failure(what: str, error: object, reason: str | None = None) -> CommandError:
    """The failure of `what` for a KafkaError, with advice where there is some.

    `reason` is shown instead of the error's own text.
    """
    name = getattr(error, "name", lambda: "")()
    text = reason or getattr(error, "str", lambda: str(error))()
    line = f"{what}: {text} ({name.lstrip('_')})" if name else f"{what}: {text}"
    return CommandError(with_advice(line, name))


def with_advice(line: str, name: str) -> str:
    """The line, and what to do about the error of that name, if that is known."""
    advice = ADVICE.get(name)
    return f"{line}; {advice}" if advice else line


def first_of(failures: Sequence[CommandError]) -> CommandError:
    """The first failure, and how many more there are."""
    more = f"; {len(failures) - 1} more failed" if len(failures) > 1 else ""
    return CommandError(f"{failures[0]}{more}")


def closed(server: str, settings: Mapping[str, str]) -> NoAnswerError:
    """The failure of a request on whose connection the broker has sent nothing."""
    if uses_sasl(settings):
        return NoAnswerError(f"{server} closes the connection; look into the broker's log")
    return NoAnswerError(
        f"{server} closes the connection, as a listener does where clients must log in;"
        " set security.protocol=SASL_PLAINTEXT (or SASL_SSL) and the credentials in the file of"
        " --config"
    )


@contextmanager
def reported() -> Iterator[None]:
    """Turn a failure inside into one line and an exit code.

    The code of a command is imported inside: the client that it needs may not be installed. So is
    typer: commands in a container's image have no need of it, and start quickly.
    """
    import typer

    try:
        yield
    except CommandError as error:
        typer.echo(f"odradek: {error}", err=True)
        raise typer.Exit(EXIT_FAILED) from None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != CLIENT_MODULE:
            raise
        needed = "this command needs confluent-kafka: pip install 'odradek[cli]'"
        typer.echo(f"odradek: {needed}", err=True)
        raise typer.Exit(EXIT_FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
